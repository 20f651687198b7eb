/* Raising the opset, one version at a time. */
#include "passes/opset.h"

#include "ops/op.h"

static bool has_subgraph(const oct_node *n)
{
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i].type == OCT_ATTR_GRAPH)
            return true;
    return false;
}

static oct_status raise_once(oct_graph *g, int64_t from, oct_err *err)
{
    char text[300];
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        const oct_node *n = &g->node[id];
        if (n->domain[0])
            continue;
        const oct_op *op = oct_op_find("", n->op, from);
        oct_node_text(g, id, text, sizeof text);
        if (!op)
            return oct_fail(err, OCT_EUNSUPPORTED, "%s: raising opset %lld: the operator is not known, so its newer form is not either",
                            text, (long long)from);
        if (n->n_captured || has_subgraph(n))
            return oct_fail(err, OCT_EUNSUPPORTED, "%s: raising opset %lld inside subgraphs is not supported", text,
                            (long long)from);
        if (!op->raise)
            continue;
        oct_status s = op->raise(g, id, from, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", text);
            return s;
        }
        /* raise() may have put nodes before this one. */
        while (g->order[i] != id)
            i++;
    }
    return oct_graph_set_opset(g, "", from + 1, err);
}

oct_status oct_raise_opset(oct_graph *g, int64_t target, oct_err *err)
{
    for (int64_t v = oct_graph_opset(g, ""); v < target; v++)
        OCT_TRY(raise_once(g, v, err));
    oct_graph_prune(g);
    return oct_graph_sort(g, err);
}
