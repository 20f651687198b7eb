/* Sums and products of two values in targets that carry dequantizers forward: which layer they become part of, and what a pass of their own reads. Seen in
 * OpenVINO's execution graphs (scripts/checks/check_lint.py). */
#include "targets/carried_int.h"

/* The input of x * sigmoid(x), x being read twice, or -1. */
static int swish_input(const carrier *c, const oct_node *n)
{
    for (int i = 0; i < 2 && n->n_in == 2; i++) {
        const int p = lone_producer(c, n->in[1 - i]);
        if (p >= 0 && oct_is_op(&c->g->node[p], "Sigmoid") && c->g->node[p].in[0] == n->in[i] && c->g->value[n->in[i]].n_uses == 2)
            return n->in[i];
    }
    return -1;
}

/* The input of a node of two that a constant scales; -1: none. */
static int scaled_input(const carrier *c, const oct_node *n)
{
    const bool product = oct_is_op(n, "Mul");
    for (int i = 0; i < 2 && n->n_in == 2 && (product || oct_is_op(n, "Div")); i++)
        if (is_constant(c, n->in[1 - i]) && (product || i == 0))
            return n->in[i];
    return -1;
}

/* The node before n whose layer n becomes part of: what scales by a constant, and x * sigmoid(x); -1: none. */
static int joined(const carrier *c, const oct_node *n)
{
    const int x = oct_is_op(n, "Mul") ? swish_input(c, n) : -1;
    if (x >= 0)
        return c->g->value[x].producer;
    return lone_producer(c, oct_is_op(n, "BatchNormalization") ? n->in[0] : scaled_input(c, n));
}

static bool is_fixed(const oct_shape *s)
{
    bool fixed = s->rank >= 0;
    for (int i = 0; i < s->rank; i++)
        fixed &= s->d[i].n >= 0;
    return fixed;
}

/* Whether a layer's bias is a pass of real numbers behind it: several nodes read it, and dimensions are free. */
static bool has_bias_apart(const carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    const int b = oct_op_of(c->g, id)->weights.bias ? oct_input_at(n, oct_op_of(c->g, id)->weights.bias) : -1;
    return b >= 0 && c->g->value[b].n_uses > 1 && !is_fixed(&c->g->value[n->out[0]].shape);
}

/* Whether a node is a layer that takes in a sum behind it. */
static bool takes_sum(const carrier *c, int id)
{
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    const oct_target_op *e = op ? line_of(c, &c->g->node[id]) : NULL;
    return e && e->takes_sum && op->quant == OCT_QUANT_WEIGHTED && !has_bias_apart(c, id);
}

/* The layer on integers that takes in a sum behind a node, where that is the layer or part of it; -1: none. */
static int layer_at(const carrier *c, int id)
{
    for (int next; id >= 0 && (next = joined(c, &c->g->node[id])) >= 0;)
        id = next;
    return takes_sum(c, id) && c->stand[id].kind == OCT_STANDS_INTEGER ? id : -1;
}

/* The layer on integers whose result alone is this input of a sum, which it takes in; -1: none. */
static int layer_before(const carrier *c, int value)
{
    return layer_at(c, lone_producer(c, value));
}

/* Whether a value is read behind a node: a layer that adds to it writes its result in its place. */
static bool read_later(const carrier *c, int value, int id)
{
    const oct_value *v = &c->g->value[value];
    bool later = v->is_output;
    for (size_t i = 0; i < v->n_uses && !later; i++)
        later = c->place[v->uses[i].node] > c->place[id];
    return later;
}

/* Whether a constant is one number, or one for each channel of what it is added to, as a bias is. */
static bool is_bias(const carrier *c, int constant, int sum)
{
    const oct_shape *k = &c->g->value[constant].shape, *y = &c->g->value[c->g->node[sum].out[0]].shape;
    bool bias = k->rank >= 0 && y->rank >= 0;
    for (int i = 0; i < k->rank; i++)
        bias &= k->d[i].n == 1 || i + y->rank - k->rank == 1;
    return bias;
}

/* Whether a quantizer alone reads a node's result, or what clamps it. */
static bool is_quantized_behind(const carrier *c, int id)
{
    int next = only_reader(c->g, c->g->node[id].out[0]);
    if (next >= 0 && oct_op_of(c->g, next) && oct_op_of(c->g, next)->clamp)
        next = only_reader(c->g, c->g->node[next].out[0]);
    return next >= 0 && oct_linear_is(c->g, &c->g->node[next], "QuantizeLinear");
}

