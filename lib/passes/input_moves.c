/* Follows an input's elements through nodes that only move them. */
#include "passes/input_moves.h"

#include "passes/match.h"

#include <string.h>

/* The dimension that a Transpose moves dimension `axis` to; -1: the node is none. */
static int moved_axis(const oct_node *n, int rank, int axis)
{
    int count;
    const int64_t *perm = oct_node_ints(n, "perm", &count);
    if (!oct_is_op(n, "Transpose") || (perm && count != rank))
        return -1;
    for (int i = 0; i < rank; i++)
        if ((perm ? perm[i] : rank - 1 - i) == axis)
            return i;
    return -1;
}

static const oct_tensor *constant_at(const oct_graph *g, const oct_node *n, int slot, oct_dtype type)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data && t->dtype == type ? t : NULL;
}

/* The constant numbers of pads and the dimensions they belong to, before opset 11 as attributes. axes NULL: all of
 * them. */
static const int64_t *pads_of(const oct_graph *g, const oct_node *n, const int64_t **axes, int *count)
{
    const int64_t *own = oct_node_ints(n, "pads", count);
    *axes = NULL;
    if (own)
        return own;
    const oct_tensor *t = constant_at(g, n, 1, OCT_S64);
    if (oct_input_at(n, 3) >= 0) {
        const oct_tensor *a = constant_at(g, n, 3, OCT_S64);
        if (!a || !t || t->count != 2 * a->count)
            return NULL;
        *axes = a->data;
    }
    *count = t ? (int)t->count : 0;
    return t ? t->data : NULL;
}

bool oct_input_border(const oct_graph *g, const oct_node *n, int axis, oct_border *b)
{
    if (!oct_is_op(n, "Pad") || n->n_in < 1 || n->in[0] < 0)
        return false;
    const int64_t *axes;
    const int rank = g->value[n->in[0]].shape.rank;
    int count;
    const int64_t *pads = pads_of(g, n, &axes, &count);
    if (!pads || count % 2 || (!axes && count != 2 * rank))
        return false;
    for (int i = 0; i < count / 2; i++) {
        const int64_t d = axes ? axes[i] < 0 ? axes[i] + rank : axes[i] : i;
        if (d == axis && (pads[i] || pads[count / 2 + i]))
            return false;
    }
    *b = (oct_border){ .constant = strcmp(oct_node_str(n, "mode", "constant"), "constant") == 0 };
    const bool given = oct_input_at(n, 2) >= 0;
    const oct_tensor *fill = constant_at(g, n, 2, OCT_F32);
    if (b->constant)
        b->value = fill ? (double)*(const float *)fill->data : (double)oct_node_float(n, "value", 0.0f);
    return !given || !b->constant || (fill && fill->count == 1);
}

oct_status oct_input_positions(const oct_graph *g, int v, int axis, oct_arena *a, oct_input_position **places,
                               size_t *n, oct_err *err)
{
    size_t cap = 0;
    *places = NULL;
    *n = 0;
    if (!OCT_GROW(a, *places, *n, cap))
        return oct_nomem(err);
    (*places)[(*n)++] = (oct_input_position){ v, axis };
    for (size_t i = 0; i < *n; i++) {
        const oct_input_position at = (*places)[i];
        const oct_value *x = &g->value[at.value];
        for (size_t k = 0; k < x->n_uses; k++) {
            const oct_use u = x->uses[k];
            const oct_node *node = u.slot == 0 ? &g->node[u.node] : NULL;
            oct_border border;
            if (!node || node->domain[0] || node->n_out != 1 || node->out[0] < 0)
                continue;
            const int to =
                oct_input_border(g, node, at.axis, &border) ? at.axis : moved_axis(node, x->shape.rank, at.axis);
            if (to < 0)
                continue;
            if (!OCT_GROW(a, *places, *n, cap))
                return oct_nomem(err);
            (*places)[(*n)++] = (oct_input_position){ node->out[0], to };
        }
    }
    return OCT_OK;
}
