/* lib/ops/vision/sample.h -- values of channels-last images between pixels: weighted sums of pixels. */
#ifndef OCT_OPS_SAMPLE_H
#define OCT_OPS_SAMPLE_H

#include "ops/core/elem.h"

enum { OCT_SAMPLE_DIMS = 3, OCT_SAMPLE_TAPS = 64 }; /* cubic in three dimensions */

typedef struct oct_tap {
    int64_t pixel; /* index of the pixel */
    double weight;
} oct_tap;

/* Taps along one axis: at most 4; index -1 reads as zero. */
typedef struct oct_axis_taps {
    int n;
    int64_t index[4];
    double weight[4];
} oct_axis_taps;

/* The two neighbours of position p on an axis of n pixels, with weights; those outside have index -1. */
void oct_taps_linear(double p, int64_t n, oct_axis_taps *t);

/* Lists all combinations of the axes' taps inside the image, in order, and returns their number. dims: sizes of the
 * axes. */
int oct_taps_join(const oct_axis_taps *axis, const int64_t *dims, int n, oct_tap *taps);

/* y[i] = sum over taps of weight * x[pixel * c + i] for i < c; added in their order. Type t: any with a domain; other
 * types than float32 are summed in double and rounded (integers: truncated) once. c: at most 1024 values are at hand at
 * once, so y must not overlap x. */
void oct_blend(oct_dtype t, const void *x, const oct_tap *taps, int n, int64_t c, void *y);

#endif
