/* What the records say of weights and work, for a node or a step. */
#include "ops/traits.h"

#include <math.h>

enum { MOST_SLOTS = 2 }; /* inputs with weights: W and R of a recurrent operator */

/* ---- weights ---- */

/* The inputs with weights of a node whose operator can be quantized as a layer, as oct_weights.slots; 0 for others. */
static uint32_t layer_slots(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return oct_op_is_layer(op) ? op->weights.slots : 0;
}

const oct_tensor *oct_layer_weights(const oct_graph *g, int node)
{
    const uint32_t slots = layer_slots(g, node);
    return slots ? oct_node_constant(g, &g->node[node], __builtin_ctz(slots)) : NULL;
}

const oct_tensor *oct_layer_bias(const oct_graph *g, int node)
{
    const int slot = layer_slots(g, node) ? oct_op_of(g, node)->weights.bias : 0;
    return slot ? oct_node_constant(g, &g->node[node], slot) : NULL;
}

bool oct_layer_layout(const oct_graph *g, int node, oct_weight_layout *l)
{
    const oct_tensor *w = oct_layer_weights(g, node);
    const oct_op *op = oct_op_of(g, node);
    return w && oct_weight_layout_of(op, &g->node[node], __builtin_ctz(op->weights.slots), w->rank, w->dims, l);
}

static bool is_constant_at(const oct_graph *g, const oct_node *n, int slot)
{
    return slot < n->n_in && n->in[slot] >= 0 && oct_value_is_constant(&g->value[n->in[slot]]);
}

/* Whether the constant factor of a product whose weights may be computed is the first one. */
static bool is_turned(const oct_graph *g, const oct_node *n, const oct_op *op)
{
    return op->weights.computed && is_constant_at(g, n, 0) && !is_constant_at(g, n, __builtin_ctz(op->weights.slots));
}

int64_t oct_layer_weight_count(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    const uint32_t own = op && op->experts ? op->experts : layer_slots(g, node),
                   slots = own && is_turned(g, &g->node[node], oct_op_of(g, node)) ? 1 : own;
    int64_t count = 0;
    for (int i = 0; i < 32; i++) {
        const int v = slots >> i & 1 && i < g->node[node].n_in ? g->node[node].in[i] : -1;
        int64_t d[OCT_MAX_RANK], n;
        if (v >= 0 && oct_value_is_constant(&g->value[v]) && oct_shape_known(&g->value[v].shape, d) &&
            oct_count(d, g->value[v].shape.rank, &n))
            count += n;
    }
    return count;
}

/* The first input with weights of a node that reports count as a layer; -1 for other nodes. */
static int counted_slot(const oct_op *op)
{
    const bool layer = op && (op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT || op->scheme);
    if (op && op->experts)
        return __builtin_ctz(op->experts);
    return !layer ? -1 : op->weights.slots ? __builtin_ctz(op->weights.slots) : 1;
}

bool oct_node_has_weights(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    const int slot = counted_slot(op);
    return slot >= 0 && (is_constant_at(g, n, slot) || (op->weights.slots && is_turned(g, n, op)));
}

bool oct_step_has_weights(const oct_step *s)
{
    const int slot = counted_slot(s->op);
    return slot >= 0 && slot < s->n_in && s->in[slot] &&
           (s->in[slot]->constant || (s->op->weights.computed && s->in[0] && s->in[0]->constant));
}

const char *oct_no_integer(const oct_op *op, const oct_node *n)
{
    return op->no_integer ? op->no_integer(n) : NULL;
}

/* ---- homogeneity ---- */

uint32_t oct_homogeneous_in(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    float lo, hi;
    if (!op)
        return 0;
    if (op->alias || op->permutes)
        return 1;
    const bool half_line =
        oct_op_clamp(g, node, &lo, &hi) && (lo == 0.0f || lo == -INFINITY) && (hi == 0.0f || hi == INFINITY);
    return half_line ? 1 : op->homogeneous;
}

/* Elements behind an index of a dimension; -1: unknown. */
static int64_t inner_of(const oct_shape *s, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < s->rank; d++)
        if (s->d[d].n < 0 || __builtin_mul_overflow(n, s->d[d].n, &n))
            return -1;
    return n;
}

