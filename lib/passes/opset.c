/* Raises the opset, one version at a time. */
#include "passes/opset.h"

#include "ops/op.h"

static oct_status raise_range(oct_graph *g, size_t at, int until, int64_t from, oct_err *err);

static oct_status raise_node(oct_graph *g, int id, int64_t from, oct_err *err)
{
    const oct_node *n = &g->node[id];
    oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        OCT_TRY(raise_range(nested, 0, -1, from, err));
    if (n->domain[0])
        return OCT_OK;
    const oct_op *op = oct_op_find("", n->op, from);
    if (!op)
        return oct_fail(err, OCT_EUNSUPPORTED,
                        "raising opset %lld: the operator is not known, so its newer form is not either",
                        (long long)from);
    if (!op->raise)
        return OCT_OK;
    OCT_TRY(oct_check_arity(g, id, op, err));
    return op->raise(g, id, from, err);
}

static oct_status raise_range(oct_graph *g, size_t at, int until, int64_t from, oct_err *err)
{
    char text[300];
    for (size_t i = at; i < g->n_order && g->order[i] != until; i++) {
        int id = g->order[i];
        oct_node_text(g, id, text, sizeof text);
        oct_status s = raise_node(g, id, from, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", text);
            return s;
        }
        /* raise() may have inserted nodes before this one. */
        while (g->order[i] != id)
            i++;
    }
    return OCT_OK;
}

oct_status oct_raise_part(oct_graph *g, size_t at, int until, int64_t from, int64_t to, oct_err *err)
{
    for (int64_t v = from; v < to; v++)
        OCT_TRY(raise_range(g, at, until, v, err));
    return OCT_OK;
}

bool oct_opset_same(const char *op, int64_t from, int64_t to)
{
    const oct_op *old = oct_op_find("", op, from);
    if (from > to)
        return old && !old->raise && old == oct_op_find("", op, to);
    for (int64_t v = from; v < to; v++)
        if (!oct_op_find("", op, v))
            return false;
    return true;
}

oct_status oct_raise_opset(oct_graph *g, int64_t target, oct_err *err)
{
    for (int64_t v = oct_graph_opset(g, ""); v < target; v++) {
        OCT_TRY(raise_range(g, 0, -1, v, err));
        OCT_TRY(oct_graph_set_opset(g, "", v + 1, err));
    }
    oct_graph_prune(g);
    return oct_graph_sort(g, err);
}
