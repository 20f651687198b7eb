/* QuantizeLinear and DequantizeLinear around real operators. Scales of activations are scalars (rank 0), as ONNX Runtime's fusions
 * ask. */
#include "forms/write_int.h"

#include <string.h>

/* ---- grids ---- */

static oct_grid_consts *slot_of(const oct_writer *w, const oct_quant *q)
{
    size_t i = ((uintptr_t)q->scale >> 4) * 0x9E3779B1u & (w->grids - 1);
    for (const oct_quant *of; (of = w->grid[i].of); i = (i + 1) & (w->grids - 1))
        if (of->scale == q->scale && of->zp == q->zp && of->dtype == q->dtype)
            break;
    return &w->grid[i];
}

static oct_status zero_const(oct_graph *g, const oct_quant *q, const char *base, int rank, const int64_t *dims, int *v, oct_err *err)
{
    uint8_t *bytes = q->dtype == OCT_S32 ? NULL : oct_alloc((size_t)q->n);
    if (q->dtype != OCT_S32 && !bytes)
        return oct_nomem(err);
    for (int i = 0; bytes && i < q->n; i++)
        bytes[i] = (uint8_t)q->zp[i]; /* the byte of a u8 or s8 zero point */
    oct_status s = oct_edit_const(g, base, "_zero_point", q->dtype, rank, dims, bytes ? (const void *)bytes : q->zp, v, err);
    oct_free(bytes);
    return s;
}

oct_status oct_write_grid(oct_writer *w, const oct_quant *q, const char *base, int *scale, int *zero, oct_err *err)
{
    oct_grid_consts *c = slot_of(w, q);
    const int64_t n = q->n;
    if (!c->of) {
        OCT_TRY(oct_edit_const(w->g, base, "_scale", OCT_F32, n > 1, &n, q->scale, &c->scale, err));
        OCT_TRY(zero_const(w->g, q, base, n > 1, &n, &c->zero, err));
        c->of = q;
    }
    *scale = c->scale;
    *zero = c->zero;
    return OCT_OK;
}

/* ---- nodes ---- */

static oct_status add(oct_writer *w, const char *op, const oct_quant *q, const int in[3], int out, int before, oct_err *err)
{
    int node;
    OCT_TRY(oct_edit_node(w->g, op, in, 3, out, before, &node, err));
    return q->n > 1 ? oct_node_set_int(w->g, node, "axis", q->axis, err) : OCT_OK;
}

oct_status oct_write_redirect(oct_writer *w, int v, int to, oct_err *err)
{
    const oct_value *x = &w->g->value[v];
    for (size_t i = 0; i < x->n_uses;) {
        const oct_use u = x->uses[i];
        if (u.slot >= 0)
            OCT_TRY(oct_graph_set_input(w->g, u.node, u.slot, to, err));
        else
            i++;
    }
    return OCT_OK;
}

oct_status oct_write_constant(oct_writer *w, int v, int before, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_quant *q = g->value[v].quant;
    const char *base = oct_write_base(w, v);
    int in[3], dq;
    if (!base)
        return oct_nomem(err);
    OCT_TRY(oct_write_codes(w, v, q->codes, &in[0], err));
    OCT_TRY(oct_write_grid(w, q, base, &in[1], &in[2], err));
    OCT_TRY(oct_edit_value(g, base, "_dequantized", g->value[v].dtype, in[0], &dq, err));
    OCT_TRY(add(w, "DequantizeLinear", q, in, dq, before, err));
    return oct_write_redirect(w, v, dq, err);
}

/* ---- activations ---- */

/* The integer tensor's own border: it only lacks its parameters. */
static oct_status complete(oct_writer *w, int node, const int grid[2], const oct_quant *q, oct_err *err)
{
    OCT_TRY(oct_graph_set_input(w->g, node, 1, grid[0], err));
    OCT_TRY(oct_graph_set_input(w->g, node, 2, grid[1], err));
    return q->n > 1 ? oct_node_set_int(w->g, node, "axis", q->axis, err) : OCT_OK;
}

/* Nodes that give the codes as numbers. */
static oct_status complete_readers(oct_writer *w, int v, const int grid[2], const oct_quant *q, oct_err *err)
{
    for (size_t i = 0; i < w->g->value[v].n_uses; i++) {
        const int node = w->g->value[v].uses[i].node;
        if (oct_is_op(&w->g->node[node], "QuantizeLinear") && w->g->node[node].n_in == 1)
            OCT_TRY(complete(w, node, grid, q, err));
    }
    return OCT_OK;
}

/* from -> QuantizeLinear -> codes -> DequantizeLinear -> dq, behind the node that makes from. */
static oct_status add_pair(oct_writer *w, int from, int codes, int dq, const int grid[2], const oct_quant *q, oct_err *err)
{
    const int before = oct_edit_after(w->g, w->g->value[from].producer);
    OCT_TRY(add(w, "QuantizeLinear", q, (int[]){ from, grid[0], grid[1] }, codes, before, err));
    return add(w, "DequantizeLinear", q, (int[]){ codes, grid[0], grid[1] }, dq, before, err);
}

/* Nothing may read what the operator makes beside the quantizer. If v's name is needed (graph output, subgraph), the dequantized value
 * takes it. */
static oct_status write_made(oct_writer *w, int v, const int grid[2], const oct_quant *q, oct_err *err)
{
    oct_graph *g = w->g;
    const int p = g->value[v].producer;
    const char *base = g->value[v].name;
    const oct_dtype real = g->value[v].dtype;
    int codes, other;
    OCT_TRY(oct_edit_value(g, base, "_quantized", q->dtype, v, &codes, err));
    if (p >= 0 && (g->value[v].is_output || oct_value_is_captured(&g->value[v]))) {
        OCT_TRY(oct_edit_value(g, base, "_raw", real, v, &other, err));
        OCT_TRY(oct_graph_set_output(g, p, oct_edit_output_slot(g, p, v), other, err));
        return add_pair(w, other, codes, v, grid, q, err);
    }
    OCT_TRY(oct_edit_value(g, base, "_dequantized", real, v, &other, err));
    OCT_TRY(oct_write_redirect(w, v, other, err));
    return add_pair(w, v, codes, other, grid, q, err);
}

/* The annotated value becomes that of the codes. */
static oct_status write_border(oct_writer *w, int v, const int grid[2], const oct_quant *q, oct_err *err)
{
    oct_graph *g = w->g;
    const int border = g->value[v].producer, from = g->node[border].in[0];
    int dq;
    OCT_TRY(oct_edit_value(g, g->value[from].name, "_dequantized", g->value[v].dtype, v, &dq, err));
    OCT_TRY(oct_write_redirect(w, v, dq, err));
    oct_graph_remove_node(g, border);
    g->value[v].dtype = q->dtype;
    return add_pair(w, from, v, dq, grid, q, err);
}

oct_status oct_write_activation(oct_writer *w, int v, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_quant *q = g->value[v].quant;
    const int p = g->value[v].producer;
    const bool quantized = p >= 0 && oct_is_op(&g->node[p], "QuantizeLinear"), plain = p >= 0 && oct_is_op(&g->node[p], "DequantizeLinear");
    int grid[2];
    OCT_TRY(oct_write_grid(w, q, g->value[quantized ? g->node[p].in[0] : v].name, &grid[0], &grid[1], err));
    OCT_TRY(complete_readers(w, v, grid, q, err));
    g->value[v].quant = NULL;
    if (plain)
        return complete(w, p, grid, q, err);
    return quantized ? write_border(w, v, grid, q, err) : write_made(w, v, grid, q, err);
}
