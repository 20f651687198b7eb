/* Runs one node on constants: constant folding, and tests of operators without a plan. */
#include "kernels/layout.h"
#include "ops/op.h"

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

static oct_status make_outputs(oct_graph *g, oct_step *s, size_t max_bytes, oct_arena *arena, oct_arena *temp,
                               oct_tensor **out, oct_err *err)
{
    for (int i = 0; i < s->n_out; i++) {
        out[i] = NULL;
        if (s->node->out[i] < 0)
            continue;
        const oct_value *v = &g->value[s->node->out[i]];
        int64_t dims[OCT_MAX_RANK], count;
        size_t bytes;
        if (!oct_shape_known(&v->shape, dims) || v->dtype == OCT_UNDEFINED)
            return oct_fail(err, OCT_EUNSUPPORTED, "the shape of '%s' depends on data", v->name);
        if (!oct_count(dims, v->shape.rank, &count) || !oct_dtype_bytes(v->dtype, count, &bytes) || bytes > max_bytes)
            return oct_fail(err, OCT_EUNSUPPORTED, "'%s' would be too large", v->name);
        OCT_TRY(oct_tensor_new(arena, v->dtype, v->shape.rank, dims, &out[i], err));
        if (!(s->out[i] = operand_of(temp, out[i], s->node->out[i])))
            return oct_nomem(err);
        s->out[i]->constant = false;
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

/* Gives operand t a channels-last block of its own, filled from its plain data when it is an input. */
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

/* Operators that want channels-last get it here too (op.h, OCT_RULE_SPATIAL). */
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

static void take_results(const oct_step *s, oct_tensor *const *out)
{
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i] && s->out[i]->layout == OCT_LAYOUT_CHANNELS_LAST)
            relayout(s->out[i], s->out[i]->data, OCT_LAYOUT_PLAIN, (void *)(uintptr_t)out[i]->data);
}

static oct_status eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_arena *temp, oct_tensor **out,
                       oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (!op || !op->run)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s cannot be run", n->op);
    oct_infer c = { g, node, oct_graph_opset(g, n->domain), NULL };
    OCT_TRY(op->infer(&c, err));
    oct_step s = { .op = op, .node = n, .opset = c.opset, .n_in = n->n_in, .n_out = n->n_out };
    s.in = oct_arena_calloc(temp, (size_t)n->n_in + 1, sizeof *s.in);
    s.out = oct_arena_calloc(temp, (size_t)n->n_out + 1, sizeof *s.out);
    if (!s.in || !s.out)
        return oct_nomem(err);
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const oct_tensor *t = g->value[n->in[i]].konst;
        if (!t || !t->data)
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' is not a constant", g->value[n->in[i]].name);
        if (!(s.in[i] = operand_of(temp, t, n->in[i])))
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has too many dimensions", g->value[n->in[i]].name);
    }
    OCT_TRY(make_outputs(g, &s, max_bytes, arena, temp, out, err));
    OCT_TRY(lay_out(&s, temp, err));
    oct_prep p = { temp, 1 };
    OCT_TRY(oct_step_prepare(&s, &p, err));
    oct_run r = { 0 };
    if (s.scratch && !(r.scratch = oct_arena_aligned(temp, s.scratch, 64)))
        return oct_nomem(err);
    OCT_TRY(oct_step_run(&s, &r, err));
    take_results(&s, out);
    return OCT_OK;
}

oct_status oct_op_eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_tensor **out, oct_err *err)
{
    oct_arena *temp = oct_arena_create();
    if (!temp)
        return oct_nomem(err);
    oct_status s = eval(g, node, max_bytes, arena, temp, out, err);
    oct_arena_destroy(temp);
    return s;
}
