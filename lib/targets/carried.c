/* Targets that carry DequantizeLinear forward, across operators that move, clamp or pool values, to operators that then
 * compute on the quantized values, as OpenVINO does. Whether results are quantized does not matter. */
#include "targets/carried_int.h"

#include <string.h>

enum { DEEPEST_SUM = 3 }; /* the largest rank of a product of matrices with which the addition of a constant is fused */

/* Whether the target has no zero point to subtract, because it is 0. If a quantizer makes the values, this includes 128
 * of u8 and -128 of s8: the target may let the quantizer write the other type of 8 bits, in which these zero points are
 * 0. */
static bool is_centred(const carrier *c, const oct_node *d)
{
    const int zero = oct_linear_zero(c->g, d), p = c->g->value[d->in[0]].producer;
    const bool made = p >= 0 && oct_linear_is(c->g, &c->g->node[p], "QuantizeLinear");
    return zero == 0 || (made && zero == (oct_linear_type(c->g, d) == OCT_U8 ? 128 : -128));
}

static bool is_lowest(const carrier *c, const oct_node *d)
{
    return oct_linear_zero(c->g, d) == (oct_linear_type(c->g, d) == OCT_U8 ? 0 : -128);
}

/* ---- products ---- */

/* Whether a Conv has strides and a kernel of one element, and is the only reader of a DequantizeLinear. The target then
 * skips elements before it dequantizes the others, and finds no dequantizer at the Conv. */
static bool skips_elements(const carrier *c, const oct_node *n)
{
    const oct_attr *strides = oct_node_attr(n, "strides");
    const oct_shape *w = &c->g->value[n->in[1]].shape;
    bool skips = false, single = w->rank > 2;
    for (int64_t i = 0; strides && i < strides->n; i++)
        skips |= strides->ints[i] > 1;
    for (int i = 2; i < w->rank; i++)
        single &= w->d[i].n == 1;
    return skips && single && oct_value_used_once(&c->g->value[n->in[0]]) && before(c, n->in[0])->out[0] == n->in[0];
}

static const char *product(const carrier *c, const oct_target_op *e, const oct_node *n)
{
    const int w = oct_input_at(n, 1);
    const oct_node *d = before(c, w);
    if (!before(c, n->in[0]))
        return "the input is not quantized";
    if (!d)
        return "the weights are not quantized";
    const oct_dtype a = oct_linear_type(c->g, before(c, n->in[0])), b = oct_linear_type(c->g, d);
    if (!is_carried(c, n->in[0]) || (b != OCT_U8 && b != OCT_S8) ||
        !(e->rules.any_weights || oct_target_takes(c->t, a, b)))
        return "the target does not multiply these types";
    if (!is_constant(c, w) && (!is_centred(c, before(c, n->in[0])) || !is_centred(c, d)))
        return "the product of two activations needs zero points of 0";
    if (is_constant(c, w) && !oct_target_takes(c->t, a, b) && oct_linear_zero(c->g, d) != 0)
        return "weights of this type need the zero point 0";
    if (oct_linear_constant(c->g, before(c, n->in[0])->in[1])->count > 1 && oct_node_int(n, "group", 1) == 1)
        return "a scale of the input is not one number";
    return skips_elements(c, n) ? "the target moves the stride of its 1x1 kernel in front of its dequantizer" : NULL;
}

/* The addition of a constant that is the only reader of a product of matrices; -1: none. */
static int constant_sum(const carrier *c, const oct_node *n)
{
    const int id = only_reader(c->g, n->out[0]);
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    const int other = op && op->adds && c->g->node[id].n_in == 2 ? oct_other_input(&c->g->node[id], n->out[0]) : -1;
    const oct_shape *y = other >= 0 ? &c->g->value[n->out[0]].shape : NULL, *k = y ? &c->g->value[other].shape : NULL;
    if (!k || !is_constant(c, other) || k->rank < 1 || y->rank > DEEPEST_SUM)
        return -1;
    for (int i = 0; i + 1 < k->rank; i++)
        if (k->d[i].n != 1)
            return -1;
    return y->rank < 1 || k->d[k->rank - 1].n == y->d[y->rank - 1].n ? id : -1;
}

static void judge_product(carrier *c, const oct_target_op *e, int id)
{
    const oct_node *n = &c->g->node[id];
    settle(c, id, product(c, e, n));
    const int sum = e->rules.joins_sum && is_constant(c, n->in[1]) ? constant_sum(c, n) : -1;
    if (sum >= 0) {
        c->stand[sum] = c->stand[id];
        c->stand[sum].with = id;
    }
}

/* ---- functions and data movement ---- */

