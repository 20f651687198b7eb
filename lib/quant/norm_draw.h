/* lib/quant/norm_draw.h -- statistics that follow from what BatchNormalization remembers, without any picture.
 *
 * Behind a BatchNormalization a channel of the training data has its offset as the mean and its scale as the deviation. Numbers drawn so, in
 * place of what the layers in front of it make, go through all that stands between there and the next layers with weights: clamps, sums,
 * concatenations, pools. What values take there is nearer to real data than what made pictures leave of it: the means, and with them the
 * mean error of rounded weights (Data-Free Quantization, Nagel et al., 2019), as well as the tails. */
#ifndef OCT_QUANT_NORM_DRAW_H
#define OCT_QUANT_NORM_DRAW_H

#include "observers/calib.h"
#include "quant/norm_match.h"

/* What to observe of a graph. */
typedef struct oct_norm_draw_opts {
    const char *const *values;
    const int *axes; /* [n]: as in oct_calibrate_opts */
    size_t n;
    int threads;
} oct_norm_draw_opts;

/* Adds to c the statistics of those values that are targets or follow from targets alone, without a layer between, in the prepared graph g.
 * Targets whose shape is not known, but for the batch, have none. */
oct_status oct_norm_draw(const oct_graph *g, const oct_norm_target *target, size_t n, const oct_norm_draw_opts *o, oct_calib *c, oct_err *err);

#endif
