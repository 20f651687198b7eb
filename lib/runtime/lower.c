/* Lowering: nodes become steps; those whose values are quantized become integer steps; clamps join the step before them. */
#include "runtime/lower_int.h"

#include "kernels/half.h"
#include "ops/traits.h"

#include <string.h>

/* ---- what steps share ---- */

void rt_join_clamp(rt_lowering *l, int *value, oct_epilogue *e, bool tapped_blocks)
{
    const int id = tapped_blocks && rt_is_shown(l, *value) ? -1 : oct_clamp_behind(l->g, *value, e);
    if (id < 0)
        return;
    *value = l->g->node[id].out[0];
    l->done[id] = true;
}

bool rt_is_shown(const rt_lowering *l, int value)
{
    return l->value[value].shown || l->value[value].shown_reals;
}

void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value)
{
    if (l->value[value].shown)
        st->tap[slot] = l->value[value].shown;
}

oct_status rt_finish(rt_lowering *l, rt_step *st, int end, oct_err *err)
{
    rt_operand *o;
    if (st->s.op->fuses_clamp)
        rt_join_clamp(l, &end, &st->s.epilogue, true);
    OCT_TRY(rt_result(l, end, &o, err));
    st->s.out[0] = &o->t;
    if (l->g->value[end].quant)
        return rt_rounded(l, end, o, err);
    rt_set_tap(l, st, 0, end);
    return OCT_OK;
}

/* The operand of input i: codes, for a step that computes on them. */
static oct_status input_of(rt_lowering *l, int value, bool integer, rt_operand **o, oct_err *err)
{
    return integer && l->g->value[value].quant ? rt_codes(l, value, o, err) : rt_reals(l, value, o, err);
}

/* A step for a node, with its inputs, behind the steps that these need. */
static oct_status step_of(rt_lowering *l, int id, bool integer, rt_step **st, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    rt_operand *o;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            OCT_TRY(input_of(l, n->in[i], integer, &o, err));
    if (!(*st = rt_add_step(l->p, oct_op_of(l->g, id), n, n->n_in, n->n_out)))
        return oct_nomem(err);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) {
            OCT_TRY(input_of(l, n->in[i], integer, &o, err));
            (*st)->s.in[i] = &o->t;
        }
    return OCT_OK;
}

/* ---- integer steps ---- */

static oct_status integer_step(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    rt_operand *o;
    rt_step *st;
    OCT_TRY(step_of(l, id, true, &st, err));
    const size_t at = l->p->n_step - 1;
    st->scheme = "int8";
    for (int k = 0; k < n->n_out; k++) {
        int end = n->out[k];
        if (end < 0)
            continue;
        rt_set_tap(l, st, k, end);
        if (k == 0 && st->s.op->fuses_clamp)
            rt_join_clamp(l, &end, &st->s.epilogue, false);
        rt_set_tap(l, st, k, end);
        OCT_TRY(input_of(l, end, true, &o, err));
        st->s.out[k] = &o->t;
    }
    for (int k = 0, n_out = st->s.n_out; k < n_out; k++) {
        const oct_operand *y = l->p->step[at].s.out[k];
        if (y && y->q)
            OCT_TRY(rt_show_reals(l, y->value, err));
    }
    return OCT_OK;
}

/* ---- plain steps ---- */

/* Rounding to 16 bits and clamping between 16-bit numbers may change places. */
static bool clampable(const oct_op *op, oct_dtype t)
{
    return t == OCT_F32 || (op->widens && oct_is_half(t));
}

static oct_status plain_step(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const oct_op *op = oct_op_of(l->g, id);
    rt_operand *o;
    rt_step *st;
    if (!op->run && !op->alias)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s (domain '%s') cannot be run yet", n->op, n->domain);
    OCT_TRY(step_of(l, id, false, &st, err));
    const size_t at = l->p->n_step - 1;
    for (int k = 0; k < n->n_out; k++) {
        int end = n->out[k];
        if (end < 0)
            continue;
        st = &l->p->step[at];
        if (k == 0 && op->fuses_clamp && clampable(op, l->g->value[end].dtype))
            rt_join_clamp(l, &end, &st->s.epilogue, true);
        OCT_TRY(rt_result(l, end, &o, err));
        st->s.out[k] = &o->t;
        if (!l->g->value[end].quant)
            rt_set_tap(l, st, k, end);
        else
            OCT_TRY(rt_rounded(l, end, o, err));
    }
    return OCT_OK;
}

static bool is_constant_dq(const rt_lowering *l, int id)
{
    const oct_node *n = &l->g->node[id];
    if (strcmp(n->op, "DequantizeLinear") != 0 || !oct_op_of(l->g, id) || n->n_out != 1 || n->out[0] < 0)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !l->g->value[n->in[i]].konst)
            return false;
    return true;
}

