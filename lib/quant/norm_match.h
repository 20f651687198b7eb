/* lib/quant/norm_match.h -- statistics from made samples: a graph that takes them as the model takes the data it was trained with.
 *
 * Features of made pictures are weaker than those of real ones, the more so the deeper a layer. What BatchNormalization knows of the training
 * data, the mean and the deviation of each channel behind it, tells by how much: each such layer is given the affine change of its channels
 * that restores both (the idea of matching these statistics is from ZeroQ, Cai et al., 2020, and Data-Free Quantization, Nagel et al., 2019). */
#ifndef OCT_QUANT_NORM_MATCH_H
#define OCT_QUANT_NORM_MATCH_H

#include "data/data.h"
#include "graph/graph.h"

/* What a BatchNormalization says of the value that it makes. */
typedef struct oct_norm_target {
    const char *value;
    int64_t channels;
    float *mean, *deviation; /* [channels] */
} oct_norm_target;

/* Targets of all such nodes with constant parameters in g, before passes fold them; in arena, with names of the graph's. OCT_ENOMEM. */
oct_status oct_norm_targets(const oct_graph *g, oct_arena *arena, oct_norm_target **target, size_t *n, oct_err *err);

/* A copy of g, prepared and with the targets folded into layers, whose layers reach their targets on samples of src (positioned anywhere; it
 * is left at an end). Values that are made by no such layer have none. */
oct_status oct_synthetic_graph(const oct_graph *g, const oct_norm_target *target, size_t n, oct_source *src, int threads, oct_graph **like,
                               oct_err *err);

#endif
