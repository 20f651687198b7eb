/* Shape inference: calls each operator's inference in topological order. */
#include "passes/pass.h"

#include "ops/core/quantized.h"
#include "passes/infer_types.h"

oct_status oct_check_arity(const oct_graph *g, int id, const oct_op *op, oct_err *err)
{
    const oct_node *n = &g->node[id];
    if (oct_border_of(g, n))
        return OCT_OK;
    if (n->n_in < op->min_in || (op->max_in >= 0 && n->n_in > op->max_in) || n->n_out < op->min_out ||
        (op->max_out >= 0 && n->n_out > op->max_out))
        return oct_fail(err, OCT_EMALFORMED, "%d inputs and %d outputs, which %s of opset %lld does not allow", n->n_in,
                        n->n_out, n->op, (long long)oct_node_opset(g, n));
    for (int k = 0; k < op->min_in; k++)
        if (n->in[k] < 0 && !(op->optional >> k & 1))
            return oct_fail(err, OCT_EMALFORMED, "input %d is missing", k);
    for (int k = 0; k < op->min_out; k++)
        if (n->out[k] < 0)
            return oct_fail(err, OCT_EMALFORMED, "output %d is missing", k);
    return OCT_OK;
}

static oct_status infer_body(oct_graph *nested, bool anew, bool *fits, oct_err *err)
{
    oct_err why = OCT_ERR_INIT;
    if (anew)
        oct_forget_shapes(nested);
    oct_status s = oct_infer_shapes(nested, &why);
    *fits = s == OCT_OK;
    return s == OCT_ENOMEM ? oct_nomem(err) : OCT_OK;
}

static oct_status infer_node(oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    oct_graph *nested = oct_node_graph_at(n, 0);
    bool fits;
    if (nested)
        OCT_TRY(oct_graph_pass_on(g, id, err));
    for (size_t k = 0; !op && (nested = oct_node_graph_at(n, k)); k++)
        OCT_TRY(infer_body(nested, false, &fits, err));
    if (!op)
        return OCT_OK;
    OCT_TRY(oct_check_arity(g, id, op, err));
    oct_infer c = { g, id, oct_node_opset(g, n), infer_body };
    return op->infer ? op->infer(&c, err) : OCT_OK;
}

static oct_status infer_forward(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        const oct_node *n = &g->node[id];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                g->value[n->out[k]].known = NULL;
        OCT_TRY(oct_within_node(g, id, infer_node(g, id, err), err));
    }
    return OCT_OK;
}

oct_status oct_infer_shapes(oct_graph *g, oct_err *err)
{
    OCT_TRY(infer_forward(g, err));
    return oct_infer_types(g) ? infer_forward(g, err)
                              : OCT_OK; /* known types may allow further shapes to be inferred */
}

void oct_forget_shapes(oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
            oct_forget_shapes(nested);
        if (!oct_op_of(g, g->order[i]))
            continue;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                g->value[n->out[k]].shape = (oct_shape){ -1, NULL };
    }
}

/* The usual size of an open dimension, such as the length of a sequence, or height and width. */
enum { USUAL = 128 };

oct_status oct_set_usual_shapes(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++) {
        oct_dim d[OCT_MAX_RANK];
        const oct_shape *s = &g->value[g->input[i]].shape;
        const int rank = s->rank;
        for (int k = 0; k < rank && k < OCT_MAX_RANK; k++)
            d[k] = (oct_dim){ .n = s->d[k].n >= 0 ? s->d[k].n : k ? USUAL : 1 };
        if (rank > 0 && rank <= OCT_MAX_RANK)
            OCT_TRY(oct_graph_set_shape(g, g->input[i], rank, d, err));
    }
    return oct_infer_shapes(g, err);
}
