/* Graphs of which parts can be planned only when others have run.
 *
 * The graph, its known shapes inferred, is walked through in rounds. In each, what can be planned from the tensors that
 * are there is: that is a stage, a graph cut out of the whole, with a plan of its own. Then nodes that can run but not
 * be planned do so by themselves: control flow, sequences, shapes that depend on data. A stage is kept with what it
 * depends on (the nodes that had run, the types and shapes of what they left), so that it is cut and planned once for
 * the shapes that come again. */
#include "runtime/staged_int.h"

#include "base/io.h"
#include "base/stop.h"
#include "kernels/quantize.h"
#include "ops/core/quantized.h"
#include "ops/traits.h"
#include "passes/pass.h"

#include <string.h>

/* ---- stages ---- */

static bool is_wanted(const oct_plan *p, int v)
{
    const oct_value *x = &p->g->value[v];
    for (size_t i = 0; i < x->n_uses; i++)
        if (!p->staged->done[x->uses[i].node])
            return true;
    return false;
}

static bool is_plannable(const oct_datum *x)
{
    return x && x->kind == OCT_DATUM_TENSOR && x->t.dtype != OCT_STRING;
}

/* What the next stage depends on, into p->staged->live. */
static void list_live(oct_plan *p)
{
    rt_staged *s = p->staged;
    s->n_live = 0;
    for (size_t v = 0; v < p->g->n_value; v++) {
        const oct_datum *x = s->datum[v];
        if (!is_plannable(x) || p->g->value[v].constant || !is_wanted(p, (int)v) || (s->varies[v] && !s->all_in))
            continue;
        s->live[s->n_live++] = (rt_live){ (int)v, rt_input_of(x) };
    }
}

static bool fits(const oct_plan *p, const rt_stage *st)
{
    const rt_staged *s = p->staged;
    if (st->n_live != s->n_live || memcmp(st->done, s->done, p->g->n_node * sizeof *s->done) != 0)
        return false;
    for (size_t i = 0; i < s->n_live; i++)
        if (st->live[i].value != s->live[i].value || !rt_same_inputs(&st->live[i].as, &s->live[i].as, 1))
            return false;
    return true;
}

static void stage_free(rt_stage *st)
{
    if (!st)
        return;
    oct_plan_destroy(st->plan);
    oct_graph_destroy(st->g);
    oct_arena_destroy(st->arena);
}

/* A slot for one more stage: a new one, or that of the oldest stage that this run has not used (results of used ones
 * are still needed). */
static oct_status make_room(oct_plan *p, rt_stage **place, oct_err *err)
{
    rt_staged *s = p->staged;
    size_t at = s->n_stage;
    for (size_t i = 0; i < s->n_stage && s->n_stage >= RT_STAGES; i++)
        if (s->stage[i]->used < s->began && (at == s->n_stage || s->stage[i]->used < s->stage[at]->used))
            at = i;
    oct_arena *a = oct_arena_create();
    rt_stage *st = a ? oct_arena_calloc(a, 1, sizeof *st) : NULL;
    if (!st || (at == s->n_stage && !OCT_GROW(p->arena, s->stage, s->n_stage, s->cap_stage))) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    st->arena = a;
    if (at == s->n_stage)
        s->n_stage++;
    else
        stage_free(s->stage[at]);
    s->stage[at] = *place = st;
    return OCT_OK;
}

static oct_status find_stage(oct_plan *p, rt_stage **found, oct_err *err)
{
    rt_staged *s = p->staged;
    list_live(p);
    for (size_t i = 0; i < s->n_stage; i++)
        if (s->stage[i]->ready && fits(p, s->stage[i])) {
            *found = s->stage[i];
            return OCT_OK;
        }
    OCT_TRY(make_room(p, found, err));
    rt_stage *st = *found;
    st->n_live = s->n_live;
    st->done = oct_arena_memdup(st->arena, s->done, p->g->n_node * sizeof *s->done);
    st->live = oct_arena_memdup(st->arena, s->live, s->n_live * sizeof *s->live);
    if (!st->done || !st->live)
        return oct_nomem(err);
    OCT_TRY(rt_cut(p, st, err));
    st->ready = true;
    return OCT_OK;
}

