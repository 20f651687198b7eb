/* Making a plan. */
#include "runtime/plan_int.h"

#include "base/array.h"
#include "forms/forms.h"
#include "passes/pass.h"
#include "passes/to_float32.h"

#include <string.h>

/* ---- making ---- */

/* Whether what is given for an input is what the graph wants. */
static oct_status check_input(const oct_value *v, const oct_plan_input *in, oct_err *err)
{
    const oct_shape *s = &v->shape;
    if (in->dtype != OCT_UNDEFINED && v->dtype != OCT_UNDEFINED && in->dtype != v->dtype)
        return oct_fail(err, OCT_EMALFORMED, "input '%s' is %s, but %s is expected", v->name, oct_dtype_name(in->dtype),
                        oct_dtype_name(v->dtype));
    bool fits = s->rank < 0 || s->rank == in->rank;
    for (int k = 0; fits && k < s->rank; k++)
        fits = s->d[k].n < 0 || s->d[k].n == in->dims[k];
    if (fits)
        return OCT_OK;
    char want[128], got[96];
    return oct_fail(err, OCT_EMALFORMED, "input '%s' is %s, but the model expects %s", v->name,
                    oct_dims_text(got, in->rank, in->dims), oct_shape_text(s, want, sizeof want));
}

/* in[i]: for input i; NULL: all as declared. */
static oct_status set_inputs(oct_graph *g, const oct_plan_input *in, oct_err *err)
{
    for (size_t i = 0; in && i < g->n_input; i++) {
        oct_value *v = &g->value[g->input[i]];
        if (!in[i].tensor) { /* no shape, and no type that a plan could use */
            v->dtype = OCT_UNDEFINED;
            v->shape.rank = -1;
            continue;
        }
        if (!in[i].varies)
            OCT_TRY(check_input(v, &in[i], err));
        v->kind = OCT_VALUE_TENSOR; /* an optional that holds one */
        if (in[i].dtype != OCT_UNDEFINED)
            v->dtype = in[i].dtype;
        OCT_TRY(oct_graph_set_dims(g, g->input[i], in[i].rank, in[i].dims, err));
        for (int k = 0; in[i].varies && k < in[i].rank; k++)
            v->shape.d[k] = (oct_dim){ -1, NULL };
    }
    return OCT_OK;
}

/* Says how much is wanted, and which node makes the largest part of it. */
static oct_status no_room(const oct_plan *p, oct_err *err)
{
    const rt_operand *largest = NULL;
    size_t most = 0;
    char node[160], shape[96];
    for (const rt_operand *o = p->operand; o; o = o->next) {
        const rt_buffer *b = &p->buffer[rt_root(p, o->buffer)];
        if (b->placed && b->bytes > most && o->t.value >= 0 && p->g->value[o->t.value].producer >= 0) {
            largest = o;
            most = b->bytes;
        }
    }
    oct_fail(err, OCT_ENOMEM, "out of memory: %zu bytes for intermediate tensors, %zu of scratch", p->memory_bytes,
             p->scratch_bytes);
    if (largest)
        oct_within(err, "%s makes %s", oct_node_text(p->g, p->g->value[largest->t.value].producer, node, sizeof node),
                   oct_dims_text(shape, largest->t.rank, largest->t.dims));
    oct_hint(err, "smaller inputs or fewer samples at a time need less memory");
    return OCT_ENOMEM;
}

/* Whether a change of layout makes an output: it writes elements far from each other, which is slow in memory that is
 * not in the cache, and a copy of the result is faster. */
static bool is_reordered(const oct_plan *p, const rt_operand *output)
{
    bool reordered = false;
    for (size_t i = p->n_step; i-- > 0 && !reordered;)
        reordered = !p->step[i]->s.op && !p->step[i]->alias && p->step[i]->s.out[0] == &output->t;
    return reordered;
}

/* Whether runs may write output i into other memory: the bytes are its own. */
static bool is_movable(const oct_plan *p, size_t i)
{
    const rt_operand *o = p->output[i];
    const int root = rt_root(p, o->buffer);
    const rt_buffer *b = &p->buffer[root];
    size_t bytes;
    bool own = b->placed && oct_dtype_bytes(o->t.dtype, o->t.count, &bytes) && bytes == b->bytes;
    for (size_t k = 0; k < p->g->n_output && own; k++)
        own = k == i || rt_root(p, p->output[k]->buffer) != root;
    return own && !is_reordered(p, o);
}

