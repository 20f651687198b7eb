#include "passes/inline.h"

/* An output that a node of the body computes takes the place of the removed node's output. */
static void map_outputs(const oct_graph *g, int node, const oct_graph *body, int *map)
{
    const oct_node *n = &g->node[node];
    for (int k = 0; k < n->n_out && (size_t)k < body->n_output; k++) {
        int v = body->output[k];
        if (n->out[k] >= 0 && map[v] == -2 && body->value[v].producer >= 0)
            map[v] = n->out[k];
    }
}

/* Other outputs (a captured value, an input, a constant, an output that occurs twice) are copied. */
static oct_status copy_outputs(oct_graph *g, int node, const oct_graph *body, const int *map, oct_err *err)
{
    for (int k = 0; k < g->node[node].n_out; k++) {
        int out = g->node[node].out[k], id;
        if (out < 0)
            continue;
        int from = (size_t)k < body->n_output ? map[body->output[k]] : -1;
        if (from < 0)
            return oct_fail(err, OCT_EMALFORMED, "nothing makes its output '%s'", g->value[out].name);
        OCT_TRY(oct_graph_add_node(g, "Identity", "", "", 1, 1, node, &id, err));
        OCT_TRY(oct_graph_set_input(g, id, 0, from, err));
        OCT_TRY(oct_graph_set_output(g, id, 0, out, err));
    }
    return OCT_OK;
}

oct_status oct_inline(oct_graph *g, int node, const oct_graph *body, const char *prefix, int *map, oct_fill_attr fill,
                      void *arg, oct_err *err)
{
    map_outputs(g, node, body, map);
    OCT_TRY(oct_graph_splice(g, node, body, prefix, map, fill, arg, err));
    OCT_TRY(copy_outputs(g, node, body, map, err));
    oct_graph_remove_node(g, node);
    return OCT_OK;
}
