/* lib/kernels/conv/phases.h -- a transposed convolution with strides as one without.
 *
 * Along an axis of stride s output o reads the taps k with (o + p - k) % s == 0 alone. Outputs of one phase r = (o + p)
 * % s share them: k = r + s j, at input (o + p) / s - j. So a convolution without stride, with ceil(k / s) taps, has
 * the outputs of all phases as channels of one pixel (Shi et al. 2016, "Is the deconvolution layer the same as a
 * convolutional layer?"); copying puts them in their places. Of s taps along an axis one is computed where the kernels'
 * own way (conv.h) multiplies s - 1 zeros. A chain keeps its order; taps that a phase does not have are part of it,
 * with weights of zero. */
#ifndef OCT_KERNELS_CONV_PHASES_H
#define OCT_KERNELS_CONV_PHASES_H

#include "kernels/geometry.h"

#include "base/pool.h"

#include <stddef.h>

typedef struct oct_phases {
    oct_conv_geom g; /* as it was asked for; ldy is set */
    oct_conv_geom
        inner;      /* without stride. Of one group: its channels are [phase][oc]. Of several: those of one phase */
    size_t count;   /* phases */
    size_t runs;    /* of inner: 1, or one a phase, with weights and outputs behind those of the run before */
    size_t weights; /* those of all runs, */
    size_t image;   /* and their outputs, in elements */
} oct_phases;

/* False where the kernels' own way stays: no transposed convolution, no stride, dilation along an axis with stride, or
 * sizes that overflow. g is checked (oct_conv_geom_check). */
bool oct_phases_plan(const oct_conv_geom *g, oct_phases *p);
/* Weights of `inner`, with elements of `size` bytes, from those of g. Taps that a phase lacks are zeros, or bytes of
 * channel o's zero point, zero[o * step]. */
void oct_phases_weights(const oct_phases *p, const void *w, size_t size, const int32_t *zero, size_t step, void *to);
/* An array of a value of `size` bytes for each of the oc channels as one for those of `inner`. */
void oct_phases_repeat(const oct_phases *p, const void *v, size_t size, void *to);
/* The outputs of all runs, dense, as that of g. */
void oct_phases_spread(const oct_phases *p, oct_pool *pool, const void *image, size_t size, void *y);
/* The reverse of what is as an output of g, pixels ld elements apart; outputs that g does not have become zeros. */
void oct_phases_collect(const oct_phases *p, oct_pool *pool, const void *y, size_t ld, size_t size, void *image);

#endif
