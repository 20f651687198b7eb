/* lib/kernels/qgemm/qbytes.h -- the work of a run on bytes of its operands besides the product: packing a B that is
 * computed at run time, sums of rows of A if B has zero points, and the term of A's zero point for each column.
 * Internal. */
#ifndef OCT_KERNELS_QGEMM_QBYTES_H
#define OCT_KERNELS_QGEMM_QBYTES_H

#include "kernels/cpu.h"

#include <stddef.h>

enum { OCT_QBYTES_COLUMNS = 16 };

typedef struct oct_qbytes {
    /* Sum of n bytes, u8 after each was xored with flip. */
    uint32_t (*sum)(const uint8_t *a, size_t n, uint8_t flip);
    /* Columns, up to OCT_QBYTES_COLUMNS of them, of k rows of B, `step` bytes apart, xored with flip and then s8: to[q
     * * pitch + j * 4 + i] is column j of row 4 q + i, or 0 in the last quad beyond k; and sums[j] grows by the column.
     * Columns beyond n are undefined in both. NULL: none. */
    void (*quads)(const uint8_t *b, size_t step, size_t k, size_t n, uint8_t flip, size_t pitch, int8_t *to,
                  int32_t sums[OCT_QBYTES_COLUMNS]);
    /* add[j] = bias[j] - za * sums[j] + depth * za * zb[j], where colmul = -zb, NULL where that is 0; bias may be NULL.
     * All wraps. */
    void (*fold)(size_t n, const int32_t *bias, const int32_t *sums, const int32_t *colmul, int32_t za, size_t depth,
                 int32_t *add);
} oct_qbytes;

/* The fastest that needs nothing outside `have`. */
const oct_qbytes *oct_qbytes_select(oct_isa have);

#if defined(OCT_KERNELS_X86)
extern const oct_qbytes oct_qbytes__avx512;
#endif

#endif