/* The same bytes under other dimensions. */
static int aliased_axis(const oct_shape *x, const oct_shape *y, int axis)
{
    const int64_t inner = inner_of(x, axis);
    for (int d = 0; inner >= 0 && d < y->rank; d++)
        if (y->d[d].n == x->d[axis].n && inner_of(y, d) == inner)
            return d;
    return -1;
}

static int permuted_axis(const oct_node *n, const oct_shape *x, int axis)
{
    int count;
    const int64_t *perm = oct_node_ints(n, "perm", &count);
    for (int d = 0; perm && d < count; d++)
        if (perm[d] == axis)
            return d;
    return perm ? -1 : x->rank - 1 - axis;
}

/* In a reduction that drops dimensions, the kept dimension is recognized by its size, since inference copies known
 * sizes. */
static int axis_of_size(const oct_shape *x, const oct_shape *y, int axis)
{
    int found = -1;
    for (int d = 0; d < x->rank; d++)
        if (d != axis && x->d[d].n == x->d[axis].n)
            return -1;
    for (int d = 0; d < y->rank; d++)
        if (y->d[d].n == x->d[axis].n)
            found = d;
    return found;
}

int oct_kept_axis(const oct_graph *g, int node, int slot, int axis)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (!op || slot >= n->n_in || n->in[slot] < 0 || n->n_out < 1 || n->out[0] < 0)
        return -1;
    const oct_shape *x = &g->value[n->in[slot]].shape, *y = &g->value[n->out[0]].shape;
    if (axis < 0 || axis >= x->rank || y->rank < 1 || x->d[axis].n < 1)
        return -1;
    const int kept = op->alias           ? aliased_axis(x, y, axis)
                     : op->permutes      ? permuted_axis(n, x, axis)
                     : y->rank < x->rank ? axis_of_size(x, y, axis)
                                         : axis + y->rank - x->rank; /* as it is broadcast */
    return kept >= 0 && kept < y->rank && y->d[kept].n == x->d[axis].n ? kept : -1;
}

/* ---- work ---- */

/* Dimensions of a tensor; rank -1: absent or unknown, a dimension below 0: unknown. */
typedef struct extent {
    int rank;
    int64_t dims[OCT_MAX_RANK];
} extent;

/* The tensors of a node or a step that say how much it computes. */
typedef struct call {
    const oct_op *op;
    const oct_node *node;
    extent x, y; /* input 0 and output 0 */
    extent w[MOST_SLOTS];
    int slot[MOST_SLOTS], n_slot;
} call;

static void take_slots(call *c)
{
    for (int i = 0; i < 32; i++)
        if (c->op->weights.slots >> i & 1 && c->n_slot < MOST_SLOTS)
            c->slot[c->n_slot++] = i;
}

static int64_t count_of(const extent *e)
{
    if (e->rank < 0)
        return 0;
    for (int i = 0; i < e->rank; i++)
        if (e->dims[i] < 0)
            return 0;
    return oct_times_all(e->dims, e->rank);
}

/* The maximum number of kernel positions that contribute to one output of a transposed convolution: along a dimension,
 * those whose distance is a multiple of the stride. */