static void judge_function(carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    const char *why = NULL;
    const bool moves =
        oct_op_of(c->g, id)->quant == OCT_QUANT_SAME; /* its other inputs are indices, shapes and the like */
    for (int i = 0; i < (moves ? 1 : n->n_in) && !why; i++)
        if (i == 0 || (n->in[i] >= 0 && c->g->value[n->in[i]].dtype == OCT_F32))
            why = !is_carried(c, n->in[i])   ? "some inputs are not quantized"
                  : is_constant(c, n->in[i]) ? "one input is constant"
                                             : NULL;
    if (!why && oct_op_of(c->g, id)->quant == OCT_QUANT_ARITH)
        why = oct_carried_on_reals(c, n);
    settle(c, id, why);
}

/* Whether a node scales quantized values by constants, which become part of the dequantizer. */
static bool scales(const carrier *c, const oct_node *n)
{
    return before(c, n->in[0]) &&
           (oct_is_op(n, "BatchNormalization") || (oct_is_op(n, "Mul") && n->n_in == 2 && is_constant(c, n->in[1])));
}

/* Carries the dequantizer across a node that moves, clamps or pools quantized values. All its real inputs that are not
 * constant must be quantized. */
static void carry(carrier *c, const oct_node *n)
{
    const oct_node *d = before(c, n->in[0]);
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && c->g->value[n->in[i]].dtype == OCT_F32 && !oct_linear_constant(c->g, n->in[i]) &&
            !before(c, n->in[i]))
            return;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0)
            c->from[n->out[k]] = d;
}

/* Whether it is a Pad that dequantizers are not carried across, because its constant is not 0, or because there is a
 * zero point to subtract. According to measurements, they are not carried either if the zero point is not the lowest
 * value and the result has several readers. */
static bool pads_reals(const carrier *c, const oct_node *n)
{
    const int at = oct_input_at(n, 2);
    const oct_tensor *value = oct_linear_constant(c->g, at);
    const oct_node *d = before(c, n->in[0]);
    if (!oct_is_op(n, "Pad") || strcmp(oct_node_str(n, "mode", "constant"), "constant") != 0)
        return false;
    const bool zeros =
        at < 0 || (value && value->dtype == OCT_F32 && value->count == 1 && *(const float *)value->data == 0.0f);
    return !zeros || !is_centred(c, d) || (!is_lowest(c, d) && !oct_value_used_once(&c->g->value[n->out[0]]));
}

static void judge(carrier *c, int id)
{
    const oct_node *n = &c->g->node[id];
    const oct_op *op = oct_op_of(c->g, id);
    const oct_target_op *e = op ? line_of(c, n) : NULL;
    const char *why = NULL;
    if (n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0)
        return;
    if (oct_linear_is(c->g, n, "DequantizeLinear")) {
        c->from[n->out[0]] = n;
        return;
    }
    if (op && op->clamp && before(c, n->in[0]) && oct_linear_zero(c->g, before(c, n->in[0])) == 0)
        carry(c, n);
    if (scales(c, n))
        c->from[n->out[0]] = before(c, n->in[0]);
    if (c->stand[id].kind != OCT_STANDS_FLOAT || c->stand[id].with >= 0 || !op)
        return;
    if (!e || !(e->forms & OCT_TARGET_STATIC || e->kept) ||
        (!e->kept && op->integer && !oct_target_runs(c->t, c->g, id, OCT_TARGET_STATIC, &why))) {
        c->stand[id].why = why ? why : "the target runs this operator in float";
        return;
    }
    if (op->quant == OCT_QUANT_WEIGHTED) {
        judge_product(c, e, id);
        return;
    }
    if (op->adds)
        oct_carried_judge_sum(c, id);
    else
        judge_function(c, id);
    if ((e->rules.crossed || (e->kept && op->quant == OCT_QUANT_SAME)) && c->stand[id].kind == OCT_STANDS_INTEGER &&
        !pads_reals(c, n))
        carry(c, n);
}

oct_status oct_target_stand_carried(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand,
                                    oct_err *err)
{
    carrier c = { .t = t, .g = g, .stand = stand };
    c.from = oct_arena_calloc(arena, g->n_value + 1, sizeof *c.from);
    c.place = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.place);
    c.last = oct_arena_calloc(arena, g->n_value + 1, sizeof *c.last);
    c.walk = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.walk);
    if (!c.from || !c.place || !c.last || !c.walk)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++)
        c.place[g->order[i]] = i;
    for (size_t v = 0; v < g->n_value; v++)
        for (size_t i = 0; i < g->value[v].n_uses; i++) {
            const size_t place = c.place[g->value[v].uses[i].node];
            c.last[v] = place > c.last[v] ? place : c.last[v];
        }
    for (size_t i = 0; i < g->n_order; i++) {
        judge(&c, g->order[i]);
        oct_carried_note(&c, g->order[i]);
    }
    return OCT_OK;
}
