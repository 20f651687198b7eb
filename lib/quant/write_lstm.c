/* An LSTM as com.microsoft.DynamicQuantizeLSTM: the node keeps its name, its outputs and what attributes the form knows. */
#include "quant/writer.h"

#include "base/mem.h"

#include <string.h>

enum { FIRST_GRID = 8, INPUTS = 12 }; /* scale and zero point of W, then of R */

/* Codes, scale and zero point of one matrix at their slots. */
static oct_status set_matrix(oct_writer *w, int node, const char *base, qweights *q, int slot, int grid, oct_err *err)
{
    const int64_t dirs = q->codes->dims[0];
    const int64_t dims[2] = { dirs, q->channels / dirs };
    const int rank = q->channels > dirs ? 2 : 1;
    uint8_t *zeros = oct_alloc((size_t)q->channels);
    int v[3];
    if (!zeros)
        return oct_nomem(err);
    memset(zeros, q->dtype == OCT_U8 ? 128 : 0, (size_t)q->channels);
    oct_status s = oct_writer_const(w, base, "_zero_point", q->dtype, rank, dims, zeros, &v[2], err);
    oct_free(zeros);
    OCT_TRY(s);
    OCT_TRY(oct_writer_codes(w, q, base, &v[0], err));
    OCT_TRY(oct_writer_const(w, base, "_scale", OCT_F32, rank, dims, q->scale, &v[1], err));
    OCT_TRY(oct_graph_set_input(w->g, node, slot, v[0], err));
    OCT_TRY(oct_graph_set_input(w->g, node, grid, v[1], err));
    return oct_graph_set_input(w->g, node, grid + 1, v[2], err);
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
    if (oct_graph_opset(g, "com.microsoft") == 0)
        OCT_TRY(oct_graph_set_opset(g, "com.microsoft", 1, err));
    OCT_TRY(oct_graph_add_node(g, "DynamicQuantizeLSTM", "com.microsoft", old.name, INPUTS, n_out, id, &node, err));
    for (int i = 0; i < old.n_in && i < FIRST_GRID; i++)
        OCT_TRY(oct_graph_set_input(g, node, i, old.in[i], err));
    OCT_TRY(set_matrix(w, node, g->value[old.in[1]].name, w->j->weights[id], 1, FIRST_GRID, err));
    OCT_TRY(set_matrix(w, node, g->value[old.in[2]].name, w->j->recurrence[id], 2, FIRST_GRID + 2, err));
    OCT_TRY(copy_attributes(g, node, &old, err));
    oct_graph_remove_node(g, id);
    for (int i = 0; i < n_out; i++)
        OCT_TRY(oct_graph_set_output(g, node, i, out[i], err));
    return OCT_OK;
}