/* The operands whose bytes each run may have elsewhere. */
static oct_status find_moved(oct_plan *p, oct_err *err)
{
    bool *moves = oct_arena_calloc(p->arena, p->n_buffer + 1, sizeof *moves);
    size_t n = 0;
    p->movable = oct_arena_calloc(p->arena, p->g->n_output + 1, sizeof *p->movable);
    if (!moves || !p->movable)
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_buffer; i++)
        moves[i] = p->buffer[i].input >= 0;
    for (size_t i = 0; i < p->g->n_output; i++) {
        p->movable[i] = is_movable(p, i);
        moves[rt_root(p, p->output[i]->buffer)] |= p->movable[i];
    }
    for (const rt_operand *o = p->operand; o; o = o->next)
        n += moves[rt_root(p, o->buffer)];
    if (!(p->moved = oct_arena_calloc(p->arena, n + 1, sizeof *p->moved)))
        return oct_nomem(err);
    for (rt_operand *o = p->operand; o; o = o->next)
        if (moves[rt_root(p, o->buffer)])
            p->moved[p->n_moved++] = o;
    return OCT_OK;
}

static oct_status allocate(oct_plan *p, oct_err *err)
{
    OCT_TRY(find_moved(p, err));
    p->memory = oct_alloc(p->memory_bytes);
    p->scratch = oct_alloc(p->scratch_bytes);
    if (!p->memory || !p->scratch)
        return no_room(p, err);
    for (rt_operand *o = p->operand; o; o = o->next) {
        rt_buffer *b = &p->buffer[rt_root(p, o->buffer)];
        if (!b->placed)
            continue;
        b->memory = p->memory + b->offset;
        o->t.data = b->memory + rt_offset(p, o->buffer);
    }
    return OCT_OK;
}

/* Random numbers depend on the name of their node, regardless of stages: a node without a name gets that of its result.
 */
static void name_draws(oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++) {
        oct_node *n = &g->node[g->order[i]];
        const oct_op *op = oct_op_of(g, g->order[i]);
        if (op && op->draws && !n->name[0] && n->out[0] >= 0)
            n->name = g->value[n->out[0]].name;
    }
}

/* The value of a name; X of a form that has no such real is what X_quantized stands for. */
static oct_status find_tap(const oct_plan *p, const char *name, int *v, oct_err *err)
{
    *v = oct_graph_find(p->g, name);
    const char *qvals = *v < 0 ? oct_arena_printf(p->arena, "%s_quantized", name) : name;
    if (qvals)
        *v = oct_graph_find(p->g, qvals);
    return qvals ? OCT_OK : oct_nomem(err);
}

/* The graph's values carry their quantization; p->tap_at and tap_reals tell where the values are that taps ask for. */
static oct_status read_forms(oct_plan *p, oct_err *err)
{
    const int *now;
    p->tap_at = oct_arena_alloc(p->arena, (p->opts.n_taps + 1) * sizeof *p->tap_at);
    p->tap_reals = oct_arena_calloc(p->arena, p->opts.n_taps + 1, sizeof *p->tap_reals);
    if (!p->tap_at || !p->tap_reals)
        return oct_nomem(err);
    for (size_t i = 0; i < p->opts.n_taps; i++) {
        OCT_TRY(find_tap(p, p->opts.taps[i], &p->tap_at[i], err));
        const int id = p->tap_at[i] >= 0 ? p->g->value[p->tap_at[i]].producer : -1;
        p->tap_reals[i] = id >= 0 && strcmp(p->g->node[id].op, "DequantizeLinear") == 0;
    }
    const oct_read_opts opts = {
        .operators_only = p->opts.no_integer, .seen = p->tap_at, .n_seen = p->opts.n_taps, .keeps_lstm = true
    };
    OCT_TRY(oct_forms_read(p->g, &opts, &now, err));
    for (size_t i = 0; i < p->opts.n_taps; i++)
        p->tap_at[i] = p->tap_at[i] >= 0 ? now[p->tap_at[i]] : -1;
    OCT_TRY(oct_forms_split_qlinear(p->g, err));
    rt_show_taps(p, p->g, true);
    oct_graph_prune(p->g);
    rt_show_taps(p, p->g, false);
    return OCT_OK;
}

