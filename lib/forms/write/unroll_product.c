/* Rewrites a product with several matrices, [matrices][k][n], as a product for each, between a Split of the data where
 * each matrix has its own, and a Concat. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

/* One matrix, which refers to the constant. */
static oct_status matrix_of(oct_graph *g, int w, int64_t e, int *v, oct_err *err)
{
    const oct_tensor *all = g->value[w].constant;
    oct_tensor *one = oct_arena_memdup(g->arena, all, sizeof *all);
    const char *name = oct_arena_printf(g->arena, "%s.%lld", g->value[w].name, (long long)e);
    if (!one || !name || !(one->dims = oct_arena_memdup(g->arena, all->dims + 1, 2 * sizeof *all->dims)))
        return oct_nomem(err);
    one->rank = 2;
    one->count = all->count / all->dims[0];
    one->bytes = (size_t)one->count * sizeof(float);
    one->data = (const float *)all->data + e * one->count;
    return oct_edit_refer(g, name, "", one, v, err);
}

oct_status oct_unroll_product(oct_graph *g, int id, bool splits, oct_err *err)
{
    const int x = g->node[id].in[0], w = g->node[id].in[1], y = g->node[id].out[0];
    const int rank = g->value[x].shape.rank, axis = rank - 3;
    const int64_t matrices = g->value[w].constant->dims[0];
    const char *base = g->value[y].name;
    int split = -1, concat, part, v;
    OCT_TRY(
        oct_graph_add_node(g, "Concat", "", g->node[id].name, (int)matrices, 1, oct_graph_next(g, id), &concat, err));
    if (splits) {
        OCT_TRY(oct_graph_add_node(g, "Split", "", "", 1, (int)matrices, id, &split, err));
        OCT_TRY(oct_graph_set_input(g, split, 0, x, err));
        OCT_TRY(oct_node_set_int(g, split, "axis", axis, err));
        if (oct_graph_opset(g, "") >= 18)
            OCT_TRY(oct_node_set_int(g, split, "num_outputs", matrices, err));
    }
    for (int64_t e = 0; e < matrices; e++) {
        int product, from = x;
        const char *name = oct_arena_printf(g->arena, "%s.%lld", oct_node_label(g, id), (long long)e);
        if (!name)
            return oct_nomem(err);
        if (splits) {
            OCT_TRY(oct_edit_value(g, g->value[x].name, "_part", OCT_F32, -1, &from, err));
            OCT_TRY(oct_graph_set_output(g, split, (int)e, from, err));
        }
        OCT_TRY(matrix_of(g, w, e, &v, err));
        OCT_TRY(oct_edit_value(g, base, "_part", OCT_F32, -1, &part, err));
        OCT_TRY(oct_graph_add_node(g, "MatMul", "", name, 2, 1, id, &product, err));
        OCT_TRY(oct_graph_set_input(g, product, 0, from, err));
        OCT_TRY(oct_graph_set_input(g, product, 1, v, err));
        OCT_TRY(oct_graph_set_output(g, product, 0, part, err));
        OCT_TRY(oct_graph_set_input(g, concat, (int)e, part, err));
    }
    OCT_TRY(oct_node_set_int(g, concat, "axis", axis, err));
    oct_graph_remove_node(g, id);
    return oct_graph_set_output(g, concat, 0, y, err);
}
