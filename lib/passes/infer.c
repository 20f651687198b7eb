/* Shape inference: asks each operator in topological order. */
#include "passes/pass.h"

#include "ops/op.h"

oct_status oct_infer_shapes(oct_graph *g, oct_err *err)
{
    char text[300];
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        const oct_node *n = &g->node[id];
        const oct_op *op = oct_op_of(g, id);
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                g->value[n->out[k]].known = NULL;
        if (!op)
            continue;
        if (n->n_in < op->min_in || (op->max_in >= 0 && n->n_in > op->max_in) || n->n_out < op->min_out ||
            (op->max_out >= 0 && n->n_out > op->max_out))
            return oct_fail(err, OCT_EMALFORMED, "%s has %d inputs and %d outputs, which %s of opset %lld does not allow",
                            oct_node_text(g, id, text, sizeof text), n->n_in, n->n_out, n->op,
                            (long long)oct_graph_opset(g, n->domain));
        for (int k = 0; k < op->min_in; k++)
            if (n->in[k] < 0)
                return oct_fail(err, OCT_EMALFORMED, "%s: input %d is missing", oct_node_text(g, id, text, sizeof text), k);
        if (!op->infer)
            continue;
        oct_infer c = { g, id, oct_graph_opset(g, n->domain) };
        oct_status s = op->infer(&c, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", oct_node_text(g, id, text, sizeof text));
            return s;
        }
    }
    return OCT_OK;
}
