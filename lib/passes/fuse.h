/* lib/passes/fuse.h -- what fusions share: weights as editable copies, constants that scale or shift channels. */
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

/* Whether node is such a layer, its weights constant f32 of known shape, and its bias absent or constant f32[channels]
 * (Gemm: beta 1 or no bias, alpha 1). */
bool oct_layer_of(const oct_graph *g, int node, oct_layer *l);
/* The same where its weights may be bf16, too: then its bias alone can change. */
bool oct_biased_layer_of(const oct_graph *g, int node, oct_layer *l);

/* The only reader of value: a node that reads it once, at `slot`, where nothing else shows the value; -1 otherwise. */
int oct_sole_reader(const oct_graph *g, int value, int *slot);

/* A constant f32 tensor that, broadcast against the layer's output, gives one value per channel or one for all; fills
 * v[channels] (allocated in the graph's arena). rank: of the layer's output. False otherwise. */
bool oct_channel_const(oct_graph *g, int value, const oct_layer *l, int rank, float **v);

/* Whether the layer's weights may be multiplied: not those that were computed from smaller constants, and not those that other layers have, too, which
 * would be stored once for each, unless they are small or
 * `tail`, a node behind the layer that multiplies what it makes (-1: none does), has its like behind each of them. */
bool oct_layer_scalable(const oct_graph *g, const oct_layer *l, int tail);

/* Multiplies the output channels by scale[c] and adds shift[c] (either may be NULL): weights and bias are replaced by new
 * constants named after the old ones. Arithmetic in double, rounded once. */
oct_status oct_layer_affine(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err);

/* How many channels, dimension 1, a BatchNormalization with constant parameters has; 0: the node is none. */
int64_t oct_norm_channels(const oct_graph *g, int node);
/* What it says of the data it was trained with: the mean and the deviation of each channel of its output, [channels]. */
void oct_norm_moments(const oct_graph *g, int node, float *mean, float *deviation);

/* Makes the layer produce what `tail` (a node behind it) produced, and removes tail. */
oct_status oct_layer_absorb(oct_graph *g, int layer, int tail, oct_err *err);

#endif
