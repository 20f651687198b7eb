/* Weights that are stored in 8 bits for a layer on reals: .onnx has Cast and Mul behind them, so that a runtime that
 * folds constants does not see a quantized layer. A .tflite file has DEQUANTIZE behind constants of int8, which are
 * read here as such before constants are folded. */
#include "forms/edit.h"
#include "tflite/tfl_operators.h"

/* The constant of int8 that a value is the float32 of; NULL: it is none. */
static const oct_tensor *cast_from(const oct_graph *g, int value, int *from)
{
    const int p = value < 0 ? -1 : g->value[value].producer;
    if (p < 0 || !oct_is_op(&g->node[p], "Cast") || g->value[value].dtype != OCT_F32 || g->node[p].in[0] < 0)
        return NULL;
    *from = g->node[p].in[0];
    const oct_tensor *t = g->value[*from].constant;
    return t && t->data && t->dtype == OCT_S8 ? t : NULL;
}

/* Whether there is a scale for each index of one axis, or one of all. */
static bool scales_of_axis(const oct_tensor *q, const oct_tensor *scale, int *axis)
{
    *axis = 0;
    if (!scale || !scale->data || scale->dtype != OCT_F32 || scale->rank != q->rank)
        return false;
    for (int d = 0; d < q->rank; d++)
        if (scale->dims[d] != 1) {
            if (scale->dims[d] != scale->count || scale->dims[d] != q->dims[d])
                return false;
            *axis = d;
        }
    for (int64_t i = 0; i < scale->count; i++)
        if (!(((const float *)scale->data)[i] > 0))
            return false;
    return scale->count > 0;
}

/* Whether layers alone read a value, as their weights. */
static bool is_weights(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_tfl_rule *rule = v->uses[i].slot == 1 ? oct_tfl_rule_of(&g->node[v->uses[i].node]) : NULL;
        if (!rule || (rule->write != oct_tfl_write_conv && rule->write != oct_tfl_write_conv_transpose &&
                      rule->write != oct_tfl_write_gemm && rule->write != oct_tfl_write_matmul))
            return false;
    }
    return v->n_uses > 0;
}

static oct_status read_stored(oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    int in[2], axis, node;
    if (!oct_is_op(n, "Mul") || n->n_in != 2 || n->in[1] < 0 || n->out[0] < 0 || !is_weights(g, n->out[0]))
        return OCT_OK;
    const int out = n->out[0];
    const oct_tensor *q = cast_from(g, n->in[0], &in[0]), *scale = g->value[n->in[1]].constant;
    if (!q || !scales_of_axis(q, scale, &axis))
        return OCT_OK;
    const char *name = g->value[n->in[1]].name;
    OCT_TRY(oct_edit_const(g, name, "_of_each", OCT_F32, scale->count > 1, &scale->count, scale->data, &in[1], err));
    OCT_TRY(oct_graph_set_output(g, id, 0, -1, err));
    OCT_TRY(oct_edit_node(g, "DequantizeLinear", in, 2, out, id, &node, err));
    if (scale->count > 1)
        OCT_TRY(oct_node_set_int(g, node, "axis", axis, err));
    oct_graph_remove_node(g, id);
    return OCT_OK;
}

oct_status oct_tfl_read_stored(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_node;
    for (size_t i = 0; i < n; i++)
        if (!g->node[i].dead)
            OCT_TRY(read_stored(g, (int)i, err));
    return OCT_OK;
}
