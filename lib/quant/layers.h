/* lib/quant/layers.h -- the layers of a job as reports show them: names, work, and how many became what. */
#ifndef OCT_QUANT_LAYERS_H
#define OCT_QUANT_LAYERS_H

#include "quant/quant.h"

typedef struct oct_layer {
    oct_layer_decision d; /* why: NULL never */
    const char *own;      /* name of the node, or of its first output */
    const char *name;     /* the same behind the path to it: "If_3/then_branch/conv" */
    bool product;         /* Conv, Gemm, MatMul or a recurrent layer with constant weights */
    int64_t weight_count; /* elements of all its constant weights; 0 where it has none */
    int64_t depth;        /* oct_node_depth: products summed for an element; 0: unknown or none */
    int64_t macs;         /* of one run, a free batch counting as one; 0: unknown or none */
    double loss;          /* share of the loss at the outputs that rounding its result and its weights causes, as far as a conversion measured it; 0 */
} oct_layer;

/* All layers of the job, as they are decided now (before oct_qjob_decide: as they are meant to be), in arena. What the file has quantized
 * already counts as such where it stays and the target runs it; nodes that spell its quantization are no layers. */
oct_status oct_layers_list(const oct_qjob *j, oct_arena *arena, oct_layer **layers, size_t *n, oct_err *err);

/* How many of the layers became what; every report takes its numbers from here. */
typedef struct oct_layer_count {
    size_t nodes, integer_nodes;
    size_t products, integer; /* layers with weights; those that integers compute ... */
    size_t half;              /* ... or 16-bit floats ... */
    size_t blocks4, blocks8;  /* ... and those with weights in blocks, by bits */
    int64_t weights, integer_weights, macs, integer_macs;
} oct_layer_count;
oct_layer_count oct_layers_count(const oct_layer *layers, size_t n);

/* What oct_graph_macs says of one sample, that is, a row of a batch that is fixed; 1 or more. */
int64_t oct_sample_macs(const oct_graph *g);

static inline bool oct_layer_is_quantized(const oct_layer *l)
{
    return l->d.scheme != OCT_SCHEME_FLOAT;
}
static inline bool oct_layer_is_weight_only(const oct_layer *l)
{
    return l->d.scheme == OCT_SCHEME_WEIGHT_ONLY || l->d.scheme == OCT_SCHEME_STORED;
}

#endif
