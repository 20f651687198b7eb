/* If and Loop. */
#include "ops/control/control.h"

#include <string.h>

/* ------------------------------------------------------------------ If */

static oct_status branch_of(const oct_node *n, const char *attr, oct_graph **branch, oct_err *err)
{
    *branch = oct_node_graph(n, attr);
    if (!*branch)
        return oct_fail(err, OCT_EMALFORMED, "%s has no graph '%s'", n->op, attr);
    if ((int)(*branch)->n_output < n->n_out)
        return oct_fail(err, OCT_EMALFORMED, "graph '%s' has %zu outputs; %d are wanted", attr, (*branch)->n_output,
                        n->n_out);
    return OCT_OK;
}

/* What holds of an output whichever branch makes it. */
static oct_status either(const oct_infer *c, int slot, const oct_value *a, const oct_value *b, oct_err *err)
{
    oct_dim d[OCT_MAX_RANK];
    if (a->dtype != OCT_UNDEFINED && b->dtype != OCT_UNDEFINED && a->dtype != b->dtype)
        return oct_fail(err, OCT_EMALFORMED, "its branches make output %d a tensor of %s and of %s", slot,
                        oct_dtype_name(a->dtype), oct_dtype_name(b->dtype));
    const oct_value *known = a->kind != OCT_VALUE_TENSOR || b->dtype == OCT_UNDEFINED ? a : b;
    oct_out_kind(c, slot, known->kind, known->elem);
    oct_out_dtype(c, slot, a->dtype != OCT_UNDEFINED ? a->dtype : b->dtype);
    if (a->shape.rank != b->shape.rank || a->shape.rank > OCT_MAX_RANK)
        return OCT_OK;
    for (int k = 0; k < a->shape.rank; k++)
        d[k] = oct_dim_same(a->shape.d[k], b->shape.d[k]) ? a->shape.d[k] : (oct_dim){ -1, NULL };
    return oct_out_shape(c, slot, a->shape.rank, d, err);
}

static oct_status if_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    const oct_tensor *cond = oct_in_value(c, 0)->constant;
    oct_graph *branch[2];
    bool fits[2] = { true, true };
    OCT_TRY(branch_of(n, "else_branch", &branch[0], err));
    OCT_TRY(branch_of(n, "then_branch", &branch[1], err));
    for (int i = 0; i < 2 && c->body; i++)
        OCT_TRY(c->body(branch[i], false, &fits[i], err));
    if (cond && cond->dtype == OCT_BOOL && cond->count == 1 && cond->data)
        fits[*(const uint8_t *)cond->data ? 0 : 1] = false;
    /* A branch that does not fit is not taken. */
    for (int k = 0; k < n->n_out; k++) {
        const oct_value *v[2] = { oct_body_output(branch[0], (size_t)k), oct_body_output(branch[1], (size_t)k) };
        if (fits[0] || fits[1])
            OCT_TRY(either(c, k, v[!fits[0]], v[fits[1]], err));
    }
    return OCT_OK;
}

/* Hands out the results that the node has outputs for. */
static void take(oct_exec *x, int first, oct_datum **from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int slot = first + (int)i;
        if (slot < x->node->n_out && x->node->out[slot] >= 0)
            x->out[slot] = from[i];
        else
            oct_datum_unref(from[i]);
        from[i] = NULL;
    }
}

static oct_status if_exec(oct_exec *x, oct_err *err)
{
    int64_t cond;
    OCT_TRY(oct_datum_int(x->in[0], "the condition", &cond, err));
    const char *attr = cond ? "then_branch" : "else_branch";
    oct_graph *branch;
    OCT_TRY(branch_of(x->node, attr, &branch, err));
    oct_datum **out = oct_calloc(branch->n_output + 1, sizeof *out);
    if (!out)
        return oct_nomem(err);
    oct_status s = x->body(x->arg, attr, NULL, 0, out, branch->n_output, err);
    if (s == OCT_OK)
        take(x, 0, out, branch->n_output);
    oct_free(out);
    return s;
}

const oct_op oct_op_if = {
    OCT_SCHEMA("If", "", 1, 1, 1, 1, -1),
    .infer = if_infer,
    .exec = if_exec,
};

/* ------------------------------------------------------------------ Loop */

/* Inputs of the body: iteration, condition, state; outputs: condition, state, results. */
typedef struct loop_parts {
    oct_graph *body;
    size_t states, results;
} loop_parts;

static oct_status loop_parts_of(const oct_node *n, loop_parts *l, oct_err *err)
{
    if (!(l->body = oct_node_graph(n, "body")))
        return oct_fail(err, OCT_EMALFORMED, "Loop has no graph 'body'");
    l->states = n->n_in > 2 ? (size_t)n->n_in - 2 : 0;
    if (l->body->n_input != 2 + l->states || l->body->n_output < 1 + l->states)
        return oct_fail(err, OCT_EMALFORMED,
                        "with %zu loop-carried values its body should have %zu inputs and %zu outputs or more, "
                        "not %zu and %zu",
                        l->states, 2 + l->states, 1 + l->states, l->body->n_input, l->body->n_output);
    l->results = l->body->n_output - 1 - l->states;
    if ((size_t)n->n_out > l->states + l->results)
        return oct_fail(err, OCT_EMALFORMED, "%d outputs; its body makes %zu", n->n_out, l->states + l->results);
    return OCT_OK;
}

