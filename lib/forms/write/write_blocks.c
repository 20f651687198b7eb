/* Weights in blocks: com.microsoft.MatMulNBits in place of the product, or DequantizeLinear before it. */
#include "forms/write/write_int.h"

#include "base/spill.h"
#include "ops/core/block_matrix.h"
#include "passes/match.h"

static oct_nbits_form form_of(const oct_graph *g, int v)
{
    const oct_dim *d = g->value[v].shape.d;
    return oct_blocks_form(g->value[v].quant, (int64_t[]){ d[0].n, d[1].n });
}

/* ---- MatMulNBits ---- */

/* Adds constants of the quantized values, the scales and, unless these are in the middle, the zero points. The indices
 * of these values are consecutive. */
static oct_status operator_constants(oct_writer *w, int b, const oct_nbits_form *f, oct_err *err)
{
    const oct_quant *q = w->g->value[b].quant;
    const char *base;
    oct_nbits_weights by_columns;
    int v;
    OCT_TRY(oct_write_base(w, b, &base, err));
    OCT_TRY(oct_blocks_weights(q, f, w->g->arena, &by_columns, err));
    oct_spill_forget(q->zp, (size_t)q->n * sizeof *q->zp);
    OCT_TRY(oct_write_qvals(w, b, q->qvals, &w->value[b].written[0], err));
    OCT_TRY(oct_edit_refer_matrix(w->g, base, "_scale", OCT_F32, f->n, oct_nbits_blocks(f), by_columns.scale, &v, err));
    w->g->value[v].own_type = w->g->value[b].own_type;
    return by_columns.zero ? oct_edit_refer_matrix(w->g, base, "_zero_point", OCT_U8, f->n, oct_nbits_zero_bytes(f),
                                                   by_columns.zero, &v, err)
                           : OCT_OK;
}

/* The bias as a row of n values. */
static oct_status bias_row(oct_graph *g, int bias, int64_t n, int *row, oct_err *err)
{
    const oct_tensor *t = g->value[bias].constant;
    *row = bias;
    return t->rank == 1 ? OCT_OK : oct_edit_const(g, g->value[bias].name, "_row", OCT_F32, 1, &n, t->data, row, err);
}

static oct_status write_operator(oct_writer *w, int id, const oct_nbits_form *f, oct_err *err)
{
    oct_graph *g = w->g;
    const int b = g->node[id].in[1], bias = oct_input_at(&g->node[id], 2), n_const = f->zero == OCT_NBITS_WHOLE ? 3 : 2;
    int row;
    if (w->value[b].written[0] < 0)
        OCT_TRY(operator_constants(w, b, f, err));
    oct_graph_cut_inputs(g, id, 1);
    for (int i = 0; i < n_const; i++)
        OCT_TRY(oct_graph_set_input(g, id, 1 + i, w->value[b].written[0] + i, err));
    if (bias >= 0) {
        OCT_TRY(bias_row(g, bias, (int64_t)f->n, &row, err));
        OCT_TRY(oct_graph_set_input(g, id, 5, row, err));
    }
    g->node[id].n_attr = 0; /* these are Gemm's */
    g->node[id].origin = NULL;
    OCT_TRY(oct_node_set_int(g, id, "K", (int64_t)f->k, err));
    OCT_TRY(oct_node_set_int(g, id, "N", (int64_t)f->n, err));
    OCT_TRY(oct_node_set_int(g, id, "bits", f->bits, err));
    OCT_TRY(oct_node_set_int(g, id, "block_size", (int64_t)f->block, err));
    if (f->bytes)
        OCT_TRY(oct_node_set_int(g, id, "accuracy_level", 4, err));
    return oct_edit_become(g, id, "MatMulNBits", "com.microsoft", 0, err);
}

/* ---- DequantizeLinear ---- */

oct_status oct_write_block_constant(oct_writer *w, int v, int before, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_quant *q = g->value[v].quant;
    const oct_nbits_form f = form_of(g, v);
    const char *base;
    oct_block_elements e;
    int in[3], real, node;
    OCT_TRY(oct_write_base(w, v, &base, err));
    OCT_TRY(oct_blocks_elements(q, &f, g->arena, &e, err));
    OCT_TRY(oct_write_qvals(w, v, e.qvals, &in[0], err));
    OCT_TRY(
        oct_edit_refer_matrix(g, base, "_scale", OCT_F32, (size_t)e.dims[0], (size_t)e.dims[1], e.scale, &in[1], err));
    if (e.zero)
        OCT_TRY(oct_edit_refer(g, base, "_zero_point", e.zero, &in[2], err));
    OCT_TRY(oct_write_real(w, v, base, in, &real, err));
    OCT_TRY(oct_edit_node(g, "DequantizeLinear", in, e.zero ? 3 : 2, real, before, &node, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", q->axis, err));
    return oct_node_set_int(g, node, "block_size", q->block, err);
}

bool oct_is_in_blocks(const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    bool any = false;
    for (size_t i = 0; i < x->n_uses && !any; i++) {
        const oct_node *n = &g->node[x->uses[i].node];
        any = x->uses[i].slot >= 0 && oct_is_op(n, "DequantizeLinear") && oct_node_int(n, "block_size", 0) > 0;
    }
    return any;
}

oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err)
{
    const int b = w->g->node[id].in[1];
    if (!w->g->value[b].quant)
        return OCT_OK; /* it was written for another product */
    const oct_nbits_form f = form_of(w->g, b);
    return w->o->blocks_qdq || !oct_value_by_columns(&w->g->value[b]) ? oct_write_block_constant(w, b, id, err)
                                                                      : write_operator(w, id, &f, err);
}
