/* Lowering: nodes become steps; those whose values are quantized become integer steps; clamps join the step before
 * them. */
#include "runtime/lower_int.h"

#include "kernels/half.h"
#include "ops/traits.h"
#include "passes/match.h"

/* ---- what steps share ---- */

bool rt_is_shown(const rt_lowering *l, int value)
{
    return l->value[value].shown != OCT_NO_TAP || l->value[value].shown_reals != OCT_NO_TAP;
}

void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value)
{
    if (l->value[value].shown != OCT_NO_TAP)
        st->tap[slot] = l->value[value].shown;
}

/* Rounding to 16 bits and clamping between 16-bit numbers commute. */
static bool clampable(const oct_op *op, oct_dtype t)
{
    return op->fuses_clamp && (t == OCT_F32 || (op->widens && oct_is_half(t)));
}

/* A clamp behind *value joins the step: *value moves behind it. */
static void join_clamp(rt_lowering *l, rt_step *st, int *value)
{
    const int id = oct_clamp_behind(l->g, *value, &st->s.epilogue);
    if (id < 0)
        return;
    *value = l->g->node[id].out[0];
    l->done[id] = true;
}

/* Output `slot` of the last added step is `value`, or the result of a clamp after it. on_qvals: it is written as
 * quantized values if it is quantized; a tap before the clamp then shows the result. */
static oct_status finish(rt_lowering *l, rt_step *st, int slot, int value, bool on_qvals, oct_err *err)
{
    rt_operand *o;
    if (on_qvals)
        rt_set_tap(l, st, slot, value);
    if (slot == 0 &&
        (on_qvals ? st->s.op->fuses_clamp : clampable(st->s.op, l->g->value[value].dtype) && !rt_is_shown(l, value)))
        join_clamp(l, st, &value);
    const bool quantized = l->g->value[value].quant != NULL;
    if (on_qvals || !quantized)
        rt_set_tap(l, st, slot, value);
    OCT_TRY(on_qvals && quantized ? rt_qvals(l, value, &o, err) : rt_result(l, value, &o, err));
    st->s.out[slot] = &o->t;
    if (!quantized)
        return OCT_OK;
    return on_qvals ? rt_show_reals(l, value, err) : rt_rounded(l, value, o, err);
}

/* ---- steps of a node's own operator ---- */

/* The operand with quantized values if the step computes on these, or if the input is weights that it uses as quantized
 * values. */
static oct_status input_of(rt_lowering *l, const oct_op *op, oct_compute how, const oct_node *n, int i, rt_operand **o,
                           oct_err *err)
{
    const bool quantized = l->g->value[n->in[i]].quant &&
                           (how == OCT_ON_QUANTIZED || (how == OCT_ON_DYNAMIC && op->weights.slots >> i & 1));
    return quantized ? rt_qvals(l, n->in[i], o, err) : rt_reals(l, n->in[i], o, err);
}

static bool all_constant(const oct_step *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] && !s->in[i]->constant)
            return false;
    return true;
}

/* The constant row whose addition is the only reader of a product; -1: none. It becomes part of the step, and *value is
 * then the sum. */
static int join_row(rt_lowering *l, int *value)
{
    const oct_graph *g = l->g;
    const oct_shape *s = &g->value[*value].shape;
    const int id = rt_is_shown(l, *value) ? -1 : oct_only_reader(g, *value);
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    const int row = n && oct_op_of(g, id) && oct_op_of(g, id)->adds && n->n_out == 1 ? oct_other_input(n, *value) : -1;
    if (row < 0 || !oct_is_row(g, row, s->d[s->rank - 1].n, s->rank) || g->value[n->out[0]].shape.rank != s->rank)
        return -1;
    *value = n->out[0];
    l->done[id] = true;
    return row;
}

/* The same of a product on quantized values whose sums are real, by an operator that has no input for it: the row is
 * one more input of the step. */