/* Whether all products of g and of the graphs in it, at least one, are of bfloat16. */
static bool all_bf16(const oct_graph *g, bool *any)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        const oct_op *op = oct_op_of(g, g->order[i]);
        const oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
            if (!all_bf16(nested, any))
                return false;
        if (!op || op->quant != OCT_QUANT_WEIGHTED || n->n_in < 1 || n->in[0] < 0)
            continue;
        if (g->value[n->in[0]].dtype != OCT_BF16)
            return false;
        *any = true;
    }
    return true;
}

static oct_status widen_bf16(oct_plan *p, bool inner, oct_err *err)
{
    oct_widened w;
    bool any = false;
    if (inner || !all_bf16(p->g, &any) || !any)
        return OCT_OK;
    OCT_TRY(oct_widen_floats(p->g, OCT_WIDEN_BUT_WEIGHTS, &w, err));
    p->opts.bf16 |= w.widest == OCT_BF16;
    return oct_infer_shapes(p->g, err);
}

static oct_status build(oct_plan *p, const oct_graph *g, const oct_plan_input *in, bool inner, oct_err *err)
{
    OCT_TRY(oct_graph_clone(g, &p->g, err));
    OCT_TRY(set_inputs(p->g, in, err));
    p->n_shown = inner ? 0 : p->g->n_input;
    /* Declared shapes may hold a symbolic or wrong batch: with concrete inputs everything that an operator record
     * knows is inferred afresh; the declaration stays for nodes without one. */
    oct_forget_shapes(p->g);
    OCT_TRY(oct_infer_shapes(p->g, err)); /* types too, which rt_show_taps asks for */
    OCT_TRY(widen_bf16(p, inner, err));
    rt_show_taps(p, p->g, true);
    OCT_TRY(oct_fold_constants(p->g, NULL, NULL, err));
    OCT_TRY(p->opts.no_passes ? oct_passes_flatten(p->g, err) : oct_passes_run(p->g, NULL, 0, NULL, err));
    name_draws(p->g);
    bool all = true, *covered;
    if (!inner)
        OCT_TRY(rt_cover(p->g, p->arena, &covered, &all, err));
    for (size_t i = 0; in && i < p->g->n_input; i++)
        all &= !in[i].varies;
    if (all && !p->opts.no_passes)
        OCT_TRY(oct_passes_fuse(p->g, NULL, err));
    rt_show_taps(p, p->g, false);
    OCT_TRY(read_forms(p, err)); /* before stages compute constants: they must know which are quantized */
    if (!all)
        return rt_stage_init(p, in, err);
    OCT_TRY(rt_lower(p, err));
    OCT_TRY(rt_layout(p, err));
    OCT_TRY(rt_tile(p, err));
    OCT_TRY(rt_place(p, err));
    if (!(p->given = oct_arena_calloc(p->arena, p->g->n_input + 1, sizeof *p->given)))
        return oct_nomem(err);
    return allocate(p, err);
}

enum { MOST_NESTED = 64 };

oct_status rt_create(const oct_graph *g, const oct_plan_input *in, const oct_plan *like, bool inner, oct_plan **plan,
                     oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_plan *p = a ? oct_arena_calloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    *p = (oct_plan){ .arena = a, .opts = like->opts, .depth = like->depth + 1 };
    if (p->opts.max_trips <= 0)
        p->opts.max_trips = OCT_MAX_TRIPS;
    oct_status s = p->depth <= MOST_NESTED
                       ? build(p, g, in, inner, err)
                       : oct_fail(err, OCT_EUNSUPPORTED, "graphs nest more than %d deep", MOST_NESTED);
    if (s != OCT_OK) {
        oct_plan_destroy(p);
        return s;
    }
    *plan = p;
    return OCT_OK;
}

oct_status oct_plan_create(const oct_graph *g, const oct_plan_input *in, const oct_plan_opts *opts, oct_plan **plan,
                           oct_err *err)
{
    return rt_create(g, in, &(oct_plan){ .opts = opts ? *opts : (oct_plan_opts){ 0 } }, false, plan, err);
}

void oct_plan_destroy(oct_plan *p)
{
    if (!p)
        return;
    rt_stage_free(p);
    oct_free(p->memory);
    oct_free(p->scratch);
    oct_packed_release(&p->packed);
    oct_graph_destroy(p->g);
    oct_arena_destroy(p->arena);
}
