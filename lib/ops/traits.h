/* lib/ops/traits.h -- what follows for a node from its operator's record: how its weights lie, how much it computes.
 *
 * All code that needs to know which dimension holds the channels, or how much a layer multiplies, asks here. */
#ifndef OCT_OPS_TRAITS_H
#define OCT_OPS_TRAITS_H

#include "ops/op.h"

/* How weights lie. Output channel o and input channel c, both counted within their group, meet at kernel position t in
 * the element matrix * outs * ins * taps + group * group_step + o * out_step + c * in_step + t. */
typedef struct oct_weight_layout {
    int out_axis,
        in_axis;      /* dimensions along which output and input channels lie; out_axis is -1 for a vector of MatMul */
    int64_t matrices; /* in the leading dimensions: a batch, or directions; 1 with a kernel */
    int64_t groups;
    int64_t outs, ins; /* channels of all groups together */
    int64_t taps;      /* positions of the kernel; 1 without */
    int64_t group_step, out_step, in_step;
} oct_weight_layout;

/* The layout of weights of dims[rank] as input `slot`; false when this input holds no weights, or the groups do not
 * divide them. Dimensions that are not known may be below 0; what follows from them is then unspecified. */
bool oct_weight_layout_of(const oct_op *op, const oct_node *n, int slot, int rank, const int64_t *dims,
                          oct_weight_layout *l);

/* The output and the input channel, over all groups, of element e of a kernel or a matrix, which must have it. */
int64_t oct_output_channel(const oct_weight_layout *l, int64_t e);
int64_t oct_input_channel(const oct_weight_layout *l, int64_t e);

/* The element of weight k = c * taps + t of output channel `out`, both counted within the group; groups of all matrices
 * are counted on. */
static inline int64_t oct_weight_at(const oct_weight_layout *l, int64_t group, int64_t out, int64_t k)
{
    return group * l->group_step + out * l->out_step + k / l->taps * l->in_step + k % l->taps;
}

/* Whether each input channel is a group of its own, as in depthwise convolutions. */
bool oct_is_depthwise(const oct_weight_layout *l);

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
/* Elements of all constant weights of such a node; 0 for others. */
int64_t oct_layer_weight_count(const oct_graph *g, int node);

/* Whether a node or a step is a layer with weights, as reports count them: a product or a recurrent layer of constant
 * weights, be they reals, quantized values, or in the form of an operator that computes on these by itself. */
bool oct_node_has_weights(const oct_graph *g, int node);
bool oct_step_has_weights(const oct_step *s);

/* Whether a node's results leave the range of its inputs: OCT_GROWS_NOT, OCT_GROWS_SUMS or OCT_GROWS. */
oct_growth oct_node_growth(const oct_graph *g, int node);
/* Whether its results are of moderate size whatever that of its inputs: by its operator, or as it divides something by
 * what was reduced from it (x / sqrt(mean(x * x)), e / sum(e)). */
bool oct_node_settles(const oct_graph *g, int node);

/* Bit i: small values of input i decide about its results (oct_op.delicate, but for powers of a constant from 0 on). */
uint32_t oct_node_delicate(const oct_graph *g, int node);

/* Why a node has no integer form with its attributes, in one clause; NULL: it has one. */
const char *oct_no_integer(const oct_op *op, const oct_node *n);

/* The dimension of input 0 along which a node's input channels lie; below 0: counted from the last. */
int oct_channel_axis(const oct_op *op, const oct_node *n);

/* The inputs in which output 0 of a node is positively homogeneous, as oct_op.homogeneous says, with what follows for
 * clamps, aliases and permutations; 0: in none. */
uint32_t oct_homogeneous_in(const oct_graph *g, int node);
/* The dimension of output 0 that has the indices of dimension `axis` of input `slot` of such a node; -1: none that is
 * known to. */
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