/* Whether the other input of a sum is of real numbers and keeps it from a layer: a constant that is no bias, without a quantizer behind the sum; or it is
 * read behind, or dimensions are fixed and no Conv on real numbers makes it, as the sum is generated with what is around it then. */
static bool keeps_from_layer(const carrier *c, int other, int id)
{
    const int p = lone_producer(c, other);
    if (oct_linear_constant(c->g, other))
        return !is_bias(c, other, id) && !is_quantized_behind(c, id);
    const bool conv = p >= 0 && oct_is_op(&c->g->node[p], "Conv") && c->stand[p].kind == OCT_STANDS_FLOAT;
    return !before(c, other) && (read_later(c, other, id) || (is_fixed(&c->g->value[c->g->node[id].out[0]].shape) && !conv));
}

/* The layer on integers that the sum of two becomes part of; -1: none. */
static int layer_of_sum(const carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    for (int i = 0; i < 2 && n->n_in == 2; i++) {
        const int layer = layer_before(c, n->in[i]), other = n->in[1 - i];
        if (layer >= 0 && other >= 0 && !keeps_from_layer(c, other, id))
            return layer;
    }
    return -1;
}

/* The quantizer or dequantizer (type) that makes a value which one node alone reads; -1: none. */
static int before_linear(const carrier *c, int value, const char *type)
{
    const int id = lone_producer(c, value);
    return id >= 0 && oct_linear_is(c->g, &c->g->node[id], type) ? id : -1;
}

/* What makes the real numbers of an input that is quantized for this node alone; -1: none, or they are read elsewhere. */
static int before_quantizer(const carrier *c, int value)
{
    const int d = before_linear(c, value, "DequantizeLinear");
    const int q = d >= 0 ? before_linear(c, c->g->node[d].in[0], "QuantizeLinear") : -1;
    return q >= 0 ? lone_producer(c, c->g->node[q].in[0]) : -1;
}

static bool reads_constant(const carrier *c, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= is_constant(c, n->in[i]);
    return any;
}

/* How many numbers a constant has, before it is dequantized. */
static int64_t count_of(const carrier *c, int constant)
{
    const oct_tensor *k = oct_linear_constant(c->g, constant);
    return (k ? k : oct_linear_constant(c->g, before(c, constant)->in[0]))->count;
}

/* Whether a node reads a constant that becomes part of it: of real numbers, or one number. */
static bool folds_constant(const carrier *c, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= is_constant(c, n->in[i]) && (oct_linear_constant(c->g, n->in[i]) || count_of(c, n->in[i]) == 1);
    return any;
}

/* Whether an input is quantized for this node alone, of what arithmetic on two values of real numbers makes, or the bias of a layer that is apart: it is
 * computed in the same pass as that. */
static bool follows_reals(const carrier *c, int value)
{
    const int id = before_quantizer(c, value);
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    if (op && op->quant == OCT_QUANT_WEIGHTED)
        return has_bias_apart(c, id);
    return op && op->quant == OCT_QUANT_ARITH && c->stand[id].kind == OCT_STANDS_FLOAT && !folds_constant(c, &c->g->node[id]) && layer_at(c, id) < 0;
}

static bool takes_quantizers(const oct_target_op *e)
{
    return e && (e->takes_quantizer || e->takes_shared_quantizer);
}

/* The input of a node that computes element by element on nothing else but constants; -1: it does not. */
static int only_operand(const carrier *c, const oct_node *n, const oct_op *op)
{
    for (int i = 0; i < 2 && op->adds && n->n_in == 2; i++)
        if (is_constant(c, n->in[1 - i]))
            return n->in[i];
    if (scaled_input(c, n) >= 0)
        return scaled_input(c, n);
    return op->clamp || (op->quant == OCT_QUANT_UNARY && !takes_quantizers(line_of(c, n))) ? n->in[0] : -1;
}

/* The line of the operator that takes in the quantizer of a value which that alone reads, with what is computed element by element before it; or NULL. */
static const oct_target_op *taker_of(const carrier *c, int value)
{
    for (int id = lone_producer(c, value), next; id >= 0; id = next) {
        const oct_node *n = &c->g->node[id];
        const oct_op *op = oct_op_of(c->g, id);
        const oct_target_op *e = op ? line_of(c, n) : NULL;
        if (!op || takes_quantizers(e))
            return e;
        next = joined(c, n);
        if (next < 0)
            next = lone_producer(c, only_operand(c, n, op));
    }
    return NULL;
}

