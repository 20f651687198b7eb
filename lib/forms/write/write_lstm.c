/* An LSTM as com.microsoft.DynamicQuantizeLSTM. */
#include "forms/write/write_int.h"

enum { FIRST_PARAMS = 8 }; /* scale and zero point of W, then of R */

/* Sets the inputs for one matrix: the quantized values, [dirs][k][rows], at `slot`, and scale and zero point from slot
 * `params` on. */
static oct_status set_matrix(oct_writer *w, int node, int slot, int params, oct_err *err)
{
    oct_graph *g = w->g;
    const int value = g->node[node].in[slot];
    const oct_quant *q = g->value[value].quant;
    const char *base;
    const int64_t dirs = q->qvals->dims[0], dims[2] = { dirs, q->n / dirs };
    const int rank = q->n > dirs ? 2 : 1;
    const oct_tensor *qvals;
    int v[3];
    OCT_TRY(oct_write_base(w, value, &base, err));
    OCT_TRY(oct_write_zeros(g, q, base, rank, dims, &v[2], err));
    OCT_TRY(oct_tensor_transposed(g->arena, q->qvals, &qvals, err));
    OCT_TRY(oct_write_qvals(w, value, qvals, &v[0], err));
    OCT_TRY(oct_edit_const(g, base, "_scale", OCT_F32, rank, dims, q->scale, &v[1], err));
    OCT_TRY(oct_graph_set_input(g, node, slot, v[0], err));
    OCT_TRY(oct_graph_set_input(g, node, params, v[1], err));
    return oct_graph_set_input(g, node, params + 1, v[2], err);
}

oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err)
{
    oct_graph_cut_inputs(w->g, id, FIRST_PARAMS);
    OCT_TRY(set_matrix(w, id, 1, FIRST_PARAMS, err));
    OCT_TRY(set_matrix(w, id, 2, FIRST_PARAMS + 2, err));
    oct_node_drop_attr(w->g, id, "layout"); /* it is 0, the only layout of the new operator */
    w->g->node[id].origin = NULL;
    return oct_edit_become(w->g, id, "DynamicQuantizeLSTM", "com.microsoft", 0, err);
}
