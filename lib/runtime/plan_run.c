/* Running a plan, and what is asked of it. */
#include "runtime/plan_int.h"

#include "ops/traits.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/stop.h"

#include <assert.h>
#include <string.h>

/* ---- running ---- */

static oct_status show(const oct_plan *p, const rt_step *st, oct_err *err)
{
    for (int k = 0; p->tap && k < st->s.n_out; k++)
        if (st->tap[k] != OCT_NO_TAP)
            OCT_TRY(p->tap(p->tap_arg, st->tap[k], st->s.out[k], err));
    return OCT_OK;
}

static oct_status begin_steps(oct_plan *p, const void *const *inputs, oct_err *err)
{
    p->at = 0;
    for (size_t i = 0; i < p->g->n_input; i++)
        p->buffer[p->input[i]->buffer].memory = (uint8_t *)(uintptr_t)inputs[i];
    for (size_t i = 0; i < p->n_moved; i++) {
        rt_operand *o = p->moved[i];
        const rt_buffer *root = &p->buffer[rt_root(p, o->buffer)];
        o->t.data = root->input >= 0 ? root->memory : root->memory + rt_offset(p, o->buffer);
    }
    for (size_t i = 0; i < p->n_shown && p->tap; i++) {
        const size_t tap = rt_tap_of(p, p->g->value[p->g->input[i]].name);
        if (tap != OCT_NO_TAP)
            OCT_TRY(p->tap(p->tap_arg, tap, &p->input[i]->t, err));
    }
    return OCT_OK;
}

static oct_status run_step(oct_plan *p, rt_step *st, oct_run *r, oct_err *err)
{
    double begin = p->profile ? oct_now() : 0;
    if (!st->alias && !st->s.op) {
        rt_run_reorder(p->opts.pool, &st->s);
    } else if (!st->alias) {
        OCT_TRY_WITHIN(oct_step_run(&st->s, r, err), err, "node '%s' (%s)", st->s.node->name, st->s.node->op);
    }
    if (p->profile) {
        st->seconds += oct_now() - begin;
        st->calls++;
    }
    return show(p, st, err);
}

static bool shows(const rt_step *st, size_t tap)
{
    for (int k = 0; tap != OCT_NO_TAP && k < st->s.n_out; k++)
        if (st->tap[k] == tap)
            return true;
    return false;
}

bool oct_plan_shows(const oct_plan *p, size_t tap)
{
    bool any = false;
    for (size_t i = 0; i < p->n_step && !any; i++)
        any = shows(p->step[i], tap);
    return any;
}

oct_status oct_plan_begin(oct_plan *p, const void *const *inputs, oct_err *err)
{
    if (p->staged)
        return oct_fail(err, OCT_EUNSUPPORTED, "the model runs in stages");
    return begin_steps(p, inputs, err);
}

oct_status oct_plan_advance(oct_plan *p, size_t until, bool *shown, oct_err *err)
{
    oct_run r = { .pool = p->opts.pool, .scratch = p->scratch, .iteration = p->iteration };
    for (*shown = false; p->at < p->n_step && !*shown;) {
        OCT_TRY(oct_stop_check(err));
        rt_step *st = p->step[p->at++];
        if (st->tiles) {
            OCT_TRY(rt_tiles_run(p, st->tiles, err));
            p->at = rt_tiles_last(st->tiles) + 1;
            continue;
        }
        OCT_TRY(run_step(p, st, &r, err));
        *shown = shows(st, until);
    }
    return OCT_OK;
}

/* Whether bytes that steps before `at` have written are read by that one or later. */
static bool is_live(const rt_buffer *b, size_t at)
{
    return b->placed && (size_t)b->first < at && b->last >= (int)at;
}

