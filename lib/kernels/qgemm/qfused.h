/* lib/kernels/qgemm/qfused.h -- kernels that do the last step of a product while its sums are in registers.
 * Internal. */
#ifndef OCT_KERNELS_QGEMM_QFUSED_H
#define OCT_KERNELS_QGEMM_QFUSED_H

#include "kernels/qgemm/qout.h"

/* Rows by one panel; a, flip and b are as oct_qgemm_fn takes them, the tiles of mr rows one after the other. */
typedef struct oct_qfused {
    size_t rows, n; /* 1 or more; columns that are written, 1 to nr */
    size_t taps, kc;
    const uint8_t *const
        *a; /* row i of tap t is at a[(i / mr * taps + t) * mr + i % mr]; of the last tile rows up to mr are readable */
    uint8_t flip;
    const int8_t *b;
    size_t ahead;        /* bytes from b to the panel that comes next */
    const int32_t *add;  /* s32[n], what sums begin with */
    const oct_qout *out; /* of the first column on; F32, or such that oct_qout_is_plain */
    void *c;             /* ldc elements between rows */
    size_t ldc;
} oct_qfused;

#endif