static int64_t taps_at_once(const oct_node *n, const extent *w)
{
    int n_stride, n_dilation;
    const int64_t *stride = oct_node_ints(n, "strides", &n_stride),
                  *dilation = oct_node_ints(n, "dilations", &n_dilation);
    int64_t taps = 1;
    for (int i = 0; i + 2 < w->rank; i++) {
        const int64_t s = i < n_stride && stride[i] > 0 ? stride[i] : 1;
        int64_t a = s, b = i < n_dilation && dilation[i] > 0 ? dilation[i] : 1;
        while (b) { /* a becomes the greatest common divisor */
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        const int64_t every = s / a;
        taps = oct_times(taps, w->dims[i + 2] / every + (w->dims[i + 2] % every != 0));
    }
    return taps;
}

/* The length of a dimension, which may be counted from the last; 0: unknown. */
static int64_t length_at(const extent *e, int axis)
{
    axis += axis < 0 ? e->rank : 0;
    return e->rank > 0 && axis >= 0 && axis < e->rank && e->dims[axis] > 0 ? e->dims[axis] : 0;
}

static int64_t depth_at(const call *c, int i)
{
    oct_weight_layout l;
    if (!count_of(&c->w[i]) || !oct_weight_layout_of(c->op, c->node, c->slot[i], c->w[i].rank, c->w[i].dims, &l))
        return 0;
    return oct_times(l.ins / l.groups, c->op->weights.kernel && c->op->work == OCT_WORK_INPUTS
                                           ? taps_at_once(c->node, &c->w[i])
                                           : l.taps);
}

/* If the weights do not determine it (they are packed, or of unknown shape), the data do, unless there is a kernel. */
static int64_t depth_of(const call *c)
{
    int64_t most = 0;
    for (int i = 0; i < c->n_slot; i++) {
        const int64_t depth = depth_at(c, i);
        most = depth > most ? depth : most;
    }
    return most || c->op->weights.kernel ? most : length_at(&c->x, oct_channel_axis(c->op, c->node));
}

static int64_t macs_of(const call *c)
{
    if (c->op->work == OCT_WORK_OUTPUTS)
        return oct_times(count_of(&c->y), depth_of(c));
    const int64_t channels = length_at(&c->x, oct_channel_axis(c->op, c->node));
    int64_t weights = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (__builtin_add_overflow(weights, count_of(&c->w[i]), &weights))
            return INT64_MAX;
    return channels ? oct_times(count_of(&c->x) / channels, weights) : 0;
}

static bool is_linear(const oct_op *op)
{
    return op && (op->work == OCT_WORK_OUTPUTS || op->work == OCT_WORK_INPUTS);
}

static extent extent_of_value(const oct_graph *g, const int *list, int n, int slot)
{
    extent e = { .rank = -1 };
    const oct_value *v = slot < n && list[slot] >= 0 ? &g->value[list[slot]] : NULL;
    const int rank = !v ? -1 : v->constant ? v->constant->rank : v->shape.rank;
    if (rank < 0 || rank > OCT_MAX_RANK)
        return e;
    e.rank = rank;
    for (int i = 0; i < e.rank; i++)
        e.dims[i] = v->constant ? v->constant->dims[i] : v->shape.d[i].n;
    return e;
}

static bool call_of_node(const oct_graph *g, int node, call *c)
{
    const oct_node *n = &g->node[node];
    *c = (call){ .op = oct_op_of(g, node), .node = n };
    if (!is_linear(c->op))
        return false;
    take_slots(c);
    c->x = extent_of_value(g, n->in, n->n_in, 0);
    c->y = extent_of_value(g, n->out, n->n_out, 0);
    for (int i = 0; i < c->n_slot; i++)
        c->w[i] = extent_of_value(g, n->in, n->n_in, c->slot[i]);
    return true;
}

static void count_one(extent *e, int batch)
{
    if (batch < e->rank && e->dims[batch] < 0)
        e->dims[batch] = 1;
}

int64_t oct_node_depth(const oct_graph *g, int node)
{
    call c;
    return call_of_node(g, node, &c) ? depth_of(&c) : 0;
}

int64_t oct_node_macs(const oct_graph *g, int node)
{
    call c;
    if (!call_of_node(g, node, &c))
        return 0;
    count_one(&c.x, c.op->batch_first && oct_node_int(c.node, c.op->batch_first, 0) ? 0 : c.op->batch);
    count_one(&c.y, 0);
    return macs_of(&c);
}

static extent extent_of_operand(oct_operand *const *list, int n, int slot)
{
    extent e = { .rank = -1 };
    const oct_operand *t = slot < n ? list[slot] : NULL;
    if (!t)
        return e;
    e.rank = t->rank;
    for (int i = 0; i < e.rank; i++)
        e.dims[i] = t->dims[i];
    return e;
}

int64_t oct_step_macs(const oct_step *s)
{
    call c = { .op = s->op, .node = s->node };
    if (!is_linear(c.op))
        return 0;
    take_slots(&c);
    c.x = extent_of_operand(s->in, s->n_in, 0);
    c.y = extent_of_operand(s->out, s->n_out, 0);
    for (int i = 0; i < c.n_slot; i++)
        c.w[i] = extent_of_operand(s->in, s->n_in, c.slot[i]);
    return macs_of(&c);
}
