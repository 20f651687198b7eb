/* Rewrites a pointwise convolution as the product that it is: of each position's channels, which a Transpose makes the
 * last dimension, and a matrix. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"
#include "ops/core/waiting.h"
#include "passes/match.h"

#include <string.h>

static bool all_are(const oct_node *n, const char *name, int64_t want)
{
    int count = 0;
    const int64_t *v = oct_node_ints(n, name, &count);
    for (int i = 0; i < count; i++)
        if (v[i] != want)
            return false;
    return true;
}

bool oct_is_pointwise(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    if (!oct_is_op(n, "Conv") || n->n_in < 2 || n->in[0] < 0 || n->in[1] < 0 || n->out[0] < 0)
        return false;
    const oct_value *x = &g->value[n->in[0]], *w = &g->value[n->in[1]];
    const oct_tensor *t = w->constant, *bias = oct_graph_constant(g, oct_input_at(n, 2));
    if (!t || t->dtype != OCT_F32 || !oct_has_floats(t) || w->quant || w->recipe || t->rank < 3 || x->quant ||
        x->dtype != OCT_F32 || x->shape.rank != t->rank || oct_value_is_constant(x))
        return false;
    for (int d = 2; d < t->rank; d++)
        if (t->dims[d] != 1)
            return false;
    if (oct_input_at(n, 2) >= 0 && (!bias || bias->rank != 1))
        return false;
    return oct_node_int(n, "group", 1) == 1 && all_are(n, "strides", 1) && all_are(n, "pads", 0);
}

/* ---- rewriting ---- */

/* [outputs][inputs][1]... as [inputs][outputs]. Numbers that wait are written out for it. */
static oct_status matrix_of(oct_graph *g, int w, int *matrix, oct_err *err)
{
    const oct_tensor *t = g->value[w].constant;
    const int64_t n = t->dims[0], k = t->dims[1], dims[2] = { k, n };
    oct_chunk chunk;
    oct_tensor *made;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 2, dims, &made, err));
    float *to = (float *)(uintptr_t)made->data;
    for (int64_t o = 0; o < n; o++)
        for (int64_t i = 0, many; i < k; i += many) {
            many = k - i < (int64_t)OCT_COUNT(chunk.f) ? k - i : (int64_t)OCT_COUNT(chunk.f);
            const float *from = oct_floats_load(t, o * k + i, 1, many, &chunk);
            for (int64_t c = 0; c < many; c++)
                to[(i + c) * n + o] = from[c];
        }
    OCT_TRY(oct_edit_refer(g, g->value[w].name, "_matrix", made, matrix, err));
    g->value[*matrix].own_type = g->value[w].own_type;
    return OCT_OK;
}

/* The dimension of the input that becomes dimension i, where channels go last, or back to their place. */
static int64_t source(int i, int rank, bool last)
{
    if (i == 0)
        return 0;
    return last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
}

static bool is_transpose(const oct_graph *g, int id, int rank, bool last)
{
    int n = 0;
    if (id < 0 || !oct_is_op(&g->node[id], "Transpose"))
        return false;
    const int64_t *perm = oct_node_ints(&g->node[id], "perm", &n);
    for (int i = 0; i < n; i++)
        if (perm[i] != source(i, rank, last))
            return false;
    return n == rank;
}

/* Adds a value for v, whose channels are last in it. */
static oct_status value_with_last(oct_graph *g, int v, int *to, oct_err *err)
{
    const oct_shape *s = &g->value[v].shape;
    const int rank = s->rank;
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        d[i] = s->d[source(i, rank, true)];
    OCT_TRY(oct_edit_value(g, g->value[v].name, "_last", OCT_F32, -1, to, err));
    g->value[*to].own_type = g->value[v].own_type;
    return oct_graph_set_shape(g, *to, rank, d, err);
}

static oct_status transpose(oct_graph *g, int from, int to, int rank, bool last, int before, oct_err *err)
{
    int64_t perm[OCT_MAX_RANK];
    int id;
    for (int i = 0; i < rank; i++)
        perm[i] = source(i, rank, last);
    OCT_TRY(oct_edit_node(g, "Transpose", &from, 1, to, before, &id, err));
    return oct_node_set_ints(g, id, "perm", perm, rank, err);
}

/* Where a value has its channels last: before the Transpose that makes it, or behind one. */
static oct_status with_last(oct_graph *g, int v, int before, int *last, oct_err *err)
{
    const int rank = g->value[v].shape.rank, maker = oct_maker(g, v);
    if (last[v])
        return OCT_OK;
    if (is_transpose(g, maker, rank, false) && !g->value[g->node[maker].in[0]].quant) {
        last[v] = g->node[maker].in[0];
        return OCT_OK;
    }
    OCT_TRY(value_with_last(g, v, &last[v], err));
    return transpose(g, v, last[v], rank, true, before, err);
}

/* Those that transpose the result read it before it is transposed. */
static oct_status skip_transposes(oct_graph *g, int y, int last, oct_err *err)
{
    const int rank = g->value[y].shape.rank;
    for (size_t i = 0; i < g->value[y].n_uses;) {
        const oct_use u = g->value[y].uses[i++];
        const int to = u.slot == 0 && is_transpose(g, u.node, rank, true) ? g->node[u.node].out[0] : -1;
        if (to < 0 || g->value[to].is_output)
            continue;
        OCT_TRY(oct_graph_replace_uses(g, to, last, err));
    }
    return OCT_OK;
}

oct_status oct_pointwise_product(oct_graph *g, int id, int *last, oct_err *err)
{
    const int x = g->node[id].in[0], w = g->node[id].in[1], bias = oct_input_at(&g->node[id], 2),
              y = g->node[id].out[0], next = oct_graph_next(g, id), rank = g->value[x].shape.rank;
    int matrix, made, result;
    OCT_TRY(with_last(g, x, id, last, err));
    OCT_TRY(matrix_of(g, w, &matrix, err));
    OCT_TRY(value_with_last(g, y, &result, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, last[x], err));
    OCT_TRY(oct_graph_set_input(g, id, 1, matrix, err));
    oct_graph_cut_inputs(g, id, 2);
    made = result;
    if (bias >= 0)
        OCT_TRY(value_with_last(g, y, &made, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, made, err));
    g->node[id].n_attr = 0; /* these are Conv's */
    g->node[id].changed = g->changed = true;
    OCT_TRY(oct_edit_become(g, id, OCT_POINTWISE_BECOMES, "", 0, err));
    if (bias >= 0)
        OCT_TRY(oct_edit_node(g, "Add", (int[]){ made, bias }, 2, result, next, NULL, err));
    OCT_TRY(transpose(g, result, y, rank, false, next, err));
    return skip_transposes(g, y, result, err);
}
