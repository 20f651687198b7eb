/* QuantizeLinear and DequantizeLinear around real operators. Scales of activations are scalars (rank 0), because ONNX
 * Runtime's fusions require that. */
#include "forms/write/write_int.h"

#include "base/array.h"
#include "ops/core/small.h"
#include "passes/match.h"

#include <string.h>

/* ---- scales and zero points ---- */

static oct_params_consts *slot_of(const oct_writer *w, const oct_quant *q)
{
    size_t i = ((uintptr_t)q->scale >> 4) * 0x9E3779B1u & (w->n_params - 1);
    for (const oct_quant *of; (of = w->params[i].of); i = (i + 1) & (w->n_params - 1))
        if (of->scale == q->scale && of->zp == q->zp && of->n == q->n && of->dtype == q->dtype)
            break;
    return &w->params[i];
}

oct_status oct_write_zeros(oct_graph *g, const oct_quant *q, const char *base, int rank, const int64_t *dims, int *v,
                           oct_err *err)
{
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, q->dtype, rank, dims, &t, err));
    void *to = memset((void *)(uintptr_t)t->data, 0, t->bytes);
    if (!oct_is_small_int(q->dtype))
        OCT_TRY(oct_array_convert(OCT_S32, q->zp, q->dtype, to, (size_t)q->n, err));
    for (int i = 0; oct_is_small_int(q->dtype) && i < q->n; i++)
        oct_small_set_int(q->dtype, to, i, q->zp[i]);
    return oct_edit_refer(g, base, "_zero_point", t, v, err);
}

oct_status oct_write_params(oct_writer *w, const oct_quant *q, const char *base, int *scale, int *zero, oct_err *err)
{
    oct_params_consts *c = slot_of(w, q);
    const int64_t n = q->n;
    if (!c->of) {
        OCT_TRY(oct_edit_const(w->g, base, "_scale", OCT_F32, n > 1, &n, q->scale, &c->scale, err));
        OCT_TRY(oct_write_zeros(w->g, q, base, n > 1, &n, &c->zero, err));
        c->of = q;
    }
    *scale = c->scale;
    *zero = c->zero;
    return OCT_OK;
}

/* ---- nodes ---- */

/* Both operators support 16 and 4 bits from opset 21 on. Before that, those of com.microsoft do. */
static bool is_foreign(const oct_graph *g, oct_dtype t)
{
    return (oct_dtype_bits(t) == 16 || oct_dtype_bits(t) == 4) && oct_graph_opset(g, "") < 21;
}

/* Gives a QuantizeLinear or DequantizeLinear its parameters. qval: quantized values, and the constants of scale and
 * zero point. */
static oct_status complete(oct_writer *w, int node, const int qval[3], const oct_quant *q, oct_err *err)
{
    OCT_TRY(oct_graph_set_input(w->g, node, 1, qval[1], err));
    OCT_TRY(oct_graph_set_input(w->g, node, 2, qval[2], err));
    if (is_foreign(w->g, q->dtype))
        OCT_TRY(oct_edit_become(w->g, node, w->g->node[node].op, "com.microsoft", 0, err));
    return q->n > 1 ? oct_node_set_int(w->g, node, "axis", q->axis, err) : OCT_OK;
}

static oct_status add(oct_writer *w, const char *op, int from, int to, const int qval[3], const oct_quant *q,
                      int before, oct_err *err)
{
    int node;
    OCT_TRY(oct_edit_node(w->g, op, &from, 1, to, before, &node, err));
    return complete(w, node, qval, q, err);
}

oct_status oct_write_constant(oct_writer *w, int v, int before, oct_err *err)
{
    const oct_quant *q = w->g->value[v].quant;
    const char *base;
    int qval[3], dq;
    if (q->block)
        return oct_write_block_constant(w, v, before, err);
    OCT_TRY(oct_write_base(w, v, &base, err));
    OCT_TRY(oct_write_qvals(w, v, q->qvals, &qval[0], err));
    OCT_TRY(oct_write_params(w, q, base, &qval[1], &qval[2], err));
    OCT_TRY(oct_write_real(w, v, base, qval, &dq, err));
    return add(w, "DequantizeLinear", qval[0], dq, qval, q, before, err);
}

/* ---- products ---- */

static bool is_rounded(const oct_graph *g, int v)
{
    return g->value[v].quant || oct_reader_of(g, v, "QuantizeLinear", 1) >= 0;
}

static bool is_row(const oct_graph *g, int v)
{
    const oct_tensor *t = v >= 0 && !g->value[v].quant ? g->value[v].constant : NULL;
    return t && t->data && t->dtype == OCT_F32 && t->rank == 1;
}

/* Before ONNX Runtime looks for quantizers, it makes a Gemm of a MatMul and the Add after it. Between quantizers, that
 * Gemm runs on integers if it adds a row. It does not if the other summand is computed, or if there are three
 * dimensions and a real result. ONNX Runtime does not fuse an Add after a Gemm, nor, with three dimensions or more, the
 * Add of a matrix with one row. So this writes the MatMul as a Gemm, or the row as such a matrix. */
