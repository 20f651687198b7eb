/* Runs one node on given tensors: for constant folding, steps between planned stages, and tests of operators without a
 * plan. */
#include "kernels/layout.h"
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

static oct_operand *operand_of(oct_arena *a, const oct_tensor *t, int value)
{
    oct_operand *o = oct_arena_calloc(a, 1, sizeof *o);
    if (!o || t->rank > OCT_MAX_RANK)
        return NULL;
    o->dtype = t->dtype;
    o->rank = t->rank;
    memcpy(o->dims, t->dims, (size_t)t->rank * sizeof *t->dims);
    o->count = t->count;
    o->data = (void *)(uintptr_t)t->data;
    o->constant = true;
    o->value = value;
    return o;
}

/* Where results go. */
typedef struct results {
    oct_status (*make)(void *arg, int slot, const oct_operand *like, void **data, oct_err *err);
    void *arg;
    size_t max_bytes;
} results;

/* Operands of the outputs, with shapes where inference knows them. */
static oct_status describe_outputs(const oct_graph *g, oct_step *s, oct_arena *temp, oct_err *err)
{
    for (int i = 0; i < s->n_out; i++) {
        if (s->node->out[i] < 0)
            continue;
        const oct_value *v = &g->value[s->node->out[i]];
        oct_operand *t = s->out[i] = oct_arena_calloc(temp, 1, sizeof *t);
        if (!t)
            return oct_nomem(err);
        *t = (oct_operand){ .dtype = v->dtype, .rank = v->shape.rank, .value = s->node->out[i] };
        if ((!oct_shape_known(&v->shape, t->dims) && !s->op->measure) || v->dtype == OCT_UNDEFINED)
            return oct_fail(err, OCT_EUNSUPPORTED, "the shape of '%s' depends on data", v->name);
    }
    return OCT_OK;
}

static oct_status make_outputs(const oct_graph *g, const oct_step *s, const results *to, oct_err *err)
{
    for (int i = 0; i < s->n_out; i++) {
        size_t bytes;
        oct_operand *t = s->out[i];
        if (!t)
            continue;
        if (!oct_count(t->dims, t->rank, &t->count) || !oct_dtype_bytes(t->dtype, t->count, &bytes) ||
            bytes > to->max_bytes)
            return oct_fail(err, OCT_EUNSUPPORTED, "'%s' would be too large", g->value[t->value].name);
        OCT_TRY(to->make(to->arg, i, t, &t->data, err));
    }
    return OCT_OK;
}

/* Copies t's bytes from one layout into the other; dst has as many. */
static void relayout(const oct_operand *t, const void *src, oct_tensor_layout to, void *dst)
{
    size_t n = (size_t)t->dims[0], c = (size_t)t->dims[1], size = (size_t)oct_dtype_bits(t->dtype) / 8;
    size_t spatial = t->count ? (size_t)t->count / n / c : 0;
    if (t->count == 0)
        return;
    if (to == OCT_LAYOUT_CHANNELS_LAST)
        oct_transpose_2d(NULL, src, n, c, spatial, size, dst);
    else
        oct_transpose_2d(NULL, src, n, spatial, c, size, dst);
}

/* Allocates a channels-last block for operand t, filled from its plain data if it is an input. */
static oct_status to_channels_last(oct_operand *t, bool input, oct_arena *temp, oct_err *err)
{
    size_t bytes;
    if (t->rank < 3)
        return OCT_OK;
    if (oct_dtype_bits(t->dtype) < 8 || !oct_dtype_bytes(t->dtype, t->count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(t->dtype));
    void *block = oct_arena_aligned(temp, bytes + 1, 64);
    if (!block)
        return oct_nomem(err);
    if (input)
        relayout(t, t->data, OCT_LAYOUT_CHANNELS_LAST, block);
    t->data = block;
    t->layout = OCT_LAYOUT_CHANNELS_LAST;
    return OCT_OK;
}

/* Operators that need channels-last operands get them here, too (op.h, OCT_RULE_SPATIAL). */
static oct_status lay_out(oct_step *s, oct_arena *temp, oct_err *err)
{
    if (s->op->layout != OCT_RULE_SPATIAL)
        return OCT_OK;
    if (s->n_in > 0 && s->in[0])
        OCT_TRY(to_channels_last(s->in[0], true, temp, err));
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i])
            OCT_TRY(to_channels_last(s->out[i], false, temp, err));
    return OCT_OK;
}