/* DequantizeLinear of constants that a float step uses or an output shows: computed once, here. */
static oct_status fold_dequantize(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    int v = n->out[0];
    oct_tensor *t;
    OCT_TRY(oct_op_eval(l->g, id, SIZE_MAX, l->p->arena, &t, err));
    rt_operand *o;
    OCT_TRY(rt_reals(l, v, &o, err));
    o->t.constant = true;
    o->t.data = (void *)(uintptr_t)t->data;
    l->p->buffer[o->buffer].konst = t->data;
    return OCT_OK;
}

/* ---- nodes ---- */

oct_status rt_check_known(const oct_graph *g, int node, oct_err *err)
{
    const oct_node *n = &g->node[node];
    if (oct_op_of(g, node))
        return OCT_OK;
    return oct_fail(err, OCT_EUNSUPPORTED, "operator %s%s%s of opset %lld is unknown", n->domain, n->domain[0] ? "." : "", n->op,
                    (long long)oct_node_opset(g, n));
}

/* Weights that somebody looks at are dequantized. */
static oct_status compute_of(const rt_lowering *l, int id, oct_compute *how, oct_err *err)
{
    OCT_TRY(oct_compute_of(l->g, id, how, err));
    if (*how == OCT_ON_BLOCKS && rt_is_shown(l, l->g->node[id].in[1]))
        *how = OCT_ON_REALS;
    return OCT_OK;
}

static oct_status lower_node(rt_lowering *l, int id, oct_err *err)
{
    oct_compute how;
    bool made;
    OCT_TRY(rt_lower_border(l, id, &made, err));
    if (made)
        return OCT_OK;
    OCT_TRY(rt_check_known(l->g, id, err));
    if (is_constant_dq(l, id))
        return fold_dequantize(l, id, err);
    OCT_TRY(compute_of(l, id, &how, err));
    switch (how) {
    case OCT_ON_DYNAMIC: return rt_lower_dynamic(l, id, err);
    case OCT_ON_BLOCKS: return rt_lower_blocks(l, id, err);
    case OCT_ON_REALS: return plain_step(l, id, err);
    case OCT_ON_CODES: return integer_step(l, id, err);
    }
    return OCT_OK;
}

/* ---- taps ---- */

/* Names asked for, by the values that hold what they named: one that has the name itself comes first. */
static void find_shown(rt_lowering *l)
{
    const oct_plan *p = l->p;
    for (int exact = 0; exact < 2; exact++)
        for (size_t i = 0; i < p->opts.n_taps; i++) {
            const int named = oct_graph_find(l->g, p->opts.taps[i]), v = p->tap_at[i] >= 0 ? p->tap_at[i] : named;
            if (v < 0 || (exact && v != named))
                continue;
            if (p->tap_reals[i] && l->g->value[v].quant)
                l->value[v].shown_reals = p->opts.taps[i];
            else
                l->value[v].shown = p->opts.taps[i];
        }
}

static oct_status lower_all(rt_lowering *l, oct_err *err)
{
    oct_plan *p = l->p;
    char text[300];
    find_shown(l);
    for (size_t i = 0; i < p->g->n_input; i++) {
        rt_operand *o;
        OCT_TRY(rt_reals(l, p->g->input[i], &o, err));
        p->buffer[o->buffer].input = (int)i;
    }
    for (size_t i = 0; i < p->g->n_order; i++) {
        int id = p->g->order[i];
        oct_status s = l->done[id] ? OCT_OK : lower_node(l, id, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", oct_node_text(p->g, id, text, sizeof text));
            return s;
        }
    }
    for (size_t i = 0; i < p->n_output; i++)
        OCT_TRY(rt_reals(l, p->g->output[i], &p->output[i], err));
    for (size_t i = 0; i < p->n_step; i++)
        p->step[i].macs = (uint64_t)oct_step_macs(&p->step[i].s);
    return OCT_OK;
}

oct_status rt_lower(oct_plan *p, oct_err *err)
{
    rt_lowering l = { p, p->g, oct_calloc(p->g->n_node + 1, sizeof(bool)), oct_calloc(p->g->n_value + 1, sizeof(rt_lowered)) };
    p->value = oct_arena_calloc(p->arena, p->g->n_value + 1, sizeof *p->value);
    p->n_output = p->g->n_output;
    p->output = oct_arena_calloc(p->arena, p->n_output + 1, sizeof *p->output);
    oct_status s = l.done && l.value && p->value && p->output ? lower_all(&l, err) : oct_nomem(err);
    oct_free(l.done);
    oct_free(l.value);
    return s;
}
