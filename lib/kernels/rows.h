/* lib/kernels/rows.h -- finds the rows of A for a product: plain rows of a matrix, or the input
 * pixels under each tap of a convolution. Works on bytes, so float and 8-bit share it. Internal. */
#ifndef OCT_KERNELS_ROWS_H
#define OCT_KERNELS_ROWS_H

#include "kernels/geometry.h"

#include <stddef.h>

typedef struct oct_rows {
    const uint8_t *x;       /* first row, or first pixel (at the first channel of the group) */
    size_t step;            /* bytes between rows or pixels */
    size_t run;             /* bytes of one row under one tap */
    const oct_conv_geom *g; /* NULL: row r is at x + r * step, with one tap */
    const uint8_t *pad;     /* what padding reads: run bytes */
    size_t count;           /* rows in all */
} oct_rows;

/* Taps of a geometry: kd * kh * kw. */
size_t oct_conv_taps(const oct_conv_geom *g);
/* Output pixels: n * od * oh * ow. */
size_t oct_conv_pixels(const oct_conv_geom *g);

/* Pointers to n rows from `begin`, in tiles of mr: table[(tile * taps + t) * mr + i]. Rows beyond the n of
 * the last tile repeat its last one. */
void oct_rows_point(const oct_rows *r, size_t begin, size_t n, size_t mr, const void **table);

/* Number of columns of taps from an output pixel to the next one in its row if neighbours share some; else kw. */
size_t oct_rows_advance(const oct_conv_geom *g);
/* Pointers to the columns of taps under at most `most` pixels of one output line, `begin` the first: table[i * kh + ky]
 * for i < (pixels - 1) * advance + kw; kd is 1. Returns the pixels. */
size_t oct_rows_slide(const oct_rows *r, size_t begin, size_t most, const void **table);

/* Copies n rows, all taps one after the other (taps * run bytes), to dst, `pitch` bytes apart. With OCT_ROWS_SLACK
 * bytes more between them it is faster, and what they hold is undefined. */
enum { OCT_ROWS_SLACK = 15 };
void oct_rows_gather(const oct_rows *r, size_t begin, size_t n, size_t pitch, uint8_t *dst);

/* Rows a work item takes at most. */
size_t oct_rows_block(size_t row_bytes, bool gather);

static inline size_t oct_round_up(size_t v, size_t to)
{
    return (v + to - 1) / to * to;
}

#endif
