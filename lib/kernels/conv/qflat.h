/* lib/kernels/conv/qflat.h -- 8-bit convolution for kernels of blocks (kernels/qgemm/qblock.h), which take rows that
 * lie equally far from each other. Internal.
 *
 * The image is copied with its padding, line after line. What lies under a tap of neighbouring output pixels is then
 * equally far apart, from the last pixel of a line to the first of the next, too, where the line has as many positions
 * as the copy; positions that are no pixels are computed and dropped. All columns under a line of taps follow each
 * other, so they are one tap of kw * c values.
 *
 *   stride along the line    a position is as many columns further
 *   stride between lines     lines of each remainder lie together, so that those under one tap are neighbours
 *   padding                  that on the right of a line is that on the left of the next; what it still lacks is at the
 * end of the copy */
#ifndef OCT_KERNELS_QFLAT_H
#define OCT_KERNELS_QFLAT_H

#include "kernels/cost.h"
#include "kernels/geometry.h"
#include "kernels/qgemm/qgemm_int.h"

/* The copy of one image of a batch. */
typedef struct oct_qflat_plan {
    size_t advance, columns; /* columns of a position, of a line; a multiple */
    size_t lines, parts;     /* lines of one remainder, remainders */
    size_t fold, taps;       /* columns of taps that are one; what is left of them */
    size_t positions;        /* rows of the product */
    size_t bytes;            /* of the copy, a multiple of 64 */
} oct_qflat_plan;

#define OCT_QFLAT_NAME "oct_qflat__amx"

/* Convolutions of one group in the plane. False also where sizes overflow. */
bool oct_qflat_plan_of(const oct_conv_geom *g, oct_qflat_plan *p);
/* Whether this way is expected to be faster than the record in `pick`, of a convolution whose rows are not those of a
 * matrix; it is then the kernel for it. */
bool oct_qflat_select(oct_isa have, const oct_conv_geom *g, oct_choice *pick);

/* Scratch: oct_qflat_plan.bytes, then taps * sizeof(size_t) bytes. */
size_t oct_qflat_scratch(const oct_qflat_plan *p);
/* Runs image by image what t says of n = 1: rows, flat and c are set here. pad: the byte of padding. */
void oct_qflat_run(const oct_conv_geom *g, const oct_qtiles *t, oct_pool *pool, const uint8_t *x, uint8_t pad,
                   uint8_t *scratch);

#endif
