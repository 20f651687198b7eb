/* lib/quant/job/layers.h -- the layers of a job as reports show them: names, amount of work, and how many run in which
 * way. */
#ifndef OCT_QUANT_LAYERS_H
#define OCT_QUANT_LAYERS_H

#include "quant/quant.h"

typedef struct oct_layer {
    oct_layer_decision d; /* why is never NULL */
    const char *own;      /* the name of the node, or of its first output */
    const char *name;     /* the same with the path to its graph in front: "If_3/then_branch/conv" */
    bool product;         /* it is a Conv, Gemm, MatMul or recurrent layer with constant weights */
    int64_t weight_count; /* the number of its constant weights; 0 if it has none */
    int64_t depth;        /* oct_node_depth: how many products are summed for an output element; 0: unknown or none */
    int64_t macs; /* multiply-accumulates of one run, where a batch size that is not fixed counts as one; 0: unknown or
                     none */
    double loss;  /* share of the loss at the outputs that rounding its output and its weights causes; 0 if that was not
                     measured */
    int *from;    /* [n_from]: places in the list of the layers that make its inputs; none inside bodies */
    size_t n_from;
} oct_layer;

/* All layers of the job with their current decisions (before oct_qjob_decide: with the intended ones), in arena. A
 * layer that the file has quantized counts as quantized if it stays so and the target runs it. Nodes that express its
 * quantization are not layers. */
oct_status oct_layers_list(const oct_qjob *j, oct_arena *arena, oct_layer **layers, size_t *n, oct_err *err);

/* How many layers run in which way. All reports take these numbers from here. */
typedef struct oct_layer_count {
    size_t nodes, integer_nodes;
    size_t products, integer; /* layers with weights, and those of them that compute on integers */
    size_t half;              /* those that compute in 16-bit floats */
    size_t blocks4, blocks8;  /* those with weights in blocks, by number of bits */
    int64_t weights, integer_weights, macs, integer_macs;
} oct_layer_count;
oct_layer_count oct_layers_count(const oct_layer *layers, size_t n);

/* A share of the multiply-accumulates for people: "12.3 % of the multiply-accumulates", "less than 0.1 % of ...", "no
 * multiply-accumulates", "all ...". Returns dst. */
enum { OCT_MACS_TEXT = 64 };
const char *oct_macs_text(char dst[OCT_MACS_TEXT], double share);

/* The oct_graph_macs of one sample, that is, of one row if the batch size is fixed; at least 1. */
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
