/* Operators on integers that were not read, because their scales are computed at run time, become float operators
 * between DequantizeLinear and QuantizeLinear. */
#include "forms/edit.h"
#include "forms/forms.h"
#include "forms/qlinear.h"

enum { OPSET = 13 }; /* of the nodes that are added: the first one with scales per channel */

static oct_status around(oct_graph *g, const char *op, const int *in, int n_in, int out, int before, int *node,
                         oct_err *err)
{
    OCT_TRY(oct_edit_node(g, op, in, n_in, out, before, node, err));
    return oct_edit_become(g, *node, op, "", OPSET, err);
}

/* Adds a DequantizeLinear of an input before the node. axis: the dimension of the scales, if there are several. */
static oct_status dequantize(oct_graph *g, int id, int value, const int params[2], int axis, int *v, oct_err *err)
{
    const bool zero = params[1] >= 0;
    int node;
    OCT_TRY(oct_edit_value(g, g->value[value].name, "_real", OCT_F32, value, v, err));
    OCT_TRY(around(g, "DequantizeLinear", (int[]){ value, params[0], params[1] }, zero ? 3 : 2, *v, id, &node, err));
    return oct_node_set_int(g, node, "axis", axis, err);
}

/* The bias has the product of the scales of both inputs, and no zero point. */
static oct_status dequantize_bias(oct_graph *g, int id, int bias, const int scales[2], int *v, oct_err *err)
{
    int product, node;
    OCT_TRY(oct_edit_value(g, g->value[bias].name, "_scale", OCT_F32, scales[1], &product, err));
    OCT_TRY(around(g, "Mul", scales, 2, product, id, &node, err));
    return dequantize(g, id, bias, (int[]){ product, -1 }, 0, v, err);
}

static oct_status quantize(oct_graph *g, int id, const int params[2], oct_err *err)
{
    const int y = g->node[id].out[0];
    int v, node;
    OCT_TRY(oct_edit_value(g, g->value[y].name, "_real", OCT_F32, y, &v, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, v, err));
    return around(g, "QuantizeLinear", (int[]){ v, params[0], params[1] }, params[1] >= 0 ? 3 : 2, y,
                  oct_edit_after(g, id), &node, err);
}

static oct_status apart(oct_graph *g, int id, const oct_qlinear *f, int n_data, oct_err *err)
{
    const oct_node was = g->node[id];
    const int *in = oct_arena_memdup(g->arena, was.in, (size_t)was.n_in * sizeof *was.in);
    int *real = oct_arena_calloc(g->arena, (size_t)n_data + 1, sizeof *real);
    if (!in || !real)
        return oct_nomem(err);
    const oct_node old = { .in = (int *)in, .n_in = was.n_in };
    const int bias = oct_input_at(&old, f->bias), y[2] = { oct_input_at(&old, f->y), oct_input_at(&old, f->y + 1) };
    int scales[2] = { -1, -1 };
    for (int i = 0; i < n_data; i++) {
        const int slot = oct_qlinear_slot(f, i),
                  params[2] = { oct_input_at(&old, slot + 1), oct_input_at(&old, slot + 2) };
        const int axis = oct_qlinear_axis(f, &g->node[id], i, g->value[in[slot]].shape.rank);
        OCT_TRY(dequantize(g, id, in[slot], params, axis, &real[i], err));
        if (i < 2)
            scales[i] = params[0];
    }
    if (bias >= 0)
        OCT_TRY(dequantize_bias(g, id, bias, scales, &real[n_data], err));
    oct_graph_cut_inputs(g, id, 0);
    for (int i = 0; i < n_data + (bias >= 0); i++)
        OCT_TRY(oct_graph_set_input(g, id, i, real[i], err));
    OCT_TRY(oct_edit_become(g, id, f->op, "", f->opset, err));
    return y[0] >= 0 ? quantize(g, id, y, err) : OCT_OK;
}

/* Whether a node has all inputs that it needs, and they mean what the table says (see is_plain in read_qlinear.c). */
static bool is_whole(const oct_graph *g, const oct_node *n, const oct_qlinear *f, int n_data)
{
    bool whole = n_data >= 1 && n->n_out == 1 && n->out[0] >= 0 && (oct_input_at(n, f->y) >= 0 || f->y_real) &&
                 !oct_node_int(n, "channels_last", 0) && (f->n_data >= 0 || oct_qlinear_slot(f, n_data) == n->n_in);
    for (int i = 0; whole && i < n_data; i++) {
        const int slot = oct_qlinear_slot(f, i);
        whole = oct_input_at(n, slot) >= 0 && oct_input_at(n, slot + 1) >= 0 && g->value[n->in[slot]].shape.rank >= 0;
    }
    return whole && (oct_input_at(n, f->bias) < 0 || oct_node_float(n, "alpha", 1.0f) == 1.0f);
}

oct_status oct_forms_split_qlinear(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_order;
    const int *at = oct_arena_memdup(g->arena, g->order, n * sizeof *at);
    if (n && !at)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const oct_node *node = &g->node[at[i]];
        const oct_qlinear *f = oct_qlinear_of(node);
        const int n_data = !f ? 0 : f->n_data < 0 ? (node->n_in - f->first) / 3 : f->n_data;
        oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(node, k)); k++)
            OCT_TRY(oct_forms_split_qlinear(nested, err));
        if (f && is_whole(g, node, f, n_data))
            OCT_TRY(oct_within_node(g, at[i], apart(g, at[i], f, n_data, err), err));
    }
    return OCT_OK;
}