static void put(rt_staged *s, int v, oct_datum *x)
{
    oct_datum_unref(s->datum[v]);
    s->datum[v] = x;
}

static oct_status run_stage(oct_plan *p, rt_stage *st, oct_err *err)
{
    rt_staged *s = p->staged;
    oct_datum *x;
    st->used = ++s->clock;
    if (st->plan) {
        for (size_t i = 0; i < st->g->n_input; i++)
            s->feed[i] = s->datum[st->g->input[i]];
        oct_plan_set_tap(st->plan, p->tap, p->tap_arg);
        st->plan->profile = p->profile;
        st->plan->iteration = p->iteration;
        OCT_TRY(oct_plan_run_data(st->plan, s->feed, err));
    }
    for (size_t i = 0; i < st->g->n_output; i++) {
        OCT_TRY(oct_plan_output_datum(st->plan, i, &x, err));
        put(s, st->g->output[i], x);
    }
    for (size_t i = 0; i < st->n_constant; i++) {
        const oct_tensor *t = st->g->value[st->constant[i]].constant;
        OCT_TRY(oct_datum_borrow(t->dtype, t->rank, t->dims, t->data, &x, err));
        put(s, st->constant[i], x);
    }
    memcpy(s->done, st->done_after, p->g->n_node * sizeof *s->done);
    s->left -= st->n_node;
    return OCT_OK;
}

/* ---- nodes that run by themselves ---- */

static bool is_ready(const oct_plan *p, const oct_node *n)
{
    for (int i = 0; i < n->n_in + n->n_captured; i++) {
        const int v = i < n->n_in ? n->in[i] : n->captured[i - n->n_in];
        if (v >= 0 && !p->staged->datum[v] && !oct_value_is_constant(&p->g->value[v]))
            return false;
    }
    return true;
}

static oct_status call(oct_plan *p, int id, oct_datum *const *in, oct_datum **out, oct_err *err)
{
    const oct_node *n = &p->g->node[id];
    const oct_op *op = oct_op_of(p->g, id);
    bool tensors = true;
    for (int i = 0; i < n->n_in; i++)
        tensors &= !in[i] || is_plannable(in[i]);
    for (int k = 0; k < n->n_out; k++)
        tensors &= n->out[k] < 0 || p->g->value[n->out[k]].dtype != OCT_STRING;
    if (!op->exec || (op->run && tensors))
        return oct_op_run_alone(p->g, id, in, out, &(oct_run){ .pool = p->opts.pool, .iteration = p->iteration }, err);
    rt_call c = { .p = p, .node = id };
    oct_exec x = { .node = n,
                   .opset = oct_graph_opset(p->g, n->domain),
                   .in = in,
                   .out = out,
                   .pool = p->opts.pool,
                   .max_trips = p->opts.max_trips,
                   .body = rt_run_body,
                   .arg = &c };
    return op->exec(&x, err);
}

/* The operand of a tensor; its type is OCT_UNDEFINED if the value is not a tensor. */
static oct_operand operand_of(const oct_datum *x)
{
    oct_operand t = { .value = -1 };
    if (x->kind != OCT_DATUM_TENSOR)
        return t;
    t.dtype = x->t.dtype;
    t.rank = x->t.rank;
    t.count = x->t.count;
    t.data = (void *)(uintptr_t)x->t.data;
    memcpy(t.dims, x->dims, sizeof t.dims);
    return t;
}

static oct_status show(const oct_plan *p, int v, const oct_datum *x, oct_err *err)
{
    const size_t tap = p->tap && is_plannable(x) ? rt_tap_of(p, p->g->value[v].name) : OCT_NO_TAP;
    if (tap == OCT_NO_TAP)
        return OCT_OK;
    oct_operand t = operand_of(x);
    t.value = v;
    return p->tap(p->tap_arg, tap, &t, err);
}

