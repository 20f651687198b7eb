/* Sums and products of two values in targets that carry dequantizers forward: the layer with which they are fused, or
 * else what their own kernel reads. These rules were derived from OpenVINO's execution graphs;
 * tests/checks/check_lint.py checks them. */
#include "targets/carried_int.h"

/* x if the node computes x * sigmoid(x) and nothing else reads x; else -1. */
static int swish_input(const carrier *c, const oct_node *n)
{
    for (int i = 0; i < 2 && n->n_in == 2; i++) {
        const int p = lone_producer(c, n->in[1 - i]);
        if (p >= 0 && oct_is_op(&c->g->node[p], "Sigmoid") && c->g->node[p].in[0] == n->in[i] &&
            c->g->value[n->in[i]].n_uses == 2)
            return n->in[i];
    }
    return -1;
}

/* The input that a Mul or Div scales by a constant; -1: none. */
static int scaled_input(const carrier *c, const oct_node *n)
{
    const bool product = oct_is_op(n, "Mul");
    for (int i = 0; i < 2 && n->n_in == 2 && (product || oct_is_op(n, "Div")); i++)
        if (is_constant(c, n->in[1 - i]) && (product || i == 0))
            return n->in[i];
    return -1;
}

/* The node before n with which n is fused, because n scales its result by a constant or computes x * sigmoid(x) of it;
 * -1: none. */
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

/* Whether a layer's bias is added in real numbers by a kernel after it, because several nodes read the bias and
 * dimensions are free. */
static bool has_bias_apart(const carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    const int b = oct_op_of(c->g, id)->weights.bias ? oct_input_at(n, oct_op_of(c->g, id)->weights.bias) : -1;
    return b >= 0 && c->g->value[b].n_uses > 1 && !is_fixed(&c->g->value[n->out[0]].shape);
}

/* Whether a node is a layer with which a sum after it is fused. */
static bool takes_sum(const carrier *c, int id)
{
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    const oct_target_op *e = op ? line_of(c, &c->g->node[id]) : NULL;
    return e && e->rules.takes_sum && op->quant == OCT_QUANT_WEIGHTED && !has_bias_apart(c, id);
}

static int layer_at(const carrier *c, int id) /* as in oct_walks; id may be -1 */
{
    return id >= 0 ? c->walk[id].layer : -1;
}

/* The layer on integers with which a sum is fused if it is the only reader of this value; -1: none. */
static int layer_before(const carrier *c, int value)
{
    return layer_at(c, lone_producer(c, value));
}

/* Whether a value is read after a node. A layer that adds its result to a value overwrites that value. */
static bool read_later(const carrier *c, int value, int id)
{
    return c->g->value[value].is_output || c->last[value] > c->place[id];
}

/* Whether a constant has the shape of a bias: one number, or one for each channel of the sum. */
static bool is_bias(const carrier *c, int constant, int sum)
{
    const oct_shape *k = &c->g->value[constant].shape, *y = &c->g->value[c->g->node[sum].out[0]].shape;
    bool bias = k->rank >= 0 && y->rank >= 0;
    for (int i = 0; i < k->rank; i++)
        bias &= k->d[i].n == 1 || i + y->rank - k->rank == 1;
    return bias;
}

/* Whether the only reader of a node's result is a quantizer, or a clamp whose only reader is a quantizer. */
static bool is_quantized_behind(const carrier *c, int id)
{
    int next = only_reader(c->g, c->g->node[id].out[0]);
    if (next >= 0 && oct_op_of(c->g, next) && oct_op_of(c->g, next)->clamp)
        next = only_reader(c->g, c->g->node[next].out[0]);
    return next >= 0 && oct_linear_is(c->g, &c->g->node[next], "QuantizeLinear");
}

/* Whether the other input of a sum has real numbers and prevents a fusion of the sum with a layer. A constant does
 * unless it has the shape of a bias or a quantizer follows the sum. Other values do if they are read later, or if
 * dimensions are fixed and no Conv on real numbers makes them: then the sum is generated together with the nodes around
 * it. */
