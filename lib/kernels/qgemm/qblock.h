/* lib/kernels/qgemm/qblock.h -- kernels that compute a block of rows by some panels as a whole, with the last step.
 * Internal.
 *
 * Such a kernel loads A itself, 64 values of k of neighbouring rows at a time, so rows must be equidistant. A block has
 * enough products to overlap the last step of one section with the products of the next. */
#ifndef OCT_KERNELS_QGEMM_QBLOCK_H
#define OCT_KERNELS_QGEMM_QBLOCK_H

#include "kernels/qgemm/qout.h"

enum { OCT_QBLOCK_STEP = 64 }; /* values of k that are loaded together */

typedef struct oct_qblock {
    size_t rows;      /* 1 or more */
    const uint8_t *x; /* row i under step s of k: the 64 bytes at x + i * step + at[s]. What lies there behind the */
    size_t step;      /* values of A meets weights of zero */
    const size_t *at;
    size_t steps;
    size_t run;   /* values of k that follow each other before the next steps begin elsewhere: whole steps, then what is
                     left */
    size_t whole; /* the number of first rows whose last step may read 64 bytes; of other rows only the remaining bytes
                     may be read */
    bool is_signed;  /* A is s8 */
    size_t from, n;  /* columns from..n - 1, one or more, and of whole panels but for the last */
    const int8_t *b; /* the first panel (OCT_QGEMM_TILES); panels are `panel` bytes apart */
    size_t panel;
    const int32_t *add;             /* s32[n], of column 0 on, as the others: what sums begin with */
    const int32_t *rowsum, *colmul; /* as oct_qout_fn takes them */
    const oct_qout *out;
    uint8_t *const *to; /* where column 0 of row i goes; NULL: nowhere */
} oct_qblock;

#endif
