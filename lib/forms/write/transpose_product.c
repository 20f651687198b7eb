/* Rewrites W X as X^T W^T between two Transposes. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"
#include "passes/match.h"

#include <string.h>

bool oct_may_transpose_product(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    if (!oct_is_op(n, "MatMul") || n->n_in != 2 || n->in[0] < 0 || n->in[1] < 0 || n->out[0] < 0)
        return false;
    const oct_value *w = &g->value[n->in[0]], *x = &g->value[n->in[1]], *y = &g->value[n->out[0]];
    const oct_tensor *t = w->constant;
    const bool matrix = t && t->data && t->dtype == OCT_F32 && t->rank == 2 && !w->quant && !w->recipe;
    return matrix && !oct_value_is_constant(x) && x->dtype == OCT_F32 && !x->quant && x->shape.rank >= 2 &&
           y->shape.rank == x->shape.rank;
}

static oct_status turn_matrix(oct_graph *g, int w, int *turned, oct_err *err)
{
    const oct_tensor *t = g->value[w].constant;
    const int64_t rows = t->dims[0], columns = t->dims[1], dims[2] = { columns, rows };
    const float *from = t->data;
    oct_tensor *made;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 2, dims, &made, err));
    float *to = (float *)made->data;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * rows + r] = from[r * columns + c];
    return oct_edit_refer(g, g->value[w].name, "_turned", made, turned, err);
}

/* Adds a value for v with its last two dimensions exchanged. */
static oct_status turned_value(oct_graph *g, int v, int *turned, oct_err *err)
{
    oct_dim d[OCT_MAX_RANK];
    const int rank = g->value[v].shape.rank;
    memcpy(d, g->value[v].shape.d, (size_t)rank * sizeof *d);
    d[rank - 2] = g->value[v].shape.d[rank - 1];
    d[rank - 1] = g->value[v].shape.d[rank - 2];
    OCT_TRY(oct_edit_value(g, g->value[v].name, "_turned", OCT_F32, -1, turned, err));
    g->value[*turned].own_type = g->value[v].own_type;
    return oct_graph_set_shape(g, *turned, rank, d, err);
}

static oct_status transpose(oct_graph *g, int from, int to, int before, oct_err *err)
{
    const int rank = g->value[from].shape.rank;
    int64_t perm[OCT_MAX_RANK];
    int id;
    for (int d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    OCT_TRY(oct_edit_node(g, "Transpose", &from, 1, to, before, &id, err));
    return oct_node_set_ints(g, id, "perm", perm, rank, err);
}

oct_status oct_transpose_product(oct_graph *g, int id, int *turned, oct_err *err)
{
    const int w = g->node[id].in[0], x = g->node[id].in[1], y = g->node[id].out[0], next = oct_graph_next(g, id);
    int product;
    if (!turned[w])
        OCT_TRY(turn_matrix(g, w, &turned[w], err));
    if (!turned[x]) {
        OCT_TRY(turned_value(g, x, &turned[x], err));
        OCT_TRY(transpose(g, x, turned[x], id, err));
    }
    OCT_TRY(turned_value(g, y, &product, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, turned[x], err));
    OCT_TRY(oct_graph_set_input(g, id, 1, turned[w], err));
    OCT_TRY(oct_graph_set_output(g, id, 0, product, err));
    g->node[id].changed = g->changed = true;
    return transpose(g, product, y, next, err);
}