/* Rounds the result k of a node that has run by itself. */
static oct_status round_result(const oct_plan *p, int id, int k, oct_datum **out, oct_err *err)
{
    const oct_node *n = &p->g->node[id];
    const oct_quant *y = p->g->value[n->out[k]].quant,
                    *x = n->n_in && n->in[0] >= 0 ? p->g->value[n->in[0]].quant : NULL;
    oct_datum *rounded;
    if (!y || y->n != 1 || (*out)->kind != OCT_DATUM_TENSOR || (*out)->t.dtype != OCT_F32 ||
        (oct_op_of(p->g, id)->quant == OCT_QUANT_SAME && oct_quant_same(x, y)))
        return OCT_OK;
    OCT_TRY(oct_datum_tensor(OCT_F32, (*out)->t.rank, (*out)->dims, &rounded, err));
    oct_fake_quantize_f32(y->dtype, (*out)->t.data, (size_t)(*out)->t.count, y->scale[0], y->zp[0],
                          oct_datum_data(rounded));
    oct_datum_unref(*out);
    *out = rounded;
    return OCT_OK;
}

static oct_status run_node(oct_plan *p, int id, oct_err *err)
{
    rt_staged *s = p->staged;
    const oct_node *n = &p->g->node[id];
    double begin = p->profile ? oct_now() : 0;
    oct_datum **in = oct_calloc((size_t)(n->n_in + n->n_out) + 1, sizeof *in), **out = in ? in + n->n_in : NULL;
    if (!in)
        return oct_nomem(err);
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] >= 0 ? s->datum[n->in[i]] : NULL;
    oct_status st = call(p, id, in, out, err);
    for (int k = 0; k < n->n_out; k++) {
        if (st == OCT_OK && n->out[k] >= 0 && !out[k])
            st = oct_fail(err, OCT_EMALFORMED, "nothing made its output %d", k);
        if (st == OCT_OK && n->out[k] >= 0)
            st = round_result(p, id, k, &out[k], err);
        if (st != OCT_OK || n->out[k] < 0)
            oct_datum_unref(out[k]);
        else
            put(s, n->out[k], out[k]);
        if (st == OCT_OK && n->out[k] >= 0)
            st = show(p, n->out[k], out[k], err);
    }
    oct_free(in);
    OCT_TRY(oct_within_node(p->g, id, st, err));
    if (p->profile && !oct_node_graph_at(n, 0)) { /* the steps of nested graphs count for themselves */
        s->time[id].seconds += oct_now() - begin;
        s->time[id].calls++;
    }
    s->done[id] = true;
    s->left--;
    return OCT_OK;
}

/* Whether run_node rounds a result after a node on reals has made it: what sizes or counts that are computed are read
 * for, no plan can hold. */
static bool is_rounded_alone(const oct_plan *p, int id, const oct_quant *y)
{
    oct_compute how;
    if (!p->staged->all_in || y->n != 1 || y->block)
        return false;
    return oct_op_of(p->g, id)->quant == OCT_QUANT_SAME ||
           (oct_compute_of(p->g, id, &how, NULL) == OCT_OK && how == OCT_ON_REALS);
}

/* Whether a node that runs by itself, on reals, makes what it should: quantized constants are there for plans alone,
 * and results are rounded only where no plan can do it. A move with the same parameters makes rounded results. */
static bool runs_on_reals(const oct_plan *p, int id, const oct_op *op)
{
    const oct_graph *g = p->g;
    const oct_node *n = &g->node[id];
    const oct_quant *x = oct_input_at(n, 0) >= 0 ? g->value[n->in[0]].quant : NULL;
    bool fits = !oct_border_of(g, n);
    for (int i = 0; i < n->n_in && fits; i++)
        fits = n->in[i] < 0 || !g->value[n->in[i]].quant || !oct_value_is_constant(&g->value[n->in[i]]);
    for (int k = 0; k < n->n_out && fits; k++) {
        const oct_quant *y = n->out[k] >= 0 ? g->value[n->out[k]].quant : NULL;
        fits = !y || (op->quant == OCT_QUANT_SAME && oct_quant_same(x, y)) || is_rounded_alone(p, id, y);
    }
    return fits;
}

static bool reads_varying(const oct_plan *p, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in && !p->staged->all_in; i++)
        any |= n->in[i] >= 0 && p->staged->varies[n->in[i]];
    return any;
}

/* QLinear operators and what is quantized otherwise are steps of plans alone: they wait for the next stage. So do
 * quantizers, since a stage knows what to compute on the quantized values that they make; and layers with weights,
 * which a plan packs once. */
