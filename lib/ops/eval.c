/* Runs one node on constants: constant folding, and tests of operators without a plan. */
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

static oct_status eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_arena *temp, oct_tensor **out,
                       oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (!op || !op->run)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s cannot be run", n->op);
    oct_infer c = { g, node, oct_graph_opset(g, n->domain) };
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
    oct_prep p = { temp, 1 };
    if (op->prepare)
        OCT_TRY(op->prepare(&s, &p, err));
    oct_run r = { 0 };
    if (s.scratch && !(r.scratch = oct_arena_aligned(temp, s.scratch, 64)))
        return oct_nomem(err);
    return op->run(&s, &r, err);
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
