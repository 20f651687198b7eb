/* lib/kernels/qgemm/qrow.h -- 8-bit products of a single row of A: layout of the weights, A in parts. Internal.
 *
 * vpmaddubsw takes the weights as its unsigned operand, w + bias, and A as the signed one, x = a - base. A 16-bit lane
 * adds two of k: with the positive x of a lane within 128 together, and the negative ones too, it is exact for all
 * weights at a bias of 128, as 255 * 128 < 2^15. Weights within -64 and 64 have a bias of 64; then a lane adds four of
 * k, and 255 is the bound: 128 * 255 < 2^15. Most lanes are so: x is small where base is a zero point amid the values.
 * A unit with a lane that is not is the sum of parts that are. What is true of A holds for every column, so one look at
 * the row serves all of them. The bias adds bias * sum of x to every column, which is taken off.
 *
 * Weights: panels of 64 columns, the last of 16, 32, 48 or 64; in each u8[quads][columns][4], so that memory is read in
 * order. A unit is one quad, or two where the bias is 64, and quads fill whole units. Columns and k that do not exist
 * are w = 0. */
#ifndef OCT_KERNELS_QROW_H
#define OCT_KERNELS_QROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OCT_QROW_COLUMNS = 64,
    OCT_QROW_STEP = 16,    /* of columns */
    OCT_QROW_SEGMENT = 32, /* units whose further parts follow while their weights are in the first-level cache */
    OCT_QROW_UNIT_K = 8,   /* at most */
};

/* A part of a unit: its one or two quads, s8[4] each. */
typedef struct oct_qrow_part {
    uint32_t unit, x[2];
} oct_qrow_part;

typedef struct oct_qrow {
    bool small; /* weights are within -64 and 64 */
    size_t units, more;
    uint32_t *first;        /* s8[quads][4]: the first part of each unit */
    oct_qrow_part *further; /* by rising unit */
    uint32_t sum;           /* of all x, wrapping */
} oct_qrow;

static inline size_t oct_qrow_units(bool small, size_t k)
{
    const size_t unit = small ? 8 : 4;
    return (k + unit - 1) / unit;
}

typedef struct oct_qrow_kernel {
    const char *name;
    /* The number of parts, besides the first ones, that k values of A need at this base. At 128 it is at most two per
     * unit. */
    size_t (*count)(bool small, const uint8_t *a, size_t k, uint8_t flip, int32_t base);
    /* Fills r, whose `small` is set (first: room for k rounded up to 16; further: for `count`). The bytes of A are
     * xored with flip. */
    void (*split)(const uint8_t *a, size_t k, uint8_t flip, int32_t base, oct_qrow *r);
    /* c[j] = sum of x * w, j < columns, the width of the panel b. */
    void (*run)(const oct_qrow *r, size_t columns, const uint8_t *b, int32_t *c);
} oct_qrow_kernel;

extern const oct_qrow_kernel oct_qrow_u8s8_1x64c4__avx2;

#endif
