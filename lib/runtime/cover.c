/* Which nodes can be planned: those whose operators run in plans, and whose shapes are known. */
#include "runtime/plan_int.h"

static bool is_numeric(const oct_value *v)
{
    return v->kind == OCT_VALUE_TENSOR && v->dtype != OCT_STRING && v->dtype != OCT_UNDEFINED;
}

static bool is_there(const oct_value *v)
{
    return is_numeric(v) &&
           (oct_value_is_constant(v) ? oct_value_has_data(v) : v->is_input && oct_shape_known(&v->shape, NULL));
}

static bool covers(const oct_graph *g, int id, const bool *value)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    if (!op || op->measure || (op->exec && !op->run) || oct_node_graph_at(n, 0))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !value[n->in[i]])
            return false;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && (!is_numeric(&g->value[n->out[k]]) || !oct_shape_known(&g->value[n->out[k]].shape, NULL)))
            return false;
    return true;
}

oct_status rt_cover(const oct_graph *g, oct_arena *a, bool **node, bool *all, oct_err *err)
{
    bool *value = oct_arena_calloc(a, g->n_value + 1, sizeof *value);
    *node = oct_arena_calloc(a, g->n_node + 1, sizeof **node);
    *all = true;
    if (!value || !*node)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        value[v] = !g->value[v].dead && g->value[v].producer < 0 && is_there(&g->value[v]);
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        const oct_node *n = &g->node[id];
        (*node)[id] = covers(g, id, value);
        *all &= (*node)[id];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                value[n->out[k]] = (*node)[id];
    }
    for (size_t i = 0; i < g->n_output; i++)
        *all &= value[g->output[i]];
    return OCT_OK;
}
