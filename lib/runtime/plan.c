/* Making and running a plan. */
#include "runtime/plan_int.h"

#include "base/io.h"
#include "passes/pass.h"

#include <string.h>

/* ---- pieces ---- */

oct_status rt_new_buffer(oct_plan *p, size_t bytes, int *buffer, oct_err *err)
{
    if (!OCT_GROW(p->arena, p->buffer, p->n_buffer, p->cap_buffer))
        return oct_nomem(err);
    p->buffer[p->n_buffer] = (rt_buffer){ .bytes = bytes, .first = -1, .last = -1, .alias = -1, .input = -1 };
    *buffer = (int)p->n_buffer++;
    return OCT_OK;
}

rt_operand *rt_new_operand(oct_plan *p, const oct_operand *like, int buffer)
{
    rt_operand *o = oct_arena_alloc(p->arena, sizeof *o);
    if (o)
        *o = (rt_operand){ *like, buffer };
    return o;
}

rt_step *rt_add_step(oct_plan *p, const oct_op *op, const oct_node *n, int n_in, int n_out)
{
    if (!OCT_GROW(p->arena, p->step, p->n_step, p->cap_step))
        return NULL;
    rt_step *st = &p->step[p->n_step];
    *st = (rt_step){ .scheme = "float" };
    st->s.op = op;
    st->s.node = n;
    st->s.opset = oct_graph_opset(p->g, n->domain);
    st->s.n_in = n_in;
    st->s.n_out = n_out;
    st->s.in = oct_arena_calloc(p->arena, (size_t)n_in + 1, sizeof *st->s.in);
    st->s.out = oct_arena_calloc(p->arena, (size_t)n_out + 1, sizeof *st->s.out);
    st->tap = oct_arena_calloc(p->arena, (size_t)n_out + 1, sizeof *st->tap);
    if (!st->s.in || !st->s.out || !st->tap)
        return NULL;
    p->n_step++;
    return st;
}

bool rt_is_tapped(const oct_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_taps; i++)
        if (strcmp(p->taps[i], name) == 0)
            return true;
    return false;
}

int rt_root(const oct_plan *p, int b)
{
    while (p->buffer[b].alias >= 0)
        b = p->buffer[b].alias;
    return b;
}

/* ---- making ---- */

static oct_status set_input_shapes(oct_graph *g, const oct_input_shape *in, size_t n_in, oct_err *err)
{
    for (size_t i = 0; i < n_in; i++) {
        int v = oct_graph_find(g, in[i].name);
        if (v < 0 || !g->value[v].is_input)
            return oct_fail(err, OCT_EUSAGE, "the model has no input '%s'", in[i].name);
        if (in[i].rank < 0 || in[i].rank > OCT_MAX_RANK)
            return oct_fail(err, OCT_EUSAGE, "input '%s' is given %d dimensions; at most %d are supported", in[i].name,
                            in[i].rank, OCT_MAX_RANK);
        const oct_shape *s = &g->value[v].shape;
        bool fits = s->rank < 0 || s->rank == in[i].rank;
        for (int k = 0; fits && k < s->rank; k++)
            fits = s->d[k].n < 0 || s->d[k].n == in[i].dims[k];
        if (!fits) {
            char want[128], got[128];
            oct_dim d[OCT_MAX_RANK];
            for (int k = 0; k < in[i].rank; k++)
                d[k] = (oct_dim){ in[i].dims[k], NULL };
            oct_shape have = { in[i].rank, d };
            return oct_fail(err, OCT_EMALFORMED, "input '%s' is %s, but the model expects %s", in[i].name,
                            oct_shape_text(&have, got, sizeof got), oct_shape_text(s, want, sizeof want));
        }
        OCT_TRY(oct_graph_set_dims(g, v, in[i].rank, in[i].dims, err));
    }
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        char text[128];
        if (!oct_shape_known(&v->shape, NULL))
            return oct_fail(err, OCT_EUSAGE, "input '%s' has the open shape %s: concrete dimensions are needed", v->name,
                            oct_shape_text(&v->shape, text, sizeof text));
    }
    return OCT_OK;
}

/* Shapes computed in the graph are constants once the inputs' shapes are: they fold, tapped or not. */
static bool is_arithmetic_of_shapes(const oct_value *v)
{
    return v->dtype == OCT_S64 || v->dtype == OCT_S32;
}