bool oct_plan_save(const oct_plan *p, oct_plan_state *s)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_buffer; i++)
        n += is_live(&p->buffer[i], p->at) ? p->buffer[i].bytes : 0;
    if (p->staged)
        return false;
    if (n > s->cap) {
        oct_plan_state_free(s);
        if (!(s->data = oct_alloc(n)))
            return false;
        s->cap = n;
    }
    s->at = p->at;
    s->bytes = 0;
    for (size_t i = 0; i < p->n_buffer; i++)
        if (is_live(&p->buffer[i], p->at)) {
            memcpy(s->data + s->bytes, p->memory + p->buffer[i].offset, p->buffer[i].bytes);
            s->bytes += p->buffer[i].bytes;
        }
    return true;
}

oct_status oct_plan_restore(oct_plan *p, const oct_plan_state *s, oct_err *err)
{
    size_t n = 0;
    p->at = s->at;
    for (size_t i = 0; i < p->n_buffer; i++)
        if (is_live(&p->buffer[i], p->at)) {
            memcpy(p->memory + p->buffer[i].offset, s->data + n, p->buffer[i].bytes);
            n += p->buffer[i].bytes;
        }
    assert(n == s->bytes);
    return p->at ? show(p, p->step[p->at - 1], err) : OCT_OK;
}

void oct_plan_state_free(oct_plan_state *s)
{
    oct_free(s->data);
    *s = (oct_plan_state){ .data = NULL };
}

static oct_status run_steps(oct_plan *p, const void *const *inputs, oct_err *err)
{
    bool shown;
    OCT_TRY(begin_steps(p, inputs, err));
    return oct_plan_advance(p, OCT_NO_TAP, &shown, err);
}

/* The inputs as data, borrowed for the run. */
static oct_status run_stages(oct_plan *p, const void *const *inputs, oct_err *err)
{
    const oct_graph *g = p->g;
    oct_datum **in = oct_calloc(g->n_input + 1, sizeof *in);
    oct_status s = in ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; i < g->n_input && s == OCT_OK; i++) {
        const oct_value *v = &g->value[g->input[i]];
        s = rt_borrow_input(v, inputs[i], &in[i], err);
        if (s == OCT_OK && !in[i])
            s = oct_fail(err, OCT_EUSAGE, "input '%s' is no tensor of known type", v->name);
    }
    if (s == OCT_OK)
        s = rt_stage_run(p, in, err);
    for (size_t i = 0; in && i < g->n_input; i++)
        oct_datum_unref(in[i]);
    oct_free(in);
    return s;
}

oct_status oct_plan_run(oct_plan *p, const void *const *inputs, oct_err *err)
{
    return p->staged ? run_stages(p, inputs, err) : run_steps(p, inputs, err);
}

oct_status oct_plan_run_data(oct_plan *p, oct_datum *const *in, oct_err *err)
{
    if (p->staged)
        return rt_stage_run(p, in, err);
    for (size_t i = 0; i < p->g->n_input; i++)
        p->given[i] = in[i]->t.data;
    return run_steps(p, p->given, err);
}

/* ---- outputs ---- */

oct_status oct_plan_output_datum(const oct_plan *p, size_t i, oct_datum **out, oct_err *err)
{
    if (p->staged) {
        *out = oct_datum_ref(rt_stage_output(p, i));
        return OCT_OK;
    }
    const oct_operand *t = &p->output[i]->t;
    return oct_datum_borrow(t->dtype, t->rank, t->dims, t->data, out, err);
}

size_t oct_plan_n_outputs(const oct_plan *p)
{
    return p->g->n_output;
}

const char *oct_plan_output_name(const oct_plan *p, size_t i)
{
    return p->g->value[p->g->output[i]].name;
}

const oct_operand *oct_plan_output(const oct_plan *p, size_t i)
{
    return &p->output[i]->t;
}

bool oct_plan_knows_outputs(const oct_plan *p)
{
    return !p->staged;
}

bool oct_plan_set_output(oct_plan *p, size_t i, void *data)
{
    if (p->staged || !p->movable[i])
        return false;
    rt_buffer *b = &p->buffer[rt_root(p, p->output[i]->buffer)];
    b->memory = data ? data : p->memory + b->offset;
    return data != NULL;
}

void oct_plan_set_tap(oct_plan *p, oct_tap_fn fn, void *arg)
{
    p->tap = fn;
    p->tap_arg = arg;
}

