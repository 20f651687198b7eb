/* lib/kernels/qgemm/qclass.h -- 8-bit products of many rows whose 16-bit sums A proves safe: rows by class, layout of
 * the weights. Internal.
 *
 * As for one row (qrow.h), vpmaddubsw takes the weights as its unsigned operand, w + bias with the largest |w| as the
 * bias, and A as the signed one, x = a - za. A 16-bit sum of such products is exact for all weights where its positive
 * x stay within `limit` together, and the negative ones too: limit * 2 bias < 2^15. Most x are small where the zero
 * point lies amid the values. So a chunk, 16 values of k of a row, has a class: which of its four quads may be added in
 * 16 bits. 0  all four          1  two and two 2  none              3  a quad is beyond the limit by itself, or an x
 * beyond 8 bits: vpmaddwd on 16 bits The rows of a block are sorted by class in each chunk, once for all columns. The
 * weights of a chunk stay in registers while the rows of a class pass, and their products are added where the row is in
 * the tile. bias * sum of x is taken off where the tile starts.
 *
 * Weights: panels of 16 columns, each u8[chunks][4][16][4]. Columns and k that do not exist are w = 0. */
#ifndef OCT_KERNELS_QCLASS_H
#define OCT_KERNELS_QCLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OCT_QCLASS_COLUMNS = 16,
    OCT_QCLASS_CHUNK = 16,
    OCT_QCLASSES = 4,
    OCT_QCLASS_WIDE = 3,
    OCT_QCLASS_ROWS = 128, /* of a block, at most */
    OCT_QCLASS_LEAST = 16, /* rows that make sorting worth while */
};

/* Rows of a block, sorted. */
typedef struct oct_qclass {
    uint16_t (*count)[OCT_QCLASSES]; /* [chunks]: rows of each class */
    uint16_t *to;                    /* [chunks][rows]: by rising class; bytes from the tile's start to the row */
    uint8_t *x;                      /* s8[16] of rows of classes 0 to 2, in this order ... */
    int16_t *wide; /* ... and s16[4][4] of rows of class 3, from here downwards, a chunk's after those of the next: k 0,
                      2, 1, 3 of each quad */
    int32_t *sum;  /* [rows]: of x */
} oct_qclass;

typedef struct oct_qclass_kernel {
    const char *name;
    /* Sorts rows of A, at most OCT_QCLASS_ROWS; a[i] is row i, k bytes, to be xored with flip. Fills what c points
     * to. */
    void (*sort)(size_t rows, size_t k, const uint8_t *const *a, uint8_t flip, uint8_t za, int limit,
                 const oct_qclass *c);
    /* tile[i][j] = add[j] + sum of x * w, s32[rows][16], wrapping. */
    void (*run)(size_t rows, size_t k, uint32_t bias, const oct_qclass *c, const uint8_t *panel, const int32_t *add,
                int32_t *tile);
} oct_qclass_kernel;

extern const oct_qclass_kernel oct_qclass_u8s8_mx16c4__avx2;

static inline size_t oct_qclass_chunks(size_t k)
{
    return (k + OCT_QCLASS_CHUNK - 1) / OCT_QCLASS_CHUNK;
}

/* What the x of one sign may add up to: w + bias is 255 at most, whatever the bias. */
static inline int oct_qclass_limit(uint32_t bias)
{
    return INT16_MAX / (bias < 128 ? 2 * (int)bias : 255);
}

/* Divides memory aligned to 64 among the arrays of c, except the sums; c NULL: only computes the size. False if it
 * overflows. */
bool oct_qclass_carve(size_t rows, size_t k, void *at, oct_qclass *c, size_t *bytes);

/* The expected picoseconds of a row for each panel of n columns, if x is normally distributed with 127 as the largest
 * magnitude. */
uint64_t oct_qclass_cost(uint32_t bias, size_t k, size_t n);

#endif
