/* lib/passes/fuse.h -- shared by fusions: weights as editable copies, and constants that scale or shift channels. */
#ifndef OCT_PASSES_FUSE_H
#define OCT_PASSES_FUSE_H

#include "ops/traits.h"
#include "passes/pass.h"

/* A node that multiplies by constant float weights: Conv, ConvTranspose, Gemm (2-D B) or MatMul with 2-D B. */
typedef struct oct_layer {
    int node;
    oct_weight_layout weights;
    int64_t channels; /* of the output */
    bool conv;        /* output is [N, C, spatial...]; else channels are the last dimension */
} oct_layer;

/* Whether node is such a layer, with weights that are a constant f32 of known shape, and a bias that is absent or a
 * constant f32[channels] (Gemm: beta 1 or no bias, alpha 1). */
bool oct_layer_of(const oct_graph *g, int node, oct_layer *l);
/* The same, but weights may also be bf16; then only the bias can be changed. */
bool oct_biased_layer_of(const oct_graph *g, int node, oct_layer *l);

/* The only reader of a value: a node that reads it once, at `slot`, if the value is visible nowhere else; otherwise
 * -1. */
int oct_sole_reader(const oct_graph *g, int value, int *slot);

/* A constant f32 tensor that, broadcast against the layer's output, gives one value per channel or one for all; fills
 * v[channels] (allocated in the graph's arena). rank: of the layer's output. False otherwise. */
bool oct_channel_const(oct_graph *g, int value, const oct_layer *l, int rank, float **v);

/* Whether the layer's weights may be multiplied. Two kinds may not: weights that were computed from smaller constants;
 * and weights that other layers share, because they would then be stored once for each layer. Shared weights may be
 * multiplied if they are small, or if each layer with them is followed by a node like `tail`, which multiplies this
 * layer's output (-1: there is no such node). */
bool oct_layer_scalable(const oct_graph *g, const oct_layer *l, int tail);

/* Multiplies the output channels by scale[c] and adds shift[c]; either may be NULL. Weights and bias are replaced by
 * new constants, named after the old ones. The arithmetic is in double and rounded once. */
oct_status oct_layer_affine(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err);

/* The number of channels (dimension 1) of a BatchNormalization with constant parameters; 0: the node is something
 * else. */
int64_t oct_norm_channels(const oct_graph *g, int node);
/* Makes depthwise convolutions, with a kernel of one element, of all such nodes in g and its subgraphs whose input is
 * known to have three dimensions or more. */
oct_status oct_norms_to_convs(oct_graph *g, const oct_pass_log *log, oct_err *err);
/* What the BatchNormalization says about the training data: mean and standard deviation of each channel of its output,
 * [channels]. */
void oct_norm_moments(const oct_graph *g, int node, float *mean, float *deviation);

/* Makes the layer compute the output of `tail`, a node after it, and removes tail. */
oct_status oct_layer_absorb(oct_graph *g, int layer, int tail, oct_err *err);

#endif
