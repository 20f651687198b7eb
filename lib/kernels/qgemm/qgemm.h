/* lib/kernels/qgemm/qgemm.h -- 8-bit matrix product with int32 accumulation and a fused last step.
 *
 *   acc[m][n] = bias[n] + sum over k of (A[m][k] - za) * (B[k][n] - zb[n])     (int32, wrapping)
 *   C[m][n]   = oct_qout of acc
 *
 * A is u8 or s8, B is u8 or s8. Exact on every instruction set: nothing saturates. Inside, A is of the type the kernel
 * takes, mostly u8 (a s8 is then read with its top bit flipped, za + 128), and B is s8 (a u8 is packed minus 128,
 * zb - 128, so u8 weights with zero point 128 cost nothing). Zero points are folded into one number a column, and one a
 * row where some zb is not zero.
 *
 * Plans, packing and memory are as in sgemm.h. */
#ifndef OCT_KERNELS_QGEMM_H
#define OCT_KERNELS_QGEMM_H

#include "base/dtype.h"
#include "base/pool.h"
#include "kernels/cost.h"
#include "kernels/qgemm/qout.h"

/* Order of a packed panel: groups of kr values of k, the k of every tap padded to whole groups with zeros. */
typedef enum oct_qgemm_order {
    OCT_QGEMM_PLAIN,   /* s8[k / kr][nr][kr]                                              */
    OCT_QGEMM_EVENODD, /* kr = 4: s8[k / 4][2][nr][2], k of {0, 2} first, then of {1, 3}  */
    OCT_QGEMM_CHAINS,  /* kr = 4, nr = 16: k in an order of its own (kernels/qgemm/qchain.h), or EVENODD */
    OCT_QGEMM_TILES,   /* kr = 64: s8[k / 64][nr / 16][16][16][4], tiles of 16 quads of k by 16 columns */
    OCT_QGEMM_ROW      /* kernels/qgemm/qrow.h */
} oct_qgemm_order;

/* A micro-kernel: c[i][j] = sum of u8 * s8 (or s8 * s8), for i < m (1 to mr) and all nr columns; rows up to mr may be
 * written too.
 *   n     columns that matter, 1 to nr; the others may be left as they are
 *   a     row i of tap t is at a[t * mr + i], i < mr, kc bytes; nothing beyond them is read
 *   flip  0 or 0x80, to be xored to every byte of A: it is then of the kernel's type
 *   c     s32[mr][nr] */
typedef void (*oct_qgemm_fn)(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                             const int8_t *b, int32_t *c);

/* Rows of A in chunks of 16 values of k: value k of row i is at x[k / 16 * chunk + i * row + k % 16]. Whole chunks
 * are read where a unit of the panel is shuffled, else whole quads. */
typedef struct oct_qchain_rows {
    const uint8_t *x;
    size_t row, chunk; /* bytes from one to the next */
} oct_qchain_rows;

/* The same for any number of rows and panels in chains.
 *   start  s32[16], what the sums of each row begin with; doubled: the same twice
 *   c      s32[rows][16]; of a doubled panel (up to 8 columns): s32[rows, an even number][8] */
typedef void (*oct_qgemm_chain_fn)(size_t rows, size_t depth, const oct_qchain_rows *a, const int8_t *panel,
                                   const int32_t *start, int32_t *c);

struct oct_qblock;
typedef void (*oct_qgemm_block_fn)(const struct oct_qblock *b); /* kernels/qgemm/qblock.h */

struct oct_qfused;
typedef void (*oct_qgemm_fused_fn)(const struct oct_qfused *f); /* kernels/qgemm/qfused.h */

typedef struct oct_qgemm_kernel {
    const char *name;
    oct_isa isa;
    oct_qgemm_fn fn; /* NULL where `row` or `block` is not */
    size_t mr, nr, kr;
    oct_qgemm_order order;
    oct_dtype a;                       /* what it reads A as: OCT_U8 or OCT_S8 */
    const struct oct_qrow_kernel *row; /* kernels/qgemm/qrow.h: of products that always have one row; else NULL */
    const struct oct_qclass_kernel
        *sorted;              /* kernels/qgemm/qclass.h: of weights for which that is faster than chains; else NULL */
    oct_qgemm_chain_fn chain; /* CHAINS: of panels in chains, fn is of plain ones; else NULL */
    oct_qgemm_block_fn block; /* kernels/qgemm/qblock.h: TILES, of blocks of rows, and of A of either type; else NULL */
    oct_qgemm_fused_fn fused; /* kernels/qgemm/qfused.h: what fn computes, with the last step; else NULL */
} oct_qgemm_kernel;

const oct_qgemm_kernel *oct_qgemm_kernels(size_t *n);
/* Offers a kernel if it can run. is_matrix: A is a matrix, not an image; there are special kernels for a single row and
 * for many rows of it. */
void oct_qgemm_offer(oct_choice *c, const oct_qgemm_kernel *k, oct_isa have, const oct_extent *e, bool is_matrix);
/* The cheapest of all, and its cost. */
oct_choice oct_qgemm_choose(oct_isa have, const oct_extent *e, bool is_matrix);

typedef struct oct_qgemm {
    const oct_qgemm_kernel *kernel;
    const oct_qout_kernel *qout;
    oct_dtype a_type, b_type;
    size_t rows, n, k;
    int threads;
    /* Set them after preparing. */
    bool fast_pack; /* B is packed for one run only, so no time is spent on a faster order */
    bool backwards; /* one row: walks through B from its end. Alternating directions, half of B is still in the cache */
    size_t packed_size, scratch_size; /* bytes */
} oct_qgemm;

/* Plans products of a_type x b_type (each OCT_U8 or OCT_S8) with B of k x n. rows: the maximum number of rows of A in a
 * run, for which the kernel is chosen and B is packed; 1: always one; 0: unknown. OCT_ENOMEM when sizes overflow. */
oct_status oct_qgemm_prepare(oct_qgemm *p, size_t rows, size_t n, size_t k, oct_dtype a_type, oct_dtype b_type,
                             int threads, oct_err *err);

/* Packs B, element (i, j) being b[i * rs + j * cs].
 *   zb  zero points of B in its own type's range: zb[j * zb_step], so 0 is per tensor and 1 per column; NULL: 0 */
void oct_qgemm_pack(const oct_qgemm *p, const void *b, ptrdiff_t rs, ptrdiff_t cs, const int32_t *zb, size_t zb_step,
                    void *packed);

/* Runs one product.
 *   a     a_type[m][k], lda elements between rows
 *   za    zero point of A, in a_type's range
 *   bias  s32[n] at scale s_a * s_b[n], or NULL
 *   out   never NULL; arrays f32[n]
 *   c     element type by out->kind, [m][n], ldc elements between rows; only the n columns are written
 * C must overlap no input. */
void oct_qgemm_run(const oct_qgemm *p, oct_pool *pool, size_t m, const void *a, size_t lda, int32_t za,
                   const void *packed, const int32_t *bias, const oct_qout *out, void *c, size_t ldc, void *scratch);

#endif
