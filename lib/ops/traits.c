/* What the records say of weights, for a node. */
#include "ops/traits.h"

/* A product of sizes; INT64_MAX where it is larger. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t product_of(const int64_t *dims, int n)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        product = times(product, dims[i]);
    return product;
}

static bool is_set(const oct_node *n, const char *attr)
{
    return attr && oct_node_int(n, attr, 0) != 0;
}

/* ---- weights ---- */

static bool kernel_layout(const oct_weights *w, const oct_node *n, int rank, const int64_t *dims, oct_weight_layout *l)
{
    const int64_t groups = oct_node_int(n, "group", 1);
    if (rank < 2 || groups < 1)
        return false;
    const int64_t taps = product_of(dims + 2, rank - 2), row = times(dims[1], taps);
    *l = (oct_weight_layout){ .out_axis = w->out, .in_axis = w->in, .matrices = 1, .groups = groups, .taps = taps };
    l->group_step = times(dims[0] / groups, row);
    l->outs = w->out == 0 ? dims[0] : times(dims[1], groups);
    l->ins = w->in == 0 ? dims[0] : times(dims[1], groups);
    l->out_step = w->out == 0 ? row : taps;
    l->in_step = w->in == 0 ? row : taps;
    return true;
}

static bool matrix_layout(const oct_weights *w, const oct_node *n, int rank, const int64_t *dims, oct_weight_layout *l)
{
    const bool turned = is_set(n, w->turned);
    *l = (oct_weight_layout){ .out_axis = -1, .matrices = 1, .groups = 1, .outs = 1, .taps = 1, .out_step = 1, .in_step = 1 };
    if (rank < 1)
        return false;
    if (rank == 1) {
        l->ins = dims[0];
        return true;
    }
    l->out_axis = rank + (turned ? w->in : w->out);
    l->in_axis = rank + (turned ? w->out : w->in);
    l->matrices = product_of(dims, rank - 2);
    l->outs = dims[l->out_axis];
    l->ins = dims[l->in_axis];
    l->group_step = times(l->outs, l->ins);
    l->out_step = l->out_axis == rank - 1 ? 1 : l->ins;
    l->in_step = l->in_axis == rank - 1 ? 1 : l->outs;
    return true;
}

bool oct_weight_layout_of(const oct_op *op, const oct_node *n, int slot, int rank, const int64_t *dims, oct_weight_layout *l)
{
    if (!op || slot < 0 || slot > 31 || !(op->weights.slots >> slot & 1))
        return false;
    return op->weights.kernel ? kernel_layout(&op->weights, n, rank, dims, l) : matrix_layout(&op->weights, n, rank, dims, l);
}

bool oct_is_depthwise(const oct_weight_layout *l)
{
    return l->groups > 1 && l->ins == l->groups;
}

static const oct_tensor *constant_at(const oct_graph *g, const oct_node *n, int slot)
{
    return slot < n->n_in && n->in[slot] >= 0 ? g->value[n->in[slot]].konst : NULL;
}

/* The weights of a node whose operator quantization knows as a layer; 0 for others. */
static uint32_t layer_slots(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return op && (op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT) ? op->weights.slots : 0;
}

const oct_tensor *oct_layer_weights(const oct_graph *g, int node)
{
    const uint32_t slots = layer_slots(g, node);
    return slots ? constant_at(g, &g->node[node], __builtin_ctz(slots)) : NULL;
}

const oct_tensor *oct_layer_bias(const oct_graph *g, int node)
{
    const int slot = layer_slots(g, node) ? oct_op_of(g, node)->weights.bias : 0;
    return slot ? constant_at(g, &g->node[node], slot) : NULL;
}

bool oct_layer_layout(const oct_graph *g, int node, oct_weight_layout *l)
{
    const oct_tensor *w = oct_layer_weights(g, node);
    const oct_op *op = oct_op_of(g, node);
    return w && oct_weight_layout_of(op, &g->node[node], __builtin_ctz(op->weights.slots), w->rank, w->dims, l);
}

int64_t oct_layer_weight_count(const oct_graph *g, int node)
{
    const uint32_t slots = layer_slots(g, node);
    int64_t count = 0;
    for (int i = 0; i < 32; i++) {
        const oct_tensor *w = slots >> i & 1 ? constant_at(g, &g->node[node], i) : NULL;
        count += w ? w->count : 0;
    }
    return count;
}

int oct_channel_axis(const oct_op *op, const oct_node *n)
{
    return is_set(n, op->weights.data_turned) ? -3 - op->weights.data : op->weights.data;
}