static oct_status loop_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    const oct_shape scalar = { 0, NULL };
    loop_parts l;
    OCT_TRY(loop_parts_of(n, &l, err));
    OCT_TRY(oct_body_input(l.body, 0, OCT_S64, &scalar, err));
    OCT_TRY(oct_body_input(l.body, 1, OCT_BOOL, &scalar, err));
    OCT_TRY(oct_body_infer(c, l.body, 2, 1, 2, l.states, err));
    for (size_t i = 0; i < l.states; i++) /* the input: no iteration may be made */
        OCT_TRY(oct_out_stacked(c, (int)i, &l.body->value[l.body->input[2 + i]], -1, (oct_dim){ -1, NULL }, err));
    for (size_t i = 0; i < l.results; i++)
        OCT_TRY(oct_out_stacked(c, (int)(l.states + i), oct_body_output(l.body, 1 + l.states + i), 0,
                                (oct_dim){ -1, NULL }, err));
    return OCT_OK;
}

/* What goes round: the body's inputs and outputs, and what piled up. */
typedef struct loop_run {
    loop_parts l;
    oct_datum **in, **out, **piled;
} loop_run;

static oct_status scalar_item(oct_dtype t, int64_t v, oct_datum **out, oct_err *err)
{
    OCT_TRY(oct_datum_tensor(t, 0, NULL, out, err));
    if (t == OCT_S64)
        *(int64_t *)oct_datum_data(*out) = v;
    else
        *(uint8_t *)oct_datum_data(*out) = (uint8_t)v;
    return OCT_OK;
}

static oct_status start_loop(const oct_exec *x, loop_run *r, oct_err *err)
{
    OCT_TRY(loop_parts_of(x->node, &r->l, err));
    r->in = oct_calloc(2 + r->l.states, sizeof *r->in);
    r->out = oct_calloc(1 + r->l.states + r->l.results, sizeof *r->out);
    r->piled = oct_calloc(r->l.results + 1, sizeof *r->piled);
    if (!r->in || !r->out || !r->piled)
        return oct_nomem(err);
    for (size_t i = 0; i < r->l.states; i++) {
        if (!x->in[2 + i])
            return oct_fail(err, OCT_EMALFORMED, "input %zu is missing", 2 + i);
        r->in[2 + i] = oct_datum_ref(x->in[2 + i]);
    }
    for (size_t i = 0; i < r->l.results; i++)
        OCT_TRY(oct_datum_sequence(OCT_UNDEFINED, &r->piled[i], err));
    return scalar_item(OCT_BOOL, 1, &r->in[1], err);
}

static oct_status iterate(oct_exec *x, loop_run *r, int64_t trips, bool go, oct_err *err)
{
    for (int64_t i = 0; go && i < trips; i++) {
        int64_t cond;
        if (i == x->max_trips)
            return oct_fail(err, OCT_EUNSUPPORTED, "more than %lld iterations", (long long)i);
        oct_datum_unref(r->in[0]);
        r->in[0] = NULL;
        OCT_TRY(scalar_item(OCT_S64, i, &r->in[0], err));
        OCT_TRY(x->body(x->arg, "body", r->in, 2 + r->l.states, r->out, 1 + r->l.states + r->l.results, err));
        OCT_TRY(oct_datum_int(r->out[0], "the condition that its body makes", &cond, err));
        go = cond != 0;
        OCT_TRY(oct_carry(r->in + 1, 1 + r->l.states, r->out, 1 + r->l.states + r->l.results, r->piled, err));
    }
    return OCT_OK;
}

static oct_status loop_results(oct_exec *x, loop_run *r, oct_err *err)
{
    take(x, 0, r->in + 2, r->l.states);
    for (size_t i = 0; i < r->l.results; i++) {
        oct_datum *stacked;
        OCT_TRY(oct_datum_stack(r->piled[i], 0, false, oct_body_output(r->l.body, 1 + r->l.states + i), &stacked, err));
        take(x, (int)(r->l.states + i), &stacked, 1);
    }
    return OCT_OK;
}

static oct_status loop_exec(oct_exec *x, oct_err *err)
{
    loop_run r = { 0 };
    int64_t trips = INT64_MAX, go = 1;
    if (x->node->n_in > 0 && x->in[0])
        OCT_TRY(oct_datum_int(x->in[0], "the trip count", &trips, err));
    if (x->node->n_in > 1 && x->in[1])
        OCT_TRY(oct_datum_int(x->in[1], "the condition", &go, err));
    oct_status s = start_loop(x, &r, err);
    if (s == OCT_OK)
        s = iterate(x, &r, trips, go != 0, err);
    if (s == OCT_OK)
        s = loop_results(x, &r, err);
    oct_release(r.in, 2 + r.l.states);
    oct_release(r.out, 1 + r.l.states + r.l.results);
    oct_release(r.piled, r.l.results);
    return s;
}

const oct_op oct_op_loop = {
    OCT_SCHEMA("Loop", "", 1, 0, -1, 0, -1),
    .infer = loop_infer,
    .exec = loop_exec,
    .repeats = true,
};
