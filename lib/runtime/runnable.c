/* Cuts what cannot be computed out of a graph. */
#include "runtime/runnable.h"

#include "ops/op.h"

/* A value without producer: a sparse constant, one of unknown type, or the output of a removed node. */
static bool is_lost(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    return v->producer < 0 && !v->is_input && !v->constant && v->outer < 0;
}

static bool runs(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_graph *nested;
    if (!oct_op_can_run(oct_op_of(g, node)))
        return false;
    for (int i = 0; i < n->n_in + n->n_captured; i++) {
        int v = i < n->n_in ? n->in[i] : n->captured[i - n->n_in];
        if (v >= 0 && is_lost(g, v))
            return false;
    }
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        for (size_t i = 0; i < nested->n_order; i++)
            if (!runs(nested, nested->order[i]))
                return false;
    return true;
}

static void keep_outputs(oct_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_output; i++) {
        if (is_lost(g, g->output[i]))
            g->value[g->output[i]].is_output = false;
        else
            g->output[n++] = g->output[i];
    }
    g->n_output = n;
}

bool oct_runnable_whole(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (!runs(g, g->order[i]))
            return false;
    return true;
}

oct_status oct_runnable_part(const oct_graph *g, oct_graph **part, oct_err *err)
{
    oct_graph *p;
    *part = NULL;
    if (oct_runnable_whole(g))
        return OCT_OK;
    OCT_TRY(oct_graph_clone(g, &p, err));
    /* In topological order, so that dependents of a removed node see that its value is lost. */
    for (size_t i = 0; i < g->n_order; i++)
        if (!runs(p, g->order[i]))
            oct_graph_remove_node(p, g->order[i]);
    keep_outputs(p);
    *part = p;
    return OCT_OK;
}

bool oct_runnable_has(const oct_graph *part, const char *value)
{
    int v = oct_graph_find(part, value);
    bool found = v >= 0 && !is_lost(part, v);
    const oct_graph *nested;
    for (size_t i = 0; i < part->n_order && !found; i++)
        for (size_t k = 0; !found && (nested = oct_node_graph_at(&part->node[part->order[i]], k)); k++)
            found = oct_runnable_has(nested, value);
    return found;
}