static bool runs_alone(const oct_plan *p, int id)
{
    const oct_op *op = oct_op_of(p->g, id);
    if (oct_node_has_weights(p->g, id) && !p->staged->all_in)
        return false;
    return (op->run || op->exec) && !op->is_qdq && runs_on_reals(p, id, op);
}

static oct_status run_ready(oct_plan *p, bool *any, oct_err *err)
{
    for (size_t i = 0; i < p->g->n_order; i++) {
        int id = p->g->order[i];
        if (p->staged->done[id] || !is_ready(p, &p->g->node[id]) || !runs_alone(p, id))
            continue;
        OCT_TRY(oct_stop_check(err));
        OCT_TRY(run_node(p, id, err));
        *any = true;
    }
    return OCT_OK;
}

/* ---- the run ---- */

static void forget_run(oct_plan *p)
{
    rt_staged *s = p->staged;
    for (size_t v = 0; v < p->g->n_value; v++)
        if (!p->g->value[v].constant)
            put(s, (int)v, NULL);
    memset(s->done, 0, p->g->n_node * sizeof *s->done);
    s->left = p->g->n_order;
    s->all_in = false;
    s->began = ++s->clock;
}

/* Nothing could run or be planned: reports why the nodes that wait for a plan cannot be lowered. */
static oct_status refuse(const oct_plan *p, oct_err *err)
{
    for (size_t i = 0; i < p->g->n_order; i++) {
        const int id = p->g->order[i];
        const oct_node *n = &p->g->node[id];
        if (p->staged->done[id] || !is_ready(p, n) || runs_alone(p, id))
            continue;
        oct_fail(err, OCT_EUNSUPPORTED, "operator %s (domain '%s') cannot be run on such inputs", n->op, n->domain);
        return oct_within_node(p->g, id, OCT_EUNSUPPORTED, err);
    }
    return oct_fail(err, OCT_EINTERNAL, "no node of the graph can run");
}

oct_status rt_stage_run(oct_plan *p, oct_datum *const *in, oct_err *err)
{
    rt_staged *s = p->staged;
    forget_run(p);
    for (size_t i = 0; i < p->g->n_input; i++) {
        put(s, p->g->input[i], oct_datum_ref(in[i]));
        if (i < p->n_shown)
            OCT_TRY(show(p, p->g->input[i], in[i], err));
    }
    while (s->left) {
        rt_stage *st;
        OCT_TRY(oct_stop_check(err));
        OCT_TRY(find_stage(p, &st, err));
        bool any = st->n_node > 0;
        OCT_TRY(run_stage(p, st, err));
        OCT_TRY(run_ready(p, &any, err));
        if (!any && s->all_in)
            return refuse(p, err);
        s->all_in |= !any;
    }
    for (size_t i = 0; i < p->g->n_output; i++)
        p->output[i]->t = operand_of(s->datum[p->g->output[i]]);
    return OCT_OK;
}

oct_datum *rt_stage_output(const oct_plan *p, size_t i)
{
    return p->staged->datum[p->g->output[i]];
}

/* ---- making ---- */

static oct_status hold_constants(oct_plan *p, oct_err *err)
{
    for (size_t v = 0; v < p->g->n_value; v++) {
        const oct_tensor *t = p->g->value[v].constant;
        if (t && t->data && !p->g->value[v].dead && !p->g->value[v].quant)
            OCT_TRY(oct_datum_borrow(t->dtype, t->rank, t->dims, t->data, &p->staged->datum[v], err));
    }
    return OCT_OK;
}

/* The first stage depends on the inputs' shapes alone, which are known where inputs are tensors. */
static oct_status plan_first(oct_plan *p, oct_err *err)
{
    oct_status st = OCT_OK;
    bool known = true;
    forget_run(p);
    for (size_t i = 0; i < p->g->n_input && st == OCT_OK; i++) {
        oct_datum **x = &p->staged->datum[p->g->input[i]];
        st = rt_borrow_input(&p->g->value[p->g->input[i]], NULL, x, err);
        known &= *x != NULL;
    }
    rt_stage *first;
    if (st == OCT_OK && known)
        st = find_stage(p, &first, err);
    forget_run(p);
    return st;
}