/* Tapped values must outlive the fusion passes: passes keep graph outputs, so taps are outputs while they run. */
static void show_taps(oct_plan *p, bool on)
{
    for (size_t i = 0; i < p->n_taps; i++) {
        int v = oct_graph_find(p->g, p->taps[i]);
        bool real = false;
        for (size_t k = 0; v >= 0 && k < p->g->n_output; k++)
            real |= p->g->output[k] == v;
        if (v >= 0 && !real)
            p->g->value[v].is_output = on && !is_arithmetic_of_shapes(&p->g->value[v]);
    }
}

static oct_status allocate(oct_plan *p, oct_err *err)
{
    p->memory = p->memory_bytes ? oct_alloc(p->memory_bytes) : NULL;
    p->scratch = p->scratch_bytes ? oct_alloc(p->scratch_bytes) : NULL;
    if ((p->memory_bytes && !p->memory) || (p->scratch_bytes && !p->scratch))
        return oct_fail(err, OCT_ENOMEM, "out of memory: %zu bytes for intermediate tensors, %zu of scratch", p->memory_bytes,
                        p->scratch_bytes);
    for (size_t i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].s.n_in + p->step[i].s.n_out; k++) {
            oct_step *s = &p->step[i].s;
            oct_operand *t = k < s->n_in ? s->in[k] : s->out[k - s->n_in];
            if (!t)
                continue;
            const rt_buffer *b = &p->buffer[rt_root(p, ((rt_operand *)t)->buffer)];
            if (b->placed)
                t->data = p->memory + b->offset;
            else if (b->konst)
                t->data = (void *)(uintptr_t)b->konst;
        }
    for (size_t i = 0; i < p->n_output; i++) {
        const rt_buffer *b = &p->buffer[rt_root(p, p->output[i]->buffer)];
        if (b->placed)
            p->output[i]->t.data = p->memory + b->offset;
        else if (b->konst)
            p->output[i]->t.data = (void *)(uintptr_t)b->konst;
    }
    return OCT_OK;
}

static oct_status build(oct_plan *p, const oct_graph *g, const oct_input_shape *in, size_t n_in, bool passes, oct_err *err)
{
    OCT_TRY(oct_graph_clone(g, &p->g, err));
    OCT_TRY(set_input_shapes(p->g, in, n_in, err));
    /* Declared shapes may hold a symbolic or wrong batch: with concrete inputs everything that an operator record
     * knows is inferred afresh; the declaration stays for nodes without one. */
    oct_forget_shapes(p->g);
    OCT_TRY(oct_infer_shapes(p->g, err)); /* types too, which show_taps asks for */
    show_taps(p, true);
    OCT_TRY(oct_fold_constants(p->g, SIZE_MAX, NULL, err));
    OCT_TRY(passes ? oct_passes_run(p->g, NULL, 0, NULL, err) : oct_passes_flatten(p->g, err));
    show_taps(p, false);
    if (!p->no_integer)
        OCT_TRY(rt_keep_blocks(p, err));
    OCT_TRY(rt_lower(p, err));
    OCT_TRY(rt_layout(p, err));
    OCT_TRY(rt_place(p, err));
    return allocate(p, err);
}

oct_status oct_plan_create(const oct_graph *g, const oct_input_shape *in, size_t n_in, const oct_plan_opts *opts,
                           oct_plan **plan, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_plan *p = a ? oct_arena_calloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    p->arena = a;
    bool passes = true;
    if (opts) {
        p->pool = opts->pool;
        p->taps = opts->taps;
        p->n_taps = opts->n_taps;
        p->no_integer = opts->no_integer;
        passes = !opts->no_passes;
    }
    oct_status s = build(p, g, in, n_in, passes, err);
    if (s != OCT_OK) {
        oct_plan_destroy(p);
        return s;
    }
    *plan = p;
    return OCT_OK;
}

void oct_plan_destroy(oct_plan *p)
{
    if (!p)
        return;
    oct_free(p->memory);
    oct_free(p->scratch);
    oct_graph_destroy(p->g);
    oct_arena_destroy(p->arena);
}

/* ---- running ---- */

static oct_status show(const oct_plan *p, const rt_step *st, oct_err *err)
{
    for (int k = 0; p->tap && k < st->s.n_out; k++)
        if (st->tap[k])
            OCT_TRY(p->tap(p->tap_arg, st->tap[k], st->s.out[k], err));
    return OCT_OK;
}