/* Back to plain layout, where the results are expected. */
static void take_results(const oct_step *s, void *const *plain)
{
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i] && s->out[i]->layout == OCT_LAYOUT_CHANNELS_LAST)
            relayout(s->out[i], s->out[i]->data, OCT_LAYOUT_PLAIN, plain[i]);
}

static oct_status prepare(oct_step *s, const oct_run *how, oct_run *r, oct_arena *temp, oct_err *err)
{
    oct_prep p = { temp, oct_pool_threads(how->pool), .fast_pack = true };
    OCT_TRY(oct_step_prepare(s, &p, err));
    *r = *how;
    return (r->scratch = oct_arena_aligned(temp, s->scratch, 64)) ? OCT_OK : oct_nomem(err);
}

/* Results whose shape depends on data: the operator measures them first. */
static oct_status run_measured(const oct_graph *g, oct_step *s, const results *to, const oct_run *how, oct_arena *temp,
                               oct_err *err)
{
    oct_run r;
    OCT_TRY(prepare(s, how, &r, temp, err));
    OCT_TRY(s->op->measure(s, &r, err));
    OCT_TRY(make_outputs(g, s, to, err));
    return oct_step_run(s, &r, err);
}

static oct_status run_known(const oct_graph *g, oct_step *s, const results *to, const oct_run *how, oct_arena *temp,
                            oct_err *err)
{
    void **plain = oct_arena_calloc(temp, (size_t)s->n_out + 1, sizeof *plain);
    oct_run r;
    if (!plain)
        return oct_nomem(err);
    OCT_TRY(make_outputs(g, s, to, err));
    for (int i = 0; i < s->n_out; i++)
        plain[i] = s->out[i] ? s->out[i]->data : NULL;
    OCT_TRY(lay_out(s, temp, err));
    OCT_TRY(prepare(s, how, &r, temp, err));
    OCT_TRY(oct_step_run(s, &r, err));
    take_results(s, plain);
    return OCT_OK;
}

static oct_status eval(oct_graph *g, int node, const results *to, const oct_run *how, oct_arena *temp, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (!op || !op->run)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s cannot be run", n->op);
    oct_infer c = { g, node, oct_node_opset(g, n), NULL };
    OCT_TRY(op->infer(&c, err));
    oct_step s = { .op = op, .node = n, .opset = c.opset, .n_in = n->n_in, .n_out = n->n_out };
    s.in = oct_arena_calloc(temp, (size_t)n->n_in + 1, sizeof *s.in);
    s.out = oct_arena_calloc(temp, (size_t)n->n_out + 1, sizeof *s.out);
    if (!s.in || !s.out)
        return oct_nomem(err);
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const oct_tensor *t = g->value[n->in[i]].constant;
        if (!t || !t->data)
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' is not a constant", g->value[n->in[i]].name);
        if (!(s.in[i] = operand_of(temp, t, n->in[i])))
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has too many dimensions", g->value[n->in[i]].name);
    }
    OCT_TRY(describe_outputs(g, &s, temp, err));
    return op->measure ? run_measured(g, &s, to, how, temp, err) : run_known(g, &s, to, how, temp, err);
}

/* ---- into an arena ---- */

typedef struct in_arena {
    oct_arena *arena;
    oct_tensor **out;
} in_arena;

static oct_status make_tensor(void *arg, int slot, const oct_operand *like, void **data, oct_err *err)
{
    in_arena *a = arg;
    OCT_TRY(oct_tensor_new(a->arena, like->dtype, like->rank, like->dims, &a->out[slot], err));
    *data = (void *)(uintptr_t)a->out[slot]->data;
    return OCT_OK;
}

oct_status oct_op_eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_tensor **out, oct_err *err)
{
    oct_arena *temp = oct_arena_create();
    if (!temp)
        return oct_nomem(err);
    in_arena a = { arena, out };
    results to = { make_tensor, &a, max_bytes };
    for (int i = 0; i < g->node[node].n_out; i++)
        out[i] = NULL;
    oct_status s = eval(g, node, &to, &(oct_run){ .pool = NULL }, temp, err);
    oct_arena_destroy(temp);
    return s;
}

