/* Targets that carry the DequantizeLinear of a value forward, through operators that move values, clamp or pool them, to those that compute on the
 * quantized values then, as OpenVINO does: whether results are quantized does not matter. */
#include "targets/stand_int.h"

#include "ops/op.h"
#include "passes/match.h"
#include "targets/target_int.h"

#include <string.h>

typedef struct carrier {
    const oct_target *t;
    const oct_graph *g;
    const oct_node **from; /* [n_value]: the DequantizeLinear that stands before it once all were carried; NULL: real numbers */
    oct_stand *stand;
} carrier;

static const oct_target_op *line_of(const carrier *c, const oct_node *n)
{
    return n->domain[0] ? NULL : oct_target_entry(c->t, n->op);
}

static const oct_node *before(const carrier *c, int value)
{
    return value >= 0 ? c->from[value] : NULL;
}

static bool is_constant(const carrier *c, int value)
{
    const oct_node *d = before(c, value);
    return value >= 0 && (oct_linear_constant(c->g, value) || (d && oct_linear_constant(c->g, d->in[0])));
}

/* Whether a value's quantized ones are of a type that some operator with weights multiplies. */
static bool is_carried(const carrier *c, int value)
{
    const oct_node *d = before(c, value);
    const oct_dtype type = d ? oct_linear_type(c->g, d) : OCT_UNDEFINED;
    return (type == OCT_U8 || type == OCT_S8) && (oct_target_takes(c->t, type, OCT_U8) || oct_target_takes(c->t, type, OCT_S8));
}

/* ---- products ---- */

static const char *product(const carrier *c, const oct_target_op *e, const oct_node *n)
{
    const int w = n->n_in > 1 ? n->in[1] : -1;
    const oct_node *d = before(c, w);
    if (!before(c, n->in[0]))
        return "its input is not quantized";
    if (!d)
        return "its weights are not quantized";
    const oct_dtype a = oct_linear_type(c->g, before(c, n->in[0])), b = oct_linear_type(c->g, d);
    if (!is_carried(c, n->in[0]) || (b != OCT_U8 && b != OCT_S8) || !(e->any_weights || oct_target_takes(c->t, a, b)))
        return "the target does not multiply these types";
    if (!is_constant(c, w) && oct_linear_zero(c->g, before(c, n->in[0])) != 0)
        return "the product of two activations needs the zero point 0 of the first";
    return NULL;
}

static int only_reader(const oct_graph *g, int value)
{
    return value >= 0 && oct_value_used_once(&g->value[value]) ? g->value[value].uses[0].node : -1;
}

/* The sum of a constant that alone reads a product of matrices; -1: none. */
static int constant_sum(const carrier *c, const oct_node *n)
{
    const int id = only_reader(c->g, n->out[0]);
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    const int other = op && op->adds && c->g->node[id].n_in == 2 ? oct_other_input(&c->g->node[id], n->out[0]) : -1;
    const oct_shape *y = other >= 0 ? &c->g->value[n->out[0]].shape : NULL, *k = y ? &c->g->value[other].shape : NULL;
    if (!k || !is_constant(c, other) || k->rank < 1)
        return -1;
    for (int i = 0; i + 1 < k->rank; i++)
        if (k->d[i].n != 1)
            return -1;
    return y->rank < 1 || k->d[k->rank - 1].n == y->d[y->rank - 1].n ? id : -1;
}

static void settle(carrier *c, int id, const char *why)
{
    c->stand[id].kind = why ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER;
    c->stand[id].why = why ? why : "quantized in the model";
}

static void judge_product(carrier *c, const oct_target_op *e, int id)
{
    const oct_node *n = &c->g->node[id];
    settle(c, id, product(c, e, n));
    const int sum = e->joins_sum && is_constant(c, n->in[1]) ? constant_sum(c, n) : -1;
    if (sum >= 0) {
        c->stand[sum] = c->stand[id];
        c->stand[sum].with = id;
    }
}

/* ---- sums, and what moves values ---- */

/* The layer on integers whose result alone is this input of a sum, which it takes in; -1: none. */
static int layer_before(const carrier *c, int value)
{
    int id = value >= 0 && oct_value_used_once(&c->g->value[value]) ? c->g->value[value].producer : -1;
    while (id >= 0 && oct_is_op(&c->g->node[id], "BatchNormalization")) {
        const int x = c->g->node[id].in[0];
        id = x >= 0 && oct_value_used_once(&c->g->value[x]) ? c->g->value[x].producer : -1;
    }
    const oct_op *op = id >= 0 ? oct_op_of(c->g, id) : NULL;
    const oct_target_op *e = op ? line_of(c, &c->g->node[id]) : NULL;
    return e && e->takes_sum && op->quant == OCT_QUANT_WEIGHTED && c->stand[id].kind == OCT_STANDS_INTEGER ? id : -1;
}

static void judge_function(carrier *c, int id, const oct_op *op)
{
    const oct_node *n = &c->g->node[id];
    const char *why = NULL;
    for (int i = 0; i < n->n_in && !why; i++) {
        const int layer = op->adds ? layer_before(c, n->in[i]) : -1;
        if (layer >= 0) {
            c->stand[id] = (oct_stand){ OCT_STANDS_INTEGER, "part of the layer before it", layer };
            return;
        }
        if (n->in[i] < 0 || c->g->value[n->in[i]].dtype != OCT_F32)
            continue;
        why = !is_carried(c, n->in[i]) ? "its inputs are not all quantized" : is_constant(c, n->in[i]) ? "one of its inputs is constant" : NULL;
    }
    settle(c, id, why);
}

/* What stands before the results of a node that moves, clamps or pools quantized values; all of its inputs must be. */
static void carry(carrier *c, const oct_node *n)
{
    const oct_node *d = before(c, n->in[0]);
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && c->g->value[n->in[i]].dtype == OCT_F32 && !oct_linear_constant(c->g, n->in[i]) && !before(c, n->in[i]))
            return;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0)
            c->from[n->out[k]] = d;
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
    if (c->stand[id].kind != OCT_STANDS_FLOAT || c->stand[id].with >= 0 || !op)
        return;
    if (!e || !(e->forms & OCT_TARGET_STATIC || e->kept) || (!e->kept && op->integer && !oct_target_runs(c->t, c->g, id, OCT_TARGET_STATIC, &why))) {
        c->stand[id].why = why ? why : "the target runs this operator in float";
        return;
    }
    if (op->quant == OCT_QUANT_WEIGHTED) {
        judge_product(c, e, id);
        return;
    }
    judge_function(c, id, op);
    if (e->crossed && c->stand[id].kind == OCT_STANDS_INTEGER)
        carry(c, n);
}

oct_status oct_target_stand_carried(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err)
{
    carrier c = { .t = t, .g = g, .stand = stand };
    c.from = oct_arena_calloc(arena, g->n_value + 1, sizeof *c.from);
    if (!c.from)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++)
        judge(&c, g->order[i]);
    return OCT_OK;
}