/* Whether a node moves bytes. */
static bool moves_bytes(const carrier *c, int id)
{
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    return op && op->quant == OCT_QUANT_SAME && c->stand[id].kind == OCT_STANDS_INTEGER;
}

/* Whether an input comes as bytes where dimensions are fixed. If not, its quantizer is generated with the node that reads it, as one pass that reads real
 * numbers: unless the quantizer is part of what is before it. alone: the other input is constant. */
static bool comes_as_bytes(const carrier *c, int value, bool alone)
{
    const oct_node *d = before(c, value);
    if (!is_carried(c, value) || is_constant(c, value))
        return false;
    while (value != d->out[0]) {
        const int p = c->g->value[value].producer;
        if (moves_bytes(c, p) || !oct_op_of(c->g, p))
            return true;
        value = oct_is_op(&c->g->node[p], "Mul") ? scaled_input(c, &c->g->node[p]) : c->g->node[p].in[0];
    }
    const int q = c->g->value[d->in[0]].producer, real = q >= 0 ? c->g->node[q].in[0] : -1;
    if (q < 0 || !oct_linear_is(c->g, &c->g->node[q], "QuantizeLinear") || moves_bytes(c, c->g->value[real].producer))
        return true;
    const bool shared = !oct_value_used_once(&c->g->value[d->in[0]]) || !oct_value_used_once(&c->g->value[d->out[0]]);
    const oct_target_op *e = taker_of(c, real);
    return e && (e->takes_quantizer || shared || alone);
}

/* Arithmetic on integers whose result this input alone is, but for what is computed on that element by element; -1: there is none. */
static int arithmetic_before(const carrier *c, int value)
{
    int id = lone_producer(c, value);
    for (const oct_op *op; id >= 0; id = op ? lone_producer(c, only_operand(c, &c->g->node[id], op)) : -1) {
        op = oct_op_of(c->g, id);
        if (op && op->quant == OCT_QUANT_ARITH && c->stand[id].kind == OCT_STANDS_INTEGER && c->stand[id].with < 0)
            return id;
    }
    return -1;
}

/* Whether the dequantizer of a value that a constant is added to is a node of its own where dimensions are free: it subtracts a zero point, or values are
 * u8 and the constant is not one number. */
static bool dequantizes_apart(const carrier *c, const oct_node *n)
{
    bool apart = false, single = true;
    for (int i = 0; i < n->n_in; i++)
        single &= !is_constant(c, n->in[i]) || count_of(c, n->in[i]) == 1;
    for (int i = 0; i < n->n_in; i++)
        if (is_carried(c, n->in[i]) && !is_constant(c, n->in[i]))
            apart |= oct_linear_zero(c->g, before(c, n->in[i])) != 0 || (oct_linear_type(c->g, before(c, n->in[i])) == OCT_U8 && !single);
    return apart;
}

/* Why arithmetic on two values of which one at least is quantized computes on real numbers; NULL: it reads bytes. Where dimensions are fixed it is generated as
 * one pass with what is around it, quantizers included. Else quantizers are nodes of their own, or part of what is before them. */
const char *oct_carried_on_reals(const carrier *c, const oct_node *n)
{
    bool bytes = false, reals = false, layer = false;
    for (int i = 0; i < n->n_in; i++) {
        bytes |= comes_as_bytes(c, n->in[i], reads_constant(c, n));
        reals |= follows_reals(c, n->in[i]);
        layer |= layer_at(c, before_quantizer(c, n->in[i])) >= 0;
    }
    if (is_fixed(&c->g->value[n->out[0]].shape))
        return bytes ? NULL : "its inputs are quantized in the same pass";
    if (reads_constant(c, n))
        return dequantizes_apart(c, n) ? "one of its inputs is constant, and dimensions are free" : NULL;
    return reals && !layer ? "part of the arithmetic on real numbers before it" : NULL;
}

/* A sum: part of a layer or of what is computed before it, or a pass of its own that reads at least one of its inputs as bytes. */
void oct_carried_judge_sum(carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    int with = layer_of_sum(c, id);
    bool bytes = false;
    for (int i = 0; i < n->n_in; i++) {
        with = with < 0 ? arithmetic_before(c, n->in[i]) : with;
        bytes |= is_carried(c, n->in[i]) && !is_constant(c, n->in[i]);
    }
    settle(c, id, with >= 0 ? NULL : !bytes ? "its inputs are not quantized" : oct_carried_on_reals(c, n));
    if (with >= 0)
        c->stand[id] = (oct_stand){ OCT_STANDS_INTEGER, "part of the layer before it", with };
}