static int join_own_row(rt_lowering *l, const oct_op *op, const oct_node *n, int *value)
{
    const int id = oct_only_reader(l->g, *value);
    const bool real =
        id >= 0 && l->g->node[id].n_out == 1 && !l->g->value[*value].quant && !l->g->value[l->g->node[id].out[0]].quant;
    const bool takes = op->quant == OCT_QUANT_WEIGHTED && !op->weights.bias && n->n_in == op->max_in;
    return real && takes && l->g->value[n->in[1]].shape.rank >= 2 ? join_row(l, value) : -1;
}

static oct_status lower_own(rt_lowering *l, int id, oct_compute how, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const oct_op *op = oct_op_of(l->g, id);
    rt_operand *o;
    if (!op->run && !op->alias)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s (domain '%s') cannot be run yet", n->op, n->domain);
    int first = n->n_out > 0 ? n->out[0] : -1;
    const int row = how == OCT_ON_QUANTIZED && first >= 0 ? join_own_row(l, op, n, &first) : -1;
    rt_step *st = rt_new_step(l->p, op, n, n->n_in + (row >= 0), n->n_out);
    if (!st)
        return oct_nomem(err);
    if (row >= 0) {
        OCT_TRY(rt_reals(l, row, &o, err));
        st->s.in[n->n_in] = &o->t;
    }
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) {
            OCT_TRY(input_of(l, op, how, n, i, &o, err));
            st->s.in[i] = &o->t;
        }
    if (how != OCT_ON_REALS)
        st->scheme = "int8";
    else if (op->adds)
        OCT_TRY(rt_join_sum(l, n, st, err));
    if (op->is_qdq && all_constant(&st->s)) {
        OCT_TRY(rt_result(l, n->out[0], &o, err));
        st->s.out[0] = &o->t;
        return rt_run_now(l, st, o, err);
    }
    OCT_TRY(rt_add_step(l->p, st, err));
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0)
            OCT_TRY(finish(l, st, k, k == 0 ? first : n->out[k], how == OCT_ON_QUANTIZED, err));
    return OCT_OK;
}

/* ---- products of reals and quantized values ---- */

/* What Gemm adds and the product cannot: a step behind it. */
static oct_status add_behind(rt_lowering *l, int id, int bias, rt_step **st, oct_err *err)
{
    const oct_shape *s = &l->g->value[l->g->node[id].out[0]].shape;
    int64_t dims[OCT_MAX_RANK];
    rt_operand *product, *other;
    rt_step *sum = rt_new_step(l->p, oct_op_find("", "Add", 14), &l->g->node[id], 2, 1);
    if (!sum)
        return oct_nomem(err);
    oct_shape_known(s, dims);
    OCT_TRY(rt_operand_on(l, OCT_F32, s->rank, dims, NULL, &product, err));
    OCT_TRY(rt_reals(l, bias, &other, err));
    (*st)->s.out[0] = sum->s.in[0] = &product->t;
    sum->s.in[1] = &other->t;
    sum->s.opset = 14;
    *st = sum;
    return rt_add_step(l->p, sum, err);
}

/* A product with dynamic quantization or weights in blocks, together with the addition of a constant row after it. */
static oct_status lower_product(rt_lowering *l, int id, oct_compute how, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const rt_lowered *x = &l->value[n->in[0]];
    const oct_op *op = oct_op_computing(l->g, id, how, x->scale != NULL);
    const oct_shape *y = &l->g->value[n->out[0]].shape;
    const int bias = oct_input_at(n, 2);
    int end = n->out[0], row = oct_is_row(l->g, bias, y->d[y->rank - 1].n, y->rank) ? bias : -1;
    rt_operand *a = x->qvals, *b, *c = NULL;
    rt_step *st = rt_new_step(l->p, op, n, op->max_in, 1);
    if (!st)
        return oct_nomem(err);
    st->s.opset = 1;
    if (how == OCT_ON_DYNAMIC && bias < 0)
        row = join_row(l, &end);
    if (!x->scale) /* behind a quantizer, which the step computes */
        OCT_TRY(
            rt_reals(l, how == OCT_ON_DYNAMIC ? l->g->node[l->g->value[n->in[0]].producer].in[0] : n->in[0], &a, err));
    OCT_TRY(rt_qvals(l, n->in[1], &b, err));
    if (row >= 0)
        OCT_TRY(rt_reals(l, row, &c, err));
    st->s.in[0] = &a->t;
    st->s.in[1] = &b->t;
    if (x->scale) {
        st->s.in[2] = &x->scale->t;
        st->s.in[4] = &x->zero->t;
    }
    st->s.in[op->max_in - 1] = c ? &c->t : NULL;
    OCT_TRY(rt_add_step(l->p, st, err));
    if (bias >= 0 && row < 0)
        OCT_TRY(add_behind(l, id, bias, &st, err));
    return finish(l, st, 0, end, false, err);
}