static bool keeps_from_layer(const carrier *c, int other, int id)
{
    const int p = lone_producer(c, other);
    if (oct_linear_constant(c->g, other))
        return !is_bias(c, other, id) && !is_quantized_behind(c, id);
    const bool conv = p >= 0 && oct_is_op(&c->g->node[p], "Conv") && c->stand[p].kind == OCT_STANDS_FLOAT;
    return !before(c, other) &&
           (read_later(c, other, id) || (is_fixed(&c->g->value[c->g->node[id].out[0]].shape) && !conv));
}

/* The layer on integers with which a sum of two values is fused; -1: none. */
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

/* The QuantizeLinear or DequantizeLinear (type) that makes a value with only one reader; -1: none. */
static int before_linear(const carrier *c, int value, const char *type)
{
    const int id = lone_producer(c, value);
    return id >= 0 && oct_linear_is(c->g, &c->g->node[id], type) ? id : -1;
}

/* The node that makes the real numbers of an input, if they are quantized only for the node that reads this input; else
 * -1. */
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

/* The number of elements of a constant, which may be dequantized. */
static int64_t count_of(const carrier *c, int constant)
{
    const oct_tensor *k = oct_linear_constant(c->g, constant);
    return (k ? k : oct_linear_constant(c->g, before(c, constant)->in[0]))->count;
}

/* Whether a node reads a constant that becomes part of it: one that is not quantized, or one with a single element. */
static bool folds_constant(const carrier *c, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= is_constant(c, n->in[i]) && (oct_linear_constant(c->g, n->in[i]) || count_of(c, n->in[i]) == 1);
    return any;
}

/* Whether an input is quantized only for the node that reads it, from the result of arithmetic on two values in real
 * numbers, or of a layer whose bias is added by a kernel after it. The node then becomes part of the kernel that
 * computes this result. */
static bool follows_reals(const carrier *c, int value)
{
    const int id = before_quantizer(c, value);
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    if (op && op->quant == OCT_QUANT_WEIGHTED)
        return has_bias_apart(c, id);
    return op && op->quant == OCT_QUANT_ARITH && c->stand[id].kind == OCT_STANDS_FLOAT &&
           !folds_constant(c, &c->g->node[id]) && layer_at(c, id) < 0;
}

static bool takes_quantizers(const oct_target_op *e)
{
    return e && (e->rules.takes_quantizer || e->rules.takes_shared_quantizer);
}

/* The only input of an elementwise node that is not constant; -1: the node is not of that kind, or takes in quantizers
 * after it. */
static int only_operand(const carrier *c, const oct_node *n, const oct_op *op)
{
    for (int i = 0; i < 2 && op->adds && n->n_in == 2; i++)
        if (is_constant(c, n->in[1 - i]))
            return n->in[i];
    if (scaled_input(c, n) >= 0)
        return scaled_input(c, n);
    return op->clamp || (op->quant == OCT_QUANT_UNARY && !takes_quantizers(line_of(c, n))) ? n->in[0] : -1;
}

/* The line of the operator with which the quantizer of a value is fused; NULL: there is none. Elementwise nodes between
 * the two are fused as well. Each result between the two must have only one reader. */
static const oct_target_op *taker_of(const carrier *c, int value)
{
    const int id = lone_producer(c, value);
    return id >= 0 ? c->walk[id].taker : NULL;
}

/* Whether a node moves bytes. */
static bool moves_bytes(const carrier *c, int id)
{
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    return op && op->quant == OCT_QUANT_SAME && c->stand[id].kind == OCT_STANDS_INTEGER;
}

/* Whether an input comes as bytes if dimensions are fixed. If it does not, its quantizer is generated together with the
 * node that reads it, as one kernel that reads real numbers. A quantizer that is fused with the operator before it
 * makes bytes. alone: the other input is constant. */
