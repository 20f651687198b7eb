/* com.microsoft.DynamicQuantizeLSTM is an LSTM whose W and R are quantized. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "passes/match.h"

enum { FIRST_QPARAMS = 8, INPUTS = 12 }; /* scale and zero point of W, then of R */

/* The parameters of the matrix at a slot, after it is transposed to [dirs][rows][k]: a scale for each direction, or for
 * each row of each direction. NULL: it is not read. */
static oct_status qparams_of(forms_reader *r, const oct_node *n, int slot, const oct_quant **q, oct_err *err)
{
    const int qvals = n->in[slot], scale = n->in[FIRST_QPARAMS + 2 * (slot - 1)],
              zero = n->in[FIRST_QPARAMS + 2 * (slot - 1) + 1];
    const oct_tensor *t = qvals >= 0 && !r->g->value[qvals].quant ? r->g->value[qvals].constant : NULL;
    const int64_t count = scale >= 0 && r->g->value[scale].constant ? r->g->value[scale].constant->count : 0;
    *q = NULL;
    if (!t || !t->data || (t->dtype != OCT_U8 && t->dtype != OCT_S8) || t->rank != 3 || t->count == 0)
        return OCT_OK;
    const bool rows = count == t->dims[0] * t->dims[2] && count != t->dims[0];
    if (!rows && count != t->dims[0])
        return OCT_OK;
    return forms_params(r, &(forms_qparams){ scale, zero, rows ? 2 : 0, rows ? t->dims[1] : 0, count }, qvals, q, err);
}

static oct_status take_matrix(forms_reader *r, int id, int slot, const oct_quant *q, oct_err *err)
{
    oct_graph *g = r->g;
    const int qvals = g->node[id].in[slot];
    oct_quant with = *q;
    int v;
    OCT_TRY(oct_tensor_transposed(g->arena, g->value[qvals].constant, &with.qvals, err));
    OCT_TRY(oct_graph_new_value(g, g->value[qvals].name, OCT_F32, &v, err));
    OCT_TRY(oct_graph_set_dims(g, v, 3, with.qvals->dims, err));
    OCT_TRY(forms_quant(r, &with, &g->value[v].quant, err));
    OCT_TRY(oct_graph_set_input(g, id, slot, v, err));
    return forms_add_annotated(r, qvals, v, err);
}

oct_status forms_read_lstm(forms_reader *r, int id, oct_err *err)
{
    const oct_node *n = &r->g->node[id];
    const oct_quant *w, *rec;
    if (!forms_is(n, "DynamicQuantizeLSTM") || n->n_in != INPUTS || n->in[0] < 0 ||
        r->g->value[n->in[0]].dtype != OCT_F32)
        return OCT_OK;
    OCT_TRY(qparams_of(r, n, 1, &w, err));
    OCT_TRY(qparams_of(r, n, 2, &rec, err));
    if (!w || !rec)
        return OCT_OK;
    int n_in = FIRST_QPARAMS;
    while (n->in[n_in - 1] < 0)
        n_in--;
    oct_graph_cut_inputs(r->g, id, n_in);
    OCT_TRY(take_matrix(r, id, 1, w, err));
    OCT_TRY(take_matrix(r, id, 2, rec, err));
    return oct_edit_become(r->g, id, "LSTM", "", 14, err);
}
