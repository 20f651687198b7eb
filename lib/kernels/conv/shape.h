/* lib/kernels/conv/shape.h -- properties of shapes for algorithms of convolution. Internal. */
#ifndef OCT_KERNELS_CONV_SHAPE_H
#define OCT_KERNELS_CONV_SHAPE_H

#include "kernels/cost.h"
#include "kernels/geometry.h"

/* Whether pixels of the input can be used as rows of a product in place: 1x1, stride 1, no padding, one group. */
bool oct_conv_is_dense(const oct_conv_geom *g);
/* One input and one output channel a group. */
bool oct_conv_is_depthwise(const oct_conv_geom *g);
/* Whether several taps with few channels are joined to one k. Sums of bf16 depend on it (docs/arithmetic.md). */
bool oct_conv_joins_taps(const oct_conv_geom *g);

/* The matrix product of a convolution, for each group: a row with all taps for each pixel. */
oct_extent oct_conv_extent(const oct_conv_geom *g);

#endif
