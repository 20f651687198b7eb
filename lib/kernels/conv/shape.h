/* lib/kernels/conv/shape.h -- what algorithms of convolution ask about a shape. Internal. */
#ifndef OCT_KERNELS_CONV_SHAPE_H
#define OCT_KERNELS_CONV_SHAPE_H

#include "kernels/cost.h"
#include "kernels/geometry.h"

/* Pixels of the input are rows of a product as they lie: 1x1, stride 1, no padding, one group. */
bool oct_conv_is_dense(const oct_conv_geom *g);
/* One input and one output channel a group. */
bool oct_conv_is_depthwise(const oct_conv_geom *g);
/* Several taps of few channels, which are taken as one k. Sums of bf16 depend on it (docs/arithmetic.md). */
bool oct_conv_joins_taps(const oct_conv_geom *g);

/* The product that a convolution is, for each group: a row of all taps for each pixel. */
oct_extent oct_conv_extent(const oct_conv_geom *g);

#endif