static bool comes_as_bytes(const carrier *c, int value, bool alone)
{
    const oct_node *d = before(c, value);
    if (!is_carried(c, value) || is_constant(c, value))
        return false;
    const int p = c->g->value[value].producer;
    if (value != d->out[0] && p >= 0 && c->walk[p].moved)
        return true;
    const int q = c->g->value[d->in[0]].producer, real = q >= 0 ? c->g->node[q].in[0] : -1;
    if (q < 0 || !oct_linear_is(c->g, &c->g->node[q], "QuantizeLinear") || moves_bytes(c, c->g->value[real].producer))
        return true;
    const bool shared = !oct_value_used_once(&c->g->value[d->in[0]]) || !oct_value_used_once(&c->g->value[d->out[0]]);
    const oct_target_op *e = taker_of(c, real);
    return e && (e->rules.takes_quantizer || shared || alone);
}

/* The arithmetic on integers that makes an input, also through elementwise nodes, if each result on the way has only
 * one reader; else -1. */
static int arithmetic_before(const carrier *c, int value)
{
    const int id = lone_producer(c, value);
    return id >= 0 ? c->walk[id].arithmetic : -1;
}

/* Whether the dequantizer of a value that is combined with a constant stays a node of its own if dimensions are free:
 * it subtracts a zero point, or the values are u8 and the constant has several elements. */
static bool dequantizes_apart(const carrier *c, const oct_node *n)
{
    bool apart = false, single = true;
    for (int i = 0; i < n->n_in; i++)
        single &= !is_constant(c, n->in[i]) || count_of(c, n->in[i]) == 1;
    for (int i = 0; i < n->n_in; i++)
        if (is_carried(c, n->in[i]) && !is_constant(c, n->in[i]))
            apart |= oct_linear_zero(c->g, before(c, n->in[i])) != 0 ||
                     (oct_linear_type(c->g, before(c, n->in[i])) == OCT_U8 && !single);
    return apart;
}

/* If dimensions are fixed, the arithmetic is generated as one kernel together with the nodes around it, quantizers
 * included. Otherwise quantizers are nodes of their own, or fused with the nodes before them. */
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
    return reals && !layer ? "part of the float arithmetic before it" : NULL;
}

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

/* Whether the dequantizer before a node was carried to its result through a node that moves bytes, this one
 * included. */
static bool is_moved(const carrier *c, int id, const oct_op *op)
{
    const oct_node *n = &c->g->node[id];
    const oct_node *d = n->n_out > 0 ? before(c, n->out[0]) : NULL;
    if (!d || d->out[0] == n->out[0])
        return false;
    if (!op || moves_bytes(c, id))
        return true;
    const int value = oct_is_op(n, "Mul") ? scaled_input(c, n) : n->in[0],
              p = value >= 0 && value != d->out[0] ? c->g->value[value].producer : -1;
    return p >= 0 && c->walk[p].moved;
}

void oct_carried_note(carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    const oct_op *op = oct_op_of(c->g, id);
    const oct_target_op *e = op ? line_of(c, n) : NULL;
    const bool walks = op && n->n_in > 0;
    const int part = walks ? joined(c, n) : -1, operand = walks ? lone_producer(c, only_operand(c, n, op)) : -1;
    const int next = part >= 0 ? part : operand;
    const bool integer = c->stand[id].kind == OCT_STANDS_INTEGER;
    oct_walks *w = &c->walk[id];
    w->layer = part >= 0 ? c->walk[part].layer : integer && takes_sum(c, id) ? id : -1;
    w->arithmetic = op && op->quant == OCT_QUANT_ARITH && integer && c->stand[id].with < 0 ? id
                    : operand >= 0                                                         ? c->walk[operand].arithmetic
                                                                                           : -1;
    w->taker = !op || takes_quantizers(e) ? e : next >= 0 ? c->walk[next].taker : NULL;
    w->moved = is_moved(c, id, op);
}
