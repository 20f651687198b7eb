/* lib/quant/inputs/norm_draw.h -- statistics that follow from the parameters of BatchNormalization, without any
 * picture.
 *
 * After a BatchNormalization, a channel has its offset as the mean over the training data, and its scale as the
 * standard deviation. Numbers with this mean and deviation are drawn in place of the value, and pass through everything
 * up to the next layers with weights: clamps, sums, concatenations and pools. The resulting statistics are nearer to
 * those of real data than statistics over generated pictures. This concerns the tails, and also the means, and with
 * them the mean error of rounded weights (Data-Free Quantization, Nagel et al., 2019). */
#ifndef OCT_QUANT_NORM_DRAW_H
#define OCT_QUANT_NORM_DRAW_H

#include "observers/calib.h"
#include "quant/inputs/norm_match.h"

/* The values of a graph to be observed. */
typedef struct oct_norm_draw_opts {
    const char *const *values;
    const int *axes; /* [n]: as in oct_calibrate_opts */
    size_t n;
    int threads;
} oct_norm_draw_opts;

/* Adds to c the statistics of those values that are targets, or follow from targets without a layer in between, in the
 * prepared graph g. A target must have a known shape, except for the batch; others are left out. */
oct_status oct_norm_draw(const oct_graph *g, const oct_norm_target *target, size_t n, const oct_norm_draw_opts *o,
                         oct_calib *c, oct_err *err);

#endif
