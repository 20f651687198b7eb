/* An LSTM as com.microsoft.DynamicQuantizeLSTM: the node keeps its name, its outputs and what attributes the form knows. */
#include "forms/write_int.h"

#include <string.h>

enum { FIRST_GRID = 8, INPUTS = 12 }; /* scale and zero point of W, then of R */

/* Codes [dirs][rows][k] as [dirs][k][rows]. */
static oct_status columns(oct_graph *g, const oct_tensor *codes, oct_tensor **out, oct_err *err)
{
    const int64_t dirs = codes->dims[0], rows = codes->dims[1], k = codes->dims[2];
    OCT_TRY(oct_tensor_new(g->arena, codes->dtype, 3, (int64_t[]){ dirs, k, rows }, out, err));
    const uint8_t *from = codes->data;
    uint8_t *to = (uint8_t *)(uintptr_t)(*out)->data;
    for (int64_t d = 0; d < dirs; d++, to += k * rows)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < k; i++)
                to[i * rows + r] = *from++;
    return OCT_OK;
}

/* Codes, scale and zero point of one matrix at their slots. */
static oct_status set_matrix(oct_writer *w, int node, int value, int slot, int grid, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_quant *q = g->value[value].quant;
    const char *base = oct_write_base(w, value);
    const int64_t dirs = q->codes->dims[0], dims[2] = { dirs, q->n / dirs };
    const int rank = q->n > dirs ? 2 : 1;
    oct_tensor *codes;
    uint8_t *zeros = oct_alloc((size_t)q->n);
    int v[3];
    oct_status s = base && zeros ? OCT_OK : oct_nomem(err);
    for (int i = 0; i < q->n && s == OCT_OK; i++)
        zeros[i] = (uint8_t)q->zp[i];
    if (s == OCT_OK)
        s = oct_edit_const(g, base, "_zero_point", q->dtype, rank, dims, zeros, &v[2], err);
    oct_free(zeros);
    OCT_TRY(s);
    OCT_TRY(columns(g, q->codes, &codes, err));
    OCT_TRY(oct_write_codes(w, value, codes, &v[0], err));
    OCT_TRY(oct_edit_const(g, base, "_scale", OCT_F32, rank, dims, q->scale, &v[1], err));
    OCT_TRY(oct_graph_set_input(g, node, slot, v[0], err));
    OCT_TRY(oct_graph_set_input(g, node, grid, v[1], err));
    return oct_graph_set_input(g, node, grid + 1, v[2], err);
}

static oct_status copy_attributes(oct_graph *g, int node, const oct_node *old, oct_err *err)
{
    if (old->n_attr && !(g->node[node].attr = oct_arena_memdup(g->arena, old->attr, old->n_attr * sizeof *old->attr)))
        return oct_nomem(err);
    g->node[node].n_attr = g->node[node].cap_attr = old->n_attr;
    oct_node_drop_attr(g, node, "layout"); /* 0, which is the only one there */
    return OCT_OK;
}

oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_node old = g->node[id];
    int node, out[3];
    const int n_out = old.n_out < 3 ? old.n_out : 3;
    memcpy(out, old.out, (size_t)n_out * sizeof *out);
    OCT_TRY(oct_edit_contrib(g, "DynamicQuantizeLSTM", id, INPUTS, n_out, &node, err));
    for (int i = 0; i < old.n_in && i < FIRST_GRID; i++)
        OCT_TRY(oct_graph_set_input(g, node, i, old.in[i], err));
    OCT_TRY(set_matrix(w, node, old.in[1], 1, FIRST_GRID, err));
    OCT_TRY(set_matrix(w, node, old.in[2], 2, FIRST_GRID + 2, err));
    OCT_TRY(copy_attributes(g, node, &old, err));
    oct_graph_remove_node(g, id);
    for (int i = 0; i < n_out; i++)
        OCT_TRY(oct_graph_set_output(g, node, i, out[i], err));
    return OCT_OK;
}
