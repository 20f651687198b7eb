/* lib/ops/weight_axes.h -- which axes of weights are the output and input channels, by the operator's record. */
#ifndef OCT_OPS_WEIGHT_AXES_H
#define OCT_OPS_WEIGHT_AXES_H

#include "ops/op.h"

/* A product of sizes; INT64_MAX where it is larger. */
static inline int64_t oct_times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t oct_times_all(const int64_t *dims, int n)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        product = oct_times(product, dims[i]);
    return product;
}

/* The layout of weights. The weight of output channel o and input channel c, both counted within their group, at kernel
 * position t is the element matrix * outs * ins * taps + group * group_step + o * out_step + c * in_step + t. */
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

/* The dimension of input 0 along which a node's input channels lie; below 0: counted from the last. */
int oct_channel_axis(const oct_op *op, const oct_node *n);

#endif