/* ---- into data ---- */

static oct_status make_datum(void *arg, int slot, const oct_operand *like, void **data, oct_err *err)
{
    oct_datum **out = arg;
    OCT_TRY(oct_datum_tensor(like->dtype, like->rank, like->dims, &out[slot], err));
    *data = oct_datum_data(out[slot]);
    return OCT_OK;
}

/* Operators that move elements treat strings as elements of 16 bytes, the size of oct_str. */
static const oct_dtype stand_in = OCT_C128;
_Static_assert(sizeof(oct_str) == 16, "a string is as long as a complex number of two doubles");

static oct_status input_tensor(const oct_op *op, const oct_datum *x, int slot, oct_arena *a, const oct_tensor **out,
                               oct_err *err)
{
    *out = &x->t;
    if (x->kind == OCT_DATUM_TENSOR && x->t.dtype != OCT_STRING)
        return OCT_OK;
    if (x->kind != OCT_DATUM_TENSOR || !op->moves)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s cannot be run on input %d, which is %s", op->type, slot,
                        x->kind == OCT_DATUM_TENSOR ? "of strings" : "no tensor");
    oct_tensor *t = oct_arena_memdup(a, &x->t, sizeof *t);
    if (!t)
        return oct_nomem(err);
    t->dtype = stand_in;
    *out = t;
    return OCT_OK;
}

/* A graph with only this node and constant inputs, so that inference uses the values of these data. */
static oct_status one_node(oct_graph *one, const oct_graph *g, int node, oct_datum *const *in, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    int id, v;
    char name[32];
    OCT_TRY(oct_graph_set_opset(one, "", oct_graph_opset(g, ""), err));
    OCT_TRY(oct_graph_set_opset(one, n->domain, oct_graph_opset(g, n->domain), err));
    OCT_TRY(oct_graph_add_node(one, n->op, n->domain, n->name, n->n_in, n->n_out, -1, &id, err));
    one->node[id].attr = n->attr;
    one->node[id].n_attr = one->node[id].cap_attr = n->n_attr;
    for (int i = 0; i < n->n_in; i++) {
        const oct_tensor *t;
        if (!in[i])
            continue;
        OCT_TRY(input_tensor(op, in[i], i, one->arena, &t, err));
        snprintf(name, sizeof name, "input %d", i);
        OCT_TRY(oct_graph_add_value(one, name, OCT_UNDEFINED, &v, err));
        OCT_TRY(oct_graph_set_dims(one, v, t->rank, t->dims, err));
        oct_graph_set_const(one, v, t);
        OCT_TRY(oct_graph_set_input(one, id, i, v, err));
    }
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0)
            continue;
        OCT_TRY(oct_graph_add_value(one, g->value[n->out[i]].name, OCT_UNDEFINED, &v, err));
        OCT_TRY(oct_graph_set_output(one, id, i, v, err));
    }
    return OCT_OK;
}

/* Results that hold strings of the inputs get bytes of their own. */
static oct_status own_strings(oct_datum *const *in, int n_in, oct_datum **out, int n_out, oct_err *err)
{
    bool strings = false;
    for (int i = 0; i < n_in; i++)
        strings |= in[i] && in[i]->t.dtype == OCT_STRING;
    for (int k = 0; strings && k < n_out; k++) {
        oct_datum *copy;
        if (!out[k] || out[k]->t.dtype != stand_in)
            continue;
        OCT_TRY(oct_datum_strings(out[k]->t.rank, out[k]->dims, out[k]->t.data, &copy, err));
        oct_datum_unref(out[k]);
        out[k] = copy;
    }
    return OCT_OK;
}

oct_status oct_op_run_alone(const oct_graph *g, int node, oct_datum *const *in, oct_datum **out, const oct_run *how,
                            oct_err *err)
{
    oct_graph *one = oct_graph_create();
    results to = { make_datum, out, SIZE_MAX };
    oct_status s = one ? one_node(one, g, node, in, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = eval(one, 0, &to, how, one->arena, err);
    if (s == OCT_OK)
        s = own_strings(in, g->node[node].n_in, out, g->node[node].n_out, err);
    oct_graph_destroy(one);
    return s;
}
