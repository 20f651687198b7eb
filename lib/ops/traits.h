/* lib/ops/traits.h -- properties of a node that follow from its operator's record: its weights, its work.
 *
 * All code that needs to know which dimension holds the channels (weight_axes.h), or how much a layer multiplies, asks
 * here. */
#ifndef OCT_OPS_TRAITS_H
#define OCT_OPS_TRAITS_H

#include "ops/weight_axes.h"

/* Whether an operator is linear in its weights and can be quantized as a layer: products and recurrent operators. op
 * may be NULL. */
static inline bool oct_op_is_layer(const oct_op *op)
{
    return op && (op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT);
}

/* The first weights of a node of an operator that is linear in them and can be quantized, where they are constant; else
 * NULL. */
const oct_tensor *oct_layer_weights(const oct_graph *g, int node);
/* Their layout; false where oct_layer_weights gives NULL, or the layout is not known. */
bool oct_layer_layout(const oct_graph *g, int node, oct_weight_layout *l);
/* The constant that is added to the output channels of such a node, or NULL. */
const oct_tensor *oct_layer_bias(const oct_graph *g, int node);
/* Elements of all constant weights of such a node, or of experts; 0 for others. */
int64_t oct_layer_weight_count(const oct_graph *g, int node);

/* Whether a node or a step counts as a layer with weights in reports: a product or a recurrent operator with constant
 * weights, either floats, quantized values, experts, or in an operator that is defined on quantized weights. */
bool oct_node_has_weights(const oct_graph *g, int node);
bool oct_step_has_weights(const oct_step *s);

/* Whether a node's results leave the range of its inputs: OCT_GROWS_NOT, OCT_GROWS_SUMS or OCT_GROWS. */
oct_growth oct_node_growth(const oct_graph *g, int node);
/* Whether its results have moderate magnitudes for inputs of any magnitude: by its operator, or because it divides a
 * value by a reduction of it (x / sqrt(mean(x * x)), e / sum(e)). */
bool oct_node_compresses(const oct_graph *g, int node);

/* Bit i: small values of input i are critical (oct_op.delicate, except for powers with a constant exponent of at least
 * 0). */
uint32_t oct_node_delicate(const oct_graph *g, int node);

/* Why a node has no integer form with its attributes, in one clause; NULL: it has one. */
const char *oct_no_integer(const oct_op *op, const oct_node *n);

/* The inputs in which output 0 of a node is positively homogeneous: oct_op.homogeneous, also for clamps, aliases and
 * permutations; 0: none. */
uint32_t oct_homogeneous_in(const oct_graph *g, int node);
/* The dimension of output 0 of such a node that corresponds to dimension `axis` of input `slot`; -1: unknown. */
int oct_kept_axis(const oct_graph *g, int node, int slot, int axis);

/* The largest number of products that a node sums for one element of an output, ignoring borders; 0: unknown or none.
 * For a recurrent operator, of one of its matrices. */
int64_t oct_node_depth(const oct_graph *g, int node);

/* Multiply-accumulates of one run. A convolution counts all positions of the kernel, also on padding; a transposed one
 * all elements that it adds up, also those that pads cut off. INT64_MAX when there are more. 0: the operator has none,
 * or shapes are unknown. In a graph, an unknown batch counts as one. */
int64_t oct_node_macs(const oct_graph *g, int node);
int64_t oct_step_macs(const oct_step *s);

#endif
