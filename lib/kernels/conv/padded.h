/* lib/kernels/conv/padded.h -- a copy of an image with its padding, so that neighbouring pixels under the taps are
 * neighbours in memory. Internal. */
#ifndef OCT_KERNELS_CONV_PADDED_H
#define OCT_KERNELS_CONV_PADDED_H

#include "kernels/geometry.h"

#include "base/pool.h"

#include <stddef.h>

typedef struct oct_padded {
    int64_t h, w; /* lines and pixels of the copy: what taps reach */
    size_t bytes; /* 0: the image serves as it lies, h and w are its own */
} oct_padded;

/* Plans the copy for a convolution along one or two axes, with elements of `size` bytes; false for others, and if the
 * copy would exceed twice the image plus one MiB. ldx and ldy are set. */
bool oct_padded_plan(const oct_conv_geom *g, size_t size, oct_padded *p);
/* Pixels have no gap between them in `to`; padding is bytes of `pad`. */
void oct_padded_copy(const oct_padded *p, const oct_conv_geom *g, oct_pool *pool, size_t size, uint8_t pad,
                     const void *x, void *to);

#endif
