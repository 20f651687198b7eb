/* lib/kernels/sgemm/sgemm.h -- float matrix product, C[m][n] = clamp(A[m][k] * B[k][n] + bias + residual).
 *
 * Every output is one chain of fused multiply-adds over k in increasing order that starts at the bias (+0
 * without one), then the output pipeline below. So results are the same bits on every instruction set, with
 * any number of threads and with any split of the rows. The bias costs no rounding of its own that way. A NaN
 * comes out as 0x7fc00000, whichever NaN went in.
 *
 * Use: prepare once (chooses the kernel, says how much memory), pack B once, run often. A plan is plain
 * data: copy it freely, nothing to destroy. It allocates nothing: the caller gives the memory of the
 * packed matrix (64-byte aligned) and of the scratch (64-byte aligned, one per concurrent run). */
#ifndef OCT_KERNELS_SGEMM_H
#define OCT_KERNELS_SGEMM_H

#include "base/pool.h"
#include "kernels/cost.h"
#include "kernels/cpu.h"
#include "kernels/sgemm/sout.h"

/* A micro-kernel: m (1 to mr) rows by nr columns.
 *   n      columns that matter, 1 to nr; c has room for nr columns in each row, and the kernel may
 *          write all of them
 *   a      pointers to runs of kc floats: row i of tap t is a[t * mr + i], for i < mr
 *   b      packed panel f32[taps][kc][nr]
 *   first  start the chain at the bias, else at what c holds (an earlier part of k)
 *   last   finish, else store the chain as it is (a later part of k follows)
 *   out    never NULL; its bias (read when first) and residual (read when last) point at this tile's first
 *          column and have room for nr columns, as c has, unless the kernel masks */
typedef void (*oct_sgemm_fn)(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                             float *c, size_t ldc, bool first, bool last, const oct_sout *out);

/* The same for a single row and tap over the whole depth, and panels that follow each other `panel` floats apart; all
 * of their columns matter. a     kc floats out   its bias and residual have room for all columns */
typedef void (*oct_sgemm_row_fn)(size_t panels, size_t kc, const float *a, const float *b, size_t panel, float *c,
                                 const oct_sout *out);

/* The format of B in panels. bf16 panels are rounded half to even. */
typedef enum oct_spanel {
    OCT_SPANEL_F32 = 0,
    OCT_SPANEL_BF16, /* in float32 */
    OCT_SPANEL_PAIRS /* bf16[kc / 32][16][nr][2], zeros behind the kc values of a tap */
} oct_spanel;

typedef struct oct_sgemm_kernel {
    const char *name;
    oct_isa isa;
    oct_sgemm_fn fn;
    size_t mr, nr;
    oct_sgemm_row_fn row; /* of products that always have one row; else NULL */
    oct_spanel panel;
    bool masks; /* touches no columns beyond n */
} oct_sgemm_kernel;

/* All kernels; *n is their number. */
const oct_sgemm_kernel *oct_sgemm_kernels(size_t *n);
/* The kernel (oct_sgemm_kernel) that needs nothing outside `have` and is expected to be the fastest. */
oct_choice oct_sgemm_choose(oct_isa have, const oct_extent *e);

typedef struct oct_sgemm {
    const oct_sgemm_kernel *kernel;
    size_t n, k;
    int threads;
    size_t packed_size;  /* bytes of the packed matrix */
    size_t scratch_size; /* bytes of scratch for a run */
} oct_sgemm;

/* Plans products of up to `rows` rows (0: unknown) with B of k x n on pools of at most `threads` threads, with the
 * kernel of oct_isa_active() that is expected to be the fastest. n, k >= 1 (k == 0 is allowed and gives bias alone).
 * OCT_ENOMEM when the sizes overflow. */
oct_status oct_sgemm_prepare(oct_sgemm *p, size_t rows, size_t n, size_t k, int threads, oct_err *err);

/* Packs B, element (i, j) being b[i * rs + j * cs]: row-major B has (n, 1), a transposed one (1, k). */
void oct_sgemm_pack(const oct_sgemm *p, const float *b, ptrdiff_t rs, ptrdiff_t cs, void *packed);

/* C = clamp(A * B + bias + residual).
 *   a    f32[m][k], lda elements between rows; borrowed
 *   c    f32[m][n], ldc >= n elements between rows; nothing outside the n columns is written
 *   out  NULL for a plain product
 * m == 0 does nothing. The pool may be NULL. C must overlap no input. */
void oct_sgemm_run(const oct_sgemm *p, oct_pool *pool, size_t m, const float *a, size_t lda, const void *packed,
                   float *c, size_t ldc, const oct_sout *out, void *scratch);

#endif