/* ---- steps ---- */

void oct_plan_profile(oct_plan *p, bool on)
{
    p->profile = on;
    if (!on)
        return;
    for (size_t i = 0; i < p->n_step; i++)
        p->step[i]->seconds = 0, p->step[i]->calls = 0;
    if (p->staged)
        rt_profile_stages(p);
}

size_t oct_plan_n_steps(const oct_plan *p)
{
    size_t n = p->n_step;
    for (rt_part at = { 0 }; p->staged && rt_next_part(p, &at);)
        n += at.plan ? oct_plan_n_steps(at.plan) : 1;
    return n;
}

int rt_block_bits(const oct_graph *g, const oct_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const oct_quant *q = n->in[i] >= 0 ? g->value[n->in[i]].quant : NULL;
        if (q && q->block)
            return oct_dtype_bits(q->dtype);
    }
    return (int)oct_node_int(n, "bits", oct_node_int(n, "expert_weight_bits", 4));
}

static oct_step_info step_info(const oct_plan *p, const rt_step *st)
{
    const oct_node *n = st->s.node;
    const oct_step *real = st->s.wide ? st->s.wide : &st->s; /* what multiplies */
    oct_step_info info = { .name = n ? n->name : "",
                           .op = n ? n->op : "Reorder",
                           .scheme = st->scheme,
                           .algorithm = real->algorithm ? real->algorithm : "",
                           .kernel = real->kernel ? real->kernel : "",
                           .seconds = st->seconds,
                           .calls = st->calls,
                           .macs = st->macs,
                           .weighted = oct_step_has_weights(&st->s),
                           .value = "" };
    if (st->s.n_out && st->s.out[0] && st->s.out[0]->value >= 0)
        info.value = p->g->value[st->s.out[0]->value].name;
    if (!info.scheme)
        info.scheme = st->s.in_bf16 ? "bf16" : st->s.n_out && st->s.out[0] ? oct_operand_scheme(st->s.out[0]) : "float";
    for (int k = 0; k < st->s.n_in + st->s.n_out; k++) {
        const oct_operand *t = st->s.in[k];
        size_t bytes;
        if (!t || st->alias || p->buffer[((const rt_operand *)t)->buffer].lane ||
            !oct_dtype_bytes(t->dtype, t->count, &bytes))
            continue;
        /* A part of a Concat that was written where it lies there is neither read nor written. */
        const bool stays =
            k < st->s.n_in && st->s.op && st->s.op->joins &&
            p->buffer[((const rt_operand *)t)->buffer].alias == ((const rt_operand *)st->s.out[0])->buffer;
        if (stays)
            info.bytes -= bytes; /* of those written, which are added last */
        else
            info.bytes += bytes;
        info.constants += t->constant ? bytes : 0;
        info.made += k >= st->s.n_in ? bytes : 0;
    }
    info.bits = n && strcmp(info.scheme, "weight-only") == 0 ? rt_block_bits(p->g, n) : 0;
    return info;
}

oct_step_info oct_plan_step(const oct_plan *p, size_t i)
{
    const oct_step_info none = { .name = "", .op = "", .scheme = "float", .algorithm = "", .kernel = "", .value = "" };
    if (!p->staged)
        return step_info(p, p->step[i]);
    size_t n;
    for (rt_part at = { 0 }; rt_next_part(p, &at); i -= n) {
        n = at.plan ? oct_plan_n_steps(at.plan) : 1;
        if (i < n)
            return at.plan ? oct_plan_step(at.plan, i) : rt_part_info(p, at.node);
    }
    return none;
}

oct_plan_memory oct_plan_memory_of(const oct_plan *p)
{
    oct_plan_memory m = { p->memory_bytes, p->live_bytes, p->weight_bytes, p->scratch_bytes };
    for (rt_part at = { 0 }; p->staged && rt_next_part(p, &at) && at.plan;) {
        const oct_plan_memory part = oct_plan_memory_of(at.plan);
        m.arena += part.arena;
        m.live += part.live;
        m.weights += part.weights;
        m.scratch += part.scratch;
    }
    return m;
}
