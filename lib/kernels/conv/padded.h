/* lib/kernels/conv/padded.h -- a copy of an image with its padding, so that pixels that stand side by side under taps
 * do so in memory. Internal. */
#ifndef OCT_KERNELS_CONV_PADDED_H
#define OCT_KERNELS_CONV_PADDED_H

#include "kernels/geometry.h"

#include "base/pool.h"

#include <stddef.h>

typedef struct oct_padded {
    int64_t h, w; /* lines and pixels of the copy: what taps reach */
    size_t bytes; /* 0: the image serves as it lies, h and w are its own */
} oct_padded;

/* Of a convolution along two axes or one, of elements of `size` bytes; false for others, and where the copy would be
 * more than twice the image and a MiB. ldx and ldy are set. */
bool oct_padded_plan(const oct_conv_geom *g, size_t size, oct_padded *p);
/* Pixels have no gap between them in `to`; padding is bytes of `pad`. */
void oct_padded_copy(const oct_padded *p, const oct_conv_geom *g, oct_pool *pool, size_t size, uint8_t pad,
                     const void *x, void *to);

#endif