/* ---- nodes ---- */

static oct_status lower_node(rt_lowering *l, int id, oct_err *err)
{
    const oct_border border = oct_border_of(l->g, &l->g->node[id]);
    oct_compute how;
    if (border)
        return rt_lower_border(l, id, border, err);
    OCT_TRY(rt_check_known(l->g, id, err));
    OCT_TRY(oct_compute_of(l->g, id, &how, err));
    if (how == OCT_ON_BLOCKS && rt_is_shown(l, l->g->node[id].in[1]))
        how = OCT_ON_REALS; /* weights that somebody looks at are dequantized */
    const bool product = how == OCT_ON_BLOCKS ||
                         (how == OCT_ON_DYNAMIC && oct_op_computing(l->g, id, how, false) != oct_op_of(l->g, id));
    return product ? lower_product(l, id, how, err) : lower_own(l, id, how, err);
}

/* ---- taps ---- */

/* Taps by the values that hold what they name: one that has the name itself comes first. */
static void find_shown(rt_lowering *l)
{
    const oct_plan *p = l->p;
    for (size_t v = 0; v < l->g->n_value; v++)
        l->value[v].shown = l->value[v].shown_reals = OCT_NO_TAP;
    for (int exact = 0; exact < 2; exact++)
        for (size_t i = 0; i < p->opts.n_taps; i++) {
            const int v = p->tap_at[i];
            if (v < 0 || (exact && v != oct_graph_find(l->g, p->opts.taps[i])))
                continue;
            if (p->tap_reals[i] && l->g->value[v].quant)
                l->value[v].shown_reals = i;
            else
                l->value[v].shown = i;
        }
}

oct_status rt_lower(oct_plan *p, oct_err *err)
{
    rt_lowering l = { .p = p, .g = p->g };
    l.done = oct_arena_calloc(p->arena, p->g->n_node + 1, sizeof *l.done);
    l.value = oct_arena_calloc(p->arena, p->g->n_value + 1, sizeof *l.value);
    p->input = oct_arena_calloc(p->arena, p->g->n_input + 1, sizeof *p->input);
    p->output = oct_arena_calloc(p->arena, p->g->n_output + 1, sizeof *p->output);
    if (!l.done || !l.value || !p->input || !p->output)
        return oct_nomem(err);
    find_shown(&l);
    for (size_t i = 0; i < p->g->n_input; i++) {
        OCT_TRY(rt_reals(&l, p->g->input[i], &p->input[i], err));
        p->buffer[p->input[i]->buffer].input = (int)i;
    }
    for (size_t i = 0; i < p->g->n_order; i++) {
        int id = p->g->order[i];
        if (!l.done[id])
            OCT_TRY(oct_within_node(p->g, id, lower_node(&l, id, err), err));
    }
    for (size_t i = 0; i < p->g->n_output; i++)
        OCT_TRY(rt_reals(&l, p->g->output[i], &p->output[i], err));
    for (size_t i = 0; i < p->n_step; i++)
        p->step[i]->macs = (uint64_t)oct_step_macs(&p->step[i]->s);
    return OCT_OK;
}
