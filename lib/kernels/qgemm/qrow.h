/* lib/kernels/qgemm/qrow.h -- 8-bit products of a single row of A: layout of the weights, A in parts. Internal.
 *
 * vpmaddubsw takes the weights as its unsigned operand, w + 128, and A as the signed one, x = a - base. A 16-bit lane adds two of k: with
 * the positive x of a pair within 128 together, and the negative ones too, it is exact for all weights, as 255 * 128 < 2^15.
 * Most pairs are so: x is small where base is a zero point amid the values. A quad with a pair that is not is the sum of parts that are.
 * What is true of A holds for every column, so one look at the row serves all of them. The 128 of the weights adds 128 * sum of x
 * to every column, which is taken off.
 *
 * Weights: panels of 64 columns, the last of 16, 32, 48 or 64; in each u8[k / 4][columns][4], so that memory is read in order. Columns and
 * k that do not exist are w = 0. */
#ifndef OCT_KERNELS_QROW_H
#define OCT_KERNELS_QROW_H

#include "kernels/qgemm/qgemm.h"

enum {
    OCT_QROW_COLUMNS = 64,
    OCT_QROW_UNIT = 16,
    OCT_QROW_PAIR = 127,   /* most that a pair of a part adds up to before rounding, which adds 1 */
    OCT_QROW_SEGMENT = 64, /* quads whose further parts follow while their weights are in the first-level cache */
};

/* Four values of k, s8[4]. */
typedef struct oct_qrow_part {
    uint32_t quad, x;
} oct_qrow_part;

typedef struct oct_qrow {
    size_t quads, more;
    uint32_t *first;        /* s8[quads][4]: the first part of each quad */
    oct_qrow_part *further; /* by rising quad */
    uint32_t sum;           /* of all x, wrapping */
} oct_qrow;

struct oct_qrow_kernel {
    const char *name;
    /* How many parts beside the first ones k values of A need at this base. */
    size_t (*count)(const uint8_t *a, size_t k, uint8_t flip, int32_t base);
    /* Fills r (first: room for quads rounded up to 4; further: for `count`). The bytes of A are xored with flip. */
    void (*split)(const uint8_t *a, size_t k, uint8_t flip, int32_t base, oct_qrow *r);
    /* c[j] = sum of x * w, j < columns, the width of the panel b. */
    void (*run)(const oct_qrow *r, size_t columns, const uint8_t *b, int32_t *c);
};

extern const oct_qrow_kernel oct_qrow_u8s8_1x64c4__avx2;

#endif