static void bind_inputs(oct_plan *p, const void *const *inputs)
{
    for (size_t i = 0; i < p->n_step; i++) {
        oct_step *s = &p->step[i].s;
        for (int k = 0; k < s->n_in + s->n_out; k++) {
            oct_operand *t = k < s->n_in ? s->in[k] : s->out[k - s->n_in];
            int input = t ? p->buffer[rt_root(p, ((rt_operand *)t)->buffer)].input : -1;
            if (input >= 0)
                t->data = (void *)(uintptr_t)inputs[input];
        }
    }
    for (size_t i = 0; i < p->n_output; i++) {
        int input = p->buffer[rt_root(p, p->output[i]->buffer)].input;
        if (input >= 0)
            p->output[i]->t.data = (void *)(uintptr_t)inputs[input];
    }
}

oct_status oct_plan_run(oct_plan *p, const void *const *inputs, oct_err *err)
{
    bind_inputs(p, inputs);
    for (size_t i = 0; i < p->g->n_input && p->tap; i++) {
        rt_operand *o = p->value[p->g->input[i]];
        o->t.data = (void *)(uintptr_t)inputs[i];
        const char *name = p->g->value[p->g->input[i]].name;
        if (rt_is_tapped(p, name))
            OCT_TRY(p->tap(p->tap_arg, name, &o->t, err));
    }
    oct_run r = { .pool = p->pool, .scratch = p->scratch };
    for (size_t i = 0; i < p->n_step; i++) {
        rt_step *st = &p->step[i];
        double begin = p->profile ? oct_now() : 0;
        if (st->reorder) {
            rt_run_reorder(p->pool, &st->s);
        } else if (!st->alias) {
            oct_status s = oct_step_run(&st->s, &r, err);
            if (s != OCT_OK) {
                oct_within(err, "node '%s' (%s)", st->s.node->name, st->s.node->op);
                return s;
            }
        }
        if (p->profile) {
            st->seconds += oct_now() - begin;
            st->calls++;
        }
        OCT_TRY(show(p, st, err));
    }
    return OCT_OK;
}

size_t oct_plan_n_outputs(const oct_plan *p)
{
    return p->n_output;
}

const char *oct_plan_output_name(const oct_plan *p, size_t i)
{
    return p->g->value[p->g->output[i]].name;
}

const oct_operand *oct_plan_output(const oct_plan *p, size_t i)
{
    return &p->output[i]->t;
}

void oct_plan_set_tap(oct_plan *p, oct_tap_fn fn, void *arg)
{
    p->tap = fn;
    p->tap_arg = arg;
}

bool oct_plan_shows(const oct_plan *p, const char *value)
{
    for (size_t i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].s.n_out; k++)
            if (p->step[i].tap[k] && strcmp(p->step[i].tap[k], value) == 0)
                return true;
    int v = oct_graph_find(p->g, value);
    return v >= 0 && p->g->value[v].is_input;
}

void oct_plan_profile(oct_plan *p, bool on)
{
    p->profile = on;
    for (size_t i = 0; on && i < p->n_step; i++)
        p->step[i].seconds = 0, p->step[i].calls = 0;
}

size_t oct_plan_n_steps(const oct_plan *p)
{
    return p->n_step;
}

oct_step_info oct_plan_step(const oct_plan *p, size_t i)
{
    const rt_step *st = &p->step[i];
    oct_step_info info = { .scheme = st->scheme, .seconds = st->seconds, .calls = st->calls, .macs = st->macs };
    if (strcmp(st->scheme, "float") == 0 && st->s.n_out && st->s.out[0])
        info.scheme = oct_operand_scheme(st->s.out[0]);
    info.name = st->s.node ? st->s.node->name : "";
    info.op = st->s.node ? st->s.node->op : "Reorder";
    for (int k = 0; k < st->s.n_in + st->s.n_out; k++) {
        const oct_operand *t = k < st->s.n_in ? st->s.in[k] : st->s.out[k - st->s.n_in];
        size_t bytes;
        if (t && !st->alias && oct_dtype_bytes(t->dtype, t->count, &bytes))
            info.bytes += bytes;
    }
    return info;
}

oct_plan_memory oct_plan_memory_of(const oct_plan *p)
{
    return (oct_plan_memory){ p->memory_bytes, p->live_bytes, p->weight_bytes, p->scratch_bytes };
}
