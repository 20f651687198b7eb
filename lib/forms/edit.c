/* Adds values and nodes. */
#include "forms/edit.h"

#include <string.h>

int oct_edit_after(oct_graph *g, int node)
{
    return node >= 0 ? oct_graph_next(g, node) : g->n_order ? g->order[0] : -1;
}

oct_status oct_edit_value(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int like, int *v,
                          oct_err *err)
{
    const char *name = oct_arena_printf(g->arena, "%s%s", base, suffix);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, name, t, v, err));
    if (like < 0)
        return OCT_OK;
    const oct_shape s = g->value[like].shape;
    g->value[*v].own_type = g->value[like].own_type;
    return oct_graph_set_shape(g, *v, s.rank, s.d, err);
}

oct_status oct_edit_const(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int rank,
                          const int64_t *dims, const void *data, int *v, oct_err *err)
{
    const char *name = oct_arena_printf(g->arena, "%s%s", base, suffix);
    return name ? oct_graph_new_const(g, name, t, rank, dims, data, v, err) : oct_nomem(err);
}

oct_status oct_edit_refer(oct_graph *g, const char *base, const char *suffix, const oct_tensor *t, int *v, oct_err *err)
{
    OCT_TRY(oct_edit_value(g, base, suffix, t->dtype, -1, v, err));
    OCT_TRY(oct_graph_set_dims(g, *v, t->rank, t->dims, err));
    oct_graph_set_const(g, *v, t);
    return OCT_OK;
}

oct_status oct_edit_refer_matrix(oct_graph *g, const char *base, const char *suffix, oct_dtype t, size_t rows,
                                 size_t columns, const void *data, int *v, oct_err *err)
{
    const int64_t dims[2] = { (int64_t)rows, (int64_t)columns };
    const oct_tensor made = { .dtype = t,
                              .rank = 2,
                              .dims = oct_arena_memdup(g->arena, dims, sizeof dims),
                              .count = dims[0] * dims[1],
                              .bytes = rows * columns * (size_t)oct_dtype_bits(t) / 8,
                              .data = data };
    const oct_tensor *kept = made.dims ? oct_arena_memdup(g->arena, &made, sizeof made) : NULL;
    return kept ? oct_edit_refer(g, base, suffix, kept, v, err) : oct_nomem(err);
}

bool oct_edit_keeps(const oct_graph *g, int v)
{
    return g->value[v].is_output || oct_value_is_captured(&g->value[v]);
}

oct_status oct_edit_node(oct_graph *g, const char *op, const int *in, int n_in, int out, int before, int *node,
                         oct_err *err)
{
    const char *name = oct_arena_printf(g->arena, "%s_%s", g->value[out].name, op);
    int id;
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_add_node(g, op, "", name, n_in, 1, before, &id, err));
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    OCT_TRY(oct_graph_set_output(g, id, 0, out, err));
    if (node)
        *node = id;
    return OCT_OK;
}

oct_status oct_edit_square(oct_graph *g, int v, int *to, oct_err *err)
{
    OCT_TRY(oct_edit_value(g, g->value[v].name, "_square", OCT_F32, v, to, err));
    return oct_edit_node(g, "Mul", (int[]){ v, v }, 2, *to, oct_edit_after(g, g->value[v].producer), NULL, err);
}

oct_status oct_edit_become(oct_graph *g, int node, const char *op, const char *domain, int64_t opset, oct_err *err)
{
    if (domain[0] && oct_graph_opset(g, domain) == 0)
        OCT_TRY(oct_graph_set_opset(g, domain, 1, err));
    g->node[node].op = op;
    g->node[node].domain = domain;
    g->node[node].opset = opset;
    g->node[node].changed = g->changed = true;
    return OCT_OK;
}

int oct_edit_output_slot(const oct_graph *g, int node, int value)
{
    int slot = 0;
    while (slot + 1 < g->node[node].n_out && g->node[node].out[slot] != value)
        slot++;
    return slot;
}

bool oct_edit_is_quantizer(const oct_node *n, const char *op)
{
    return strcmp(n->op, op) == 0 && n->n_in >= 2 && n->n_out == 1 && n->in[0] >= 0 && n->out[0] >= 0;
}
