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

#include "kernels/geometry.h"

#include <stddef.h>

/* The copy of one image of a batch. */
typedef struct oct_qflat_plan {
    size_t advance, columns; /* columns of a position, of a line; a multiple */
    size_t lines, parts;     /* lines of one remainder, remainders */
    size_t fold, taps;       /* columns of taps that are one; what is left of them */
    size_t positions;        /* rows of the product */
    size_t bytes;            /* of the copy, a multiple of 64 */
} oct_qflat_plan;

/* The name of its line of costs: the product over positions, and the copy. */
#define OCT_QFLAT_NAME "oct_qflat__amx"

#endif