oct_status oct_write_matmul(oct_writer *w, int id, oct_err *err)
{
    oct_graph *g = w->g;
    oct_node *n = &g->node[id];
    const int y = oct_is_op(n, "MatMul") && n->n_out == 1 ? n->out[0] : -1, sum = y >= 0 ? oct_only_reader(g, y) : -1;
    if (sum < 0 || w->node[id].spelling != OCT_SPELLED_REAL || !oct_is_op(&g->node[sum], "Add") || is_rounded(g, y) ||
        is_rounded(g, g->node[sum].out[0]))
        return OCT_OK;
    const oct_value *a = &g->value[n->in[0]], *b = &g->value[n->in[1]];
    const int slot = g->node[sum].in[0] == y, other = g->node[sum].in[slot];
    if (!a->quant || !a->quant->n || !b->quant || !b->quant->n)
        return OCT_OK;
    if (a->shape.rank == 2 && b->shape.rank == 2 && !is_row(g, other)) {
        n->op = "Gemm";
        return OCT_OK;
    }
    if (g->value[y].shape.rank < 3 || !is_row(g, other))
        return OCT_OK;
    const oct_tensor *t = g->value[other].constant;
    int wide;
    OCT_TRY(oct_graph_new_const_f32(g, g->value[other].name, 2, (const int64_t[]){ 1, t->count }, t->data, &wide, err));
    return oct_graph_set_input(g, sum, slot, wide, err);
}

/* ---- activations ---- */

/* Completes the nodes that give the quantized values as numbers. Borders to values with parameters of their own are
 * written together with those values. */
static oct_status complete_readers(oct_writer *w, int v, const int qval[3], const oct_quant *q, oct_err *err)
{
    for (size_t i = 0; i < w->g->value[v].n_uses; i++) {
        const int node = w->g->value[v].uses[i].node;
        const oct_node *n = &w->g->node[node];
        if (oct_is_op(n, "QuantizeLinear") && n->n_in == 1 && !w->g->value[n->out[0]].quant)
            OCT_TRY(complete(w, node, qval, q, err));
    }
    return OCT_OK;
}

/* Adds from -> QuantizeLinear -> quantized values -> DequantizeLinear -> real after the node that computes `from`: the
 * border's input, or the operator's result, which only the quantizer may read. An operator on integers computes the
 * quantized values itself. A name that is needed (graph output, subgraph) stays the name of the real value. qval: scale
 * and zero point; the quantized values are filled in. */
static oct_status write_pair(oct_writer *w, int v, int border, int qval[3], const oct_quant *q, oct_err *err)
{
    oct_graph *g = w->g;
    const int p = g->value[v].producer, maker = w->value[v].maker;
    const bool keep = p >= 0 && oct_edit_keeps(g, v);
    int from = border >= 0 ? g->node[border].in[0] : v, real;
    const char *base = g->value[from].name;
    qval[0] = v;
    if (keep || border < 0)
        OCT_TRY(oct_edit_value(g, base, "_quantized", q->dtype, v, &qval[0], err));
    if (keep && border < 0 && maker < 0) {
        OCT_TRY(oct_edit_value(g, base, "_raw", g->value[v].dtype, v, &from, err));
        OCT_TRY(oct_graph_set_output(g, p, oct_edit_output_slot(g, p, v), from, err));
    }
    OCT_TRY(oct_write_real(w, v, base, qval, &real, err));
    if (border >= 0)
        oct_graph_remove_node(g, border);
    g->value[qval[0]].dtype = q->dtype;
    const int before = oct_edit_after(g, g->value[from].producer);
    if (maker < 0) {
        OCT_TRY(add(w, "QuantizeLinear", from, qval[0], qval, q, before, err));
    } else {
        OCT_TRY(oct_write_output_qvals(w, maker, from, qval, err));
        if (from != real)
            oct_graph_remove_value(g, from);
    }
    return add(w, "DequantizeLinear", qval[0], real, qval, q, before, err);
}

oct_status oct_write_activation(oct_writer *w, int v, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_quant *q = g->value[v].quant;
    const int p = g->value[v].producer, border = p >= 0 && oct_is_op(&g->node[p], "QuantizeLinear") ? p : -1;
    int qval[3];
    OCT_TRY(oct_write_params(w, q, g->value[border >= 0 ? g->node[p].in[0] : v].name, &qval[1], &qval[2], err));
    OCT_TRY(complete_readers(w, v, qval, q, err));
    g->value[v].quant = NULL; /* a DequantizeLinear of integers computes it, a new one or the one that did before */
    if (p < 0 || !oct_is_op(&g->node[p], "DequantizeLinear"))
        return write_pair(w, v, border, qval, q, err);
    qval[0] = g->node[p].in[0];
    OCT_TRY(oct_write_readers(w, v, qval, v, err));
    return complete(w, p, qval, q, err);
}