/* Inputs whose shape varies, and what is made from them in shapes that are not known without them. */
static void list_varying(oct_plan *p, const oct_plan_input *in)
{
    bool *varies = p->staged->varies;
    for (size_t i = 0; in && i < p->g->n_input; i++)
        varies[p->g->input[i]] = in[i].varies;
    for (size_t i = 0; i < p->g->n_order; i++) {
        const oct_node *n = &p->g->node[p->g->order[i]];
        const bool any = reads_varying(p, n);
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                varies[n->out[k]] = any && !oct_shape_known(&p->g->value[n->out[k]].shape, NULL);
    }
}

oct_status rt_stage_init(oct_plan *p, const oct_plan_input *in, oct_err *err)
{
    oct_arena *a = p->arena;
    const oct_graph *g = p->g;
    for (size_t v = 0; v < g->n_value; v++) /* all that a run begins with must be there */
        if (!g->value[v].dead && (g->value[v].n_uses || g->value[v].is_output))
            OCT_TRY(rt_check_value(&g->value[v], err));
    for (size_t i = 0; i < g->n_order; i++)
        OCT_TRY(oct_within_node(g, g->order[i], rt_check_known(g, g->order[i], err), err));
    rt_staged *s = p->staged = oct_arena_calloc(a, 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    s->datum = oct_arena_calloc(a, g->n_value + 1, sizeof *s->datum);
    s->done = oct_arena_calloc(a, g->n_node + 1, sizeof *s->done);
    s->varies = oct_arena_calloc(a, g->n_value + 1, sizeof *s->varies);
    s->live = oct_arena_calloc(a, g->n_value + 1, sizeof *s->live);
    s->time = oct_arena_calloc(a, g->n_node + 1, sizeof *s->time);
    s->feed = oct_arena_calloc(a, g->n_value + 1, sizeof *s->feed);
    p->output = oct_arena_calloc(a, g->n_output + 1, sizeof *p->output);
    rt_operand *output = oct_arena_calloc(a, g->n_output + 1, sizeof *output);
    if (!s->datum || !s->done || !s->varies || !s->live || !s->time || !s->feed || !p->output || !output)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_output; i++)
        p->output[i] = &output[i];
    list_varying(p, in);
    OCT_TRY(hold_constants(p, err));
    return plan_first(p, err);
}

void rt_stage_free(oct_plan *p)
{
    rt_staged *s = p->staged;
    if (!s)
        return;
    for (size_t v = 0; s->datum && v < p->g->n_value; v++)
        oct_datum_unref(s->datum[v]);
    for (size_t i = 0; i < s->n_stage; i++)
        stage_free(s->stage[i]);
    for (size_t i = 0; i < s->n_body; i++)
        rt_free_body(s->body[i]);
}

/* ---- what is inside ---- */

bool rt_next_part(const oct_plan *p, rt_part *at)
{
    const rt_staged *s = p->staged;
    at->node = -1;
    while (at->stage < s->n_stage)
        if ((at->plan = s->stage[at->stage++]->plan))
            return true;
    for (; at->body < s->n_body; at->body++, at->kept = 0)
        while (at->kept < RT_KEPT)
            if ((at->plan = s->body[at->body]->kept.of[at->kept++].plan))
                return true;
    at->plan = NULL;
    while (at->order < p->g->n_order)
        if (s->time[at->node = p->g->order[at->order++]].calls)
            return true;
    return false;
}

oct_step_info rt_part_info(const oct_plan *p, int id)
{
    const rt_staged *s = p->staged;
    const oct_node *n = &p->g->node[id];
    const char *scheme = oct_op_of(p->g, id)->scheme;
    return (oct_step_info){ .name = n->name,
                            .op = n->op,
                            .scheme = scheme ? scheme : "float",
                            .algorithm = "",
                            .kernel = "",
                            .seconds = s->time[id].seconds,
                            .value = n->n_out && n->out[0] >= 0 ? p->g->value[n->out[0]].name : "",
                            .calls = s->time[id].calls,
                            .weighted = oct_node_has_weights(p->g, id),
                            .bits = scheme && strcmp(scheme, "weight-only") == 0 ? rt_block_bits(p->g, n) : 0 };
}

void rt_profile_stages(oct_plan *p)
{
    for (rt_part at = { 0 }; rt_next_part(p, &at) && at.plan;)
        oct_plan_profile(at.plan, true);
    memset(p->staged->time, 0, p->g->n_node * sizeof *p->staged->time);
}
