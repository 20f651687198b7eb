/* lib/kernels/nbits/nbits.h -- product of floats with weights of 2, 4 or 8 bits that share a scale by blocks along k,
 *
 *   w[k][n] = (q[n][k] - zero[n][k / block]) * scale[n][k / block]      each operation rounded to float
 *   C[m][n] = clamp(sum over k of A[m][k] * w[k][n] + bias + residual)     as sgemm.h defines it
 *
 * So the result is, bit for bit, the float product with dequantized weights, on every instruction set, with any threads
 * and rows. Weights stay packed in their few bits: up to four rows of A read them once, more unpack a panel at a time.
 *
 * Where the form has `bytes`, activations are quantized by the weights' blocks (oct_quantize_blocks_s8), and a block is
 * a product of integers: C[m][n] = clamp(chain over blocks of fma((float)(sum over the block of qa[m][k] * (q[n][k] -
 * zero)), sa[m][block] * scale[n][block]) + residual) which begins with the bias. It errs by the rounding of A, and has
 * the same bits everywhere, too.
 *
 * Plans, packing and memory are as in sgemm.h. */
#ifndef OCT_KERNELS_NBITS_H
#define OCT_KERNELS_NBITS_H

#include "kernels/sgemm/sgemm.h"

typedef enum oct_nbits_zero {
    OCT_NBITS_MIDDLE, /* 2^(bits - 1) everywhere */
    OCT_NBITS_WHOLE,  /* a quantized value a block          */
    OCT_NBITS_REAL    /* a float a block         */
} oct_nbits_zero;

/* Shape and encoding of the weights. */
typedef struct oct_nbits_form {
    size_t n, k;
    int bits;     /* 2, 4 or 8 */
    size_t block; /* values of k that share a scale: a power of two, 16 to 256 */
    oct_nbits_zero zero;
    bool bytes; /* activations are quantized; not with REAL */
} oct_nbits_form;

/* The weights as com.microsoft.MatMulNBits has them, n rows of blocks = ceil(k / block) each. */
typedef struct oct_nbits_weights {
    const uint8_t *qvals; /* [n][blocks][block * bits / 8], the lowest bits first; those beyond k are not used */
    const float *scale;   /* [n][blocks] */
    const uint8_t *zero;  /* WHOLE: [n][ceil(blocks * bits / 8)], quantized values as above */
    const float *real;    /* REAL: [n][blocks] */
    const int32_t
        *group; /* [k]: the block, within the column, whose scale and zero point a weight takes; NULL: its own */
} oct_nbits_weights;

/* Kernels on a packed panel of nr columns (kernels/nbits/nbits_int.h has its layout).
 *   row     y[j] continues its chain: y[j] = fma(a[i], w[i][j], y[j]) for each i < k, for the columns of one panel, or
 * of two that follow each other when `two` few     the same of m (2 to 4) rows and one panel: rows of a are lda floats
 * apart, rows of y nr unpack  to[i - k0][j] = w[i][j] for k0 <= i < k0 + kc; k0 is a multiple of 16 */
typedef void (*oct_nbits_row_fn)(const oct_nbits_form *f, size_t nr, bool two, const float *a, const uint8_t *panel,
                                 float *y);
typedef void (*oct_nbits_few_fn)(const oct_nbits_form *f, size_t nr, size_t m, const float *a, size_t lda,
                                 const uint8_t *panel, float *y);
typedef void (*oct_nbits_unpack_fn)(const oct_nbits_form *f, size_t nr, const uint8_t *panel, size_t k0, size_t kc,
                                    float *to);

typedef struct oct_nbits_kernel {
    const char *name;
    oct_isa isa;
    oct_nbits_row_fn row;
    oct_nbits_few_fn few;
    oct_nbits_unpack_fn unpack;
    size_t nr; /* columns of its panels; 0: any number */
} oct_nbits_kernel;

const oct_nbits_kernel *oct_nbits_kernels(size_t *n); /* slowest first */
/* The fastest for panels of nr columns that needs nothing outside `have`. */
const oct_nbits_kernel *oct_nbits_select(oct_isa have, size_t nr);

/* Quantized rows of A. Some of them, G, may lie together: their quads of k by turns. */
typedef struct oct_nbits_rows {
    const int8_t *q;    /* [m / G][blocks * block / 4][G][4]: zeros beyond k; with G == 1, [m][blocks * block] */
    const float *scale; /* [m / G][blocks][G] */
    const int32_t *sum; /* [m / G][blocks][G], of the block's q */
} oct_nbits_rows;

/* y[i][j] continues the chain of row i < m and column j of one panel; rows of y are nr apart. */
typedef void (*oct_nbits_bytes_fn)(const oct_nbits_form *f, size_t nr, size_t m, const oct_nbits_rows *a,
                                   const uint8_t *panel, float *y);

typedef struct oct_nbits_bytes_kernel {
    const char *name;
    oct_isa isa;
    oct_nbits_bytes_fn run;
    size_t mr, nr; /* most rows, columns of a panel */
    size_t least;  /* rows from which on it is taken in place of the one before it, where the panels are the same */
    size_t group;  /* G: rows that lie together */
} oct_nbits_bytes_kernel;

const oct_nbits_bytes_kernel *oct_nbits_bytes_kernels(size_t *n); /* slowest first */

typedef struct oct_nbits {
    oct_nbits_form form;
    const oct_nbits_bytes_kernel *bytes;   /* of a form that has them; else NULL, and the last two */
    const oct_nbits_bytes_kernel *more[2]; /* of as many rows as they say and more, with the same panels; or NULL */
    const oct_nbits_kernel *kernel;
    const oct_sgemm_kernel *sgemm; /* for more rows; its nr is the panels' */
    int threads;
    size_t packed_size, scratch_size; /* bytes */
} oct_nbits;

/* Bytes of quantized values of one column, and of its zero points where they are quantized values. */
size_t oct_nbits_column_bytes(const oct_nbits_form *f);
size_t oct_nbits_zero_bytes(const oct_nbits_form *f);
size_t oct_nbits_blocks(const oct_nbits_form *f); /* of one column */

/* Writes w[i][column] for 0 <= i < k to w, f32[k]. For weights that cannot be packed: with groups, or known in a run
 * only. */
void oct_nbits_dequantize(const oct_nbits_form *f, const oct_nbits_weights *from, size_t column, float *w);

/* Plans products on pools of at most `threads` threads. n, k >= 1. OCT_EUNSUPPORTED for other bits, blocks or zero
 * points than the above, OCT_ENOMEM when the sizes overflow. */
oct_status oct_nbits_prepare(oct_nbits *p, const oct_nbits_form *f, int threads, oct_err *err);
/* w->group must be NULL. */
void oct_nbits_pack(const oct_nbits *p, const oct_nbits_weights *w, void *packed);
/* As oct_sgemm_run. */
void oct_nbits_run(const oct_nbits *p, oct_pool *pool, size_t m, const float *a, size_t lda, const void *packed,
                   float *c, size_t ldc, const oct_sout *out, void *scratch);

#endif
