/* lib/quant/inputs/norm_match.h -- statistics from generated samples, over a graph whose layers are adapted to them.
 *
 * Values that layers compute from generated pictures are smaller than those from real ones, and increasingly so in
 * deeper layers. BatchNormalization knows the mean and the deviation of each channel over the training data. Each layer
 * with such a normalization gets an affine change of its channels that restores both. The idea of matching these
 * statistics is from ZeroQ (Cai et al., 2020) and Data-Free Quantization (Nagel et al., 2019). */
#ifndef OCT_QUANT_NORM_MATCH_H
#define OCT_QUANT_NORM_MATCH_H

#include "data/data.h"
#include "graph/graph.h"

/* What a BatchNormalization says about the value that it computes. */
typedef struct oct_norm_target {
    const char *value;
    int64_t channels;
    float *mean, *deviation; /* [channels] */
} oct_norm_target;

/* The targets of all BatchNormalizations with constant parameters in g, before passes fold them. In arena; names belong
 * to the graph. OCT_ENOMEM. */
oct_status oct_norm_targets(const oct_graph *g, oct_arena *arena, oct_norm_target **target, size_t *n, oct_err *err);

/* A copy of g, prepared, and with changed layers that reach their targets on the samples of src. src may be positioned
 * anywhere, and is left at its end. Values that are not computed by such layers have no targets. */
oct_status oct_synthetic_graph(const oct_graph *g, const oct_norm_target *target, size_t n, oct_source *src,
                               int threads, oct_graph **like, oct_err *err);

#endif
