/* x -> DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul by (s_x * s_w) [-> Add bias], the form that ONNX Runtime
 * fuses into one operator. */
#include "forms/write/write_int.h"

#include "passes/match.h"

#include <string.h>

/* Quantized values, scale and zero point of the product's input. Products that read the same value share them. */
static oct_status dynamic_input(oct_graph *g, int id, const char *base, int out[3], oct_err *err)
{
    const int qvals = g->node[id].in[0], border = g->value[qvals].producer, x = g->node[border].in[0];
    const int written = oct_reader_of(g, x, "DynamicQuantizeLinear", 3);
    if (written >= 0) {
        memcpy(out, g->node[written].out, 3 * sizeof *out);
        return OCT_OK;
    }
    g->value[qvals].quant = NULL;
    g->value[qvals].dtype = OCT_U8;
    out[0] = qvals;
    OCT_TRY(oct_edit_value(g, base, "_input_scale", OCT_F32, -1, &out[1], err));
    OCT_TRY(oct_edit_value(g, base, "_input_zero_point", OCT_U8, -1, &out[2], err));
    OCT_TRY(oct_graph_set_output(g, border, 1, out[1], err));
    return oct_graph_set_output(g, border, 2, out[2], err);
}

/* in: quantized values, scale and zero point of the activation, then those of the weights. */
static oct_status replace(oct_graph *g, int id, const char *base, const int in[6], oct_err *err)
{
    const int y = g->node[id].out[0], bias = oct_input_at(&g->node[id], 2);
    int acc, real, mult, cast, out = y;
    OCT_TRY(oct_edit_value(g, base, "_integer", OCT_S32, y, &acc, err));
    OCT_TRY(oct_edit_value(g, base, "_real", OCT_F32, y, &real, err));
    OCT_TRY(oct_edit_value(g, base, "_scale", OCT_F32, in[4], &mult, err));
    OCT_TRY(oct_edit_node(g, "MatMulInteger", (int[]){ in[0], in[3], in[2], in[5] }, 4, acc, id, NULL, err));
    OCT_TRY(oct_edit_node(g, "Cast", &acc, 1, real, id, &cast, err));
    OCT_TRY(oct_node_set_int(g, cast, "to", OCT_F32, err));
    OCT_TRY(oct_edit_node(g, "Mul", (int[]){ in[1], in[4] }, 2, mult, id, NULL, err));
    if (bias >= 0)
        OCT_TRY(oct_edit_value(g, base, "_scaled", OCT_F32, y, &out, err));
    const int before = oct_edit_after(g, id);
    oct_graph_remove_node(g, id);
    OCT_TRY(oct_edit_node(g, "Mul", (int[]){ real, mult }, 2, out, before, NULL, err));
    return bias >= 0 ? oct_edit_node(g, "Add", (int[]){ out, bias }, 2, y, before, NULL, err) : OCT_OK;
}

/* Whether another value than b has the same quantized values, for example a table whose rows are picked. */
static bool others_have(const oct_graph *g, int b, const oct_tensor *qvals)
{
    bool others = false;
    for (size_t v = 0; v < g->n_value && !others; v++)
        others = (int)v != b && !g->value[v].dead && g->value[v].n_uses && g->value[v].constant == qvals;
    return others;
}

/* Writes the quantized values transposed. If another value has them as they are, a Transpose computes them instead,
 * which runtimes run once when they load the model. */
static oct_status transpose(oct_writer *w, int b, int id, const oct_tensor *qvals, int *written, oct_err *err)
{
    oct_graph *g = w->g;
    int plain, node;
    if (!others_have(g, b, qvals)) {
        OCT_TRY(oct_tensor_transposed(g->arena, qvals, &qvals, err));
        return oct_write_qvals(w, b, qvals, written, err);
    }
    OCT_TRY(oct_write_qvals(w, b, qvals, &plain, err));
    OCT_TRY(oct_edit_value(g, g->value[plain].name, "_transposed", qvals->dtype, -1, written, err));
    OCT_TRY(oct_edit_node(g, "Transpose", &plain, 1, *written, id, &node, err));
    return oct_node_set_ints(g, node, "perm", (const int64_t[]){ 1, 0 }, 2, err);
}

/* Quantized values, scale and zero point of the weights of node id. Products with the same weights share them.
 * transposed: the product transposes its weights. As MatMulInteger cannot do this, they are then written transposed. */
static oct_status weights_of(oct_writer *w, int b, int id, bool transposed, int out[3], oct_err *err)
{
    const oct_quant *q = w->g->value[b].quant;
    const oct_tensor *qvals = q->qvals;
    int *written = &w->value[b].written[transposed];
    const char *base;
    OCT_TRY(oct_write_base(w, b, &base, err));
    if (*written < 0)
        OCT_TRY(transposed ? transpose(w, b, id, qvals, written, err) : oct_write_qvals(w, b, qvals, written, err));
    out[0] = *written;
    return oct_write_params(w, q, base, &out[1], &out[2], err);
}

oct_status oct_write_dynamic(oct_writer *w, int id, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_node *n = &g->node[id];
    const char *base = n->name[0] ? n->name : g->value[n->out[0]].name;
    int in[6];
    OCT_TRY(weights_of(w, n->in[1], id, oct_is_op(n, "Gemm") && oct_node_int(n, "transB", 0), in + 3, err));
    OCT_TRY(dynamic_input(g, id, base, in, err));
    return replace(g, id, base, in, err);
}
