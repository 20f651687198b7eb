/* Pass: a 2-D MatMul with a constant matrix becomes a Gemm, and the Add of a constant row after it becomes its bias.
 * ONNX Runtime runs MatMul and Add in float if there is no quantizer between them, but a Gemm is an integer operator.
 * Conversely, a Gemm whose first factor is the constant becomes MatMul and Add, because only a MatMul can have data as
 * both factors. */
#include "passes/fuse.h"

static bool bias_add(oct_graph *g, int tail, int slot, const oct_layer *l)
{
    const oct_node *n = &g->node[tail];
    float *v;
    return oct_is_op(n, "Add") && n->n_in == 2 && n->in[1 - slot] >= 0 &&
           oct_channel_const(g, n->in[1 - slot], l, 2, &v);
}

static oct_status to_gemm(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    oct_layer l;
    int slot, tail;
    float *shift;
    if (!oct_is_op(&g->node[id], "MatMul") || !oct_biased_layer_of(g, id, &l) || g->node[id].in[0] < 0 ||
        g->value[g->node[id].in[0]].shape.rank != 2 || g->value[g->node[id].out[0]].dtype != OCT_F32)
        return OCT_OK;
    tail = oct_sole_reader(g, g->node[id].out[0], &slot);
    if (tail < 0 || !bias_add(g, tail, slot, &l) || !oct_channel_const(g, g->node[tail].in[1 - slot], &l, 2, &shift))
        return OCT_OK;
    g->node[id].op = "Gemm";
    g->node[id].changed = g->changed = true;
    oct_pass_note(log, self, "MatMul+Add", g->node[id].name);
    OCT_TRY(oct_layer_affine(g, &l, NULL, shift, err));
    return oct_layer_absorb(g, id, tail, err);
}

/* Whether a node is a Gemm with a constant as the first factor, transposed or not, and with data as the second one, not
 * transposed. */
static bool is_turned(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const bool biased = oct_input_at(n, 2) >= 0;
    return oct_is_op(n, "Gemm") && n->n_in > 1 && n->in[0] >= 0 && n->in[1] >= 0 && n->out[0] >= 0 &&
           g->value[n->in[0]].constant && !g->value[n->in[1]].constant && g->value[n->in[1]].dtype == OCT_F32 &&
           oct_node_float(n, "alpha", 1) == 1 && (!biased || oct_node_float(n, "beta", 1) == 1) &&
           oct_node_int(n, "transB", 0) == 0;
}

/* Adds a node before `before`, or at the end; *out: its result. */
static oct_status add_node(oct_graph *g, const char *op, int a, int b, int before, int *out, oct_err *err)
{
    int id;
    OCT_TRY(oct_graph_add_node(g, op, "", "", 1, 1, before, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, a, err));
    if (b >= 0)
        OCT_TRY(oct_graph_set_input(g, id, 1, b, err));
    if (*out < 0)
        OCT_TRY(oct_graph_new_value(g, g->value[a].name, OCT_F32, out, err));
    return oct_graph_set_output(g, id, 0, *out, err);
}

/* Makes a MatMul, whose factors may both be data, and an Add. */
static oct_status from_gemm(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const int bias = g->node[id].n_in > 2 ? g->node[id].in[2] : -1, next = oct_graph_next(g, id);
    if (!is_turned(g, id))
        return OCT_OK;
    oct_pass_note(log, self, "Gemm", g->node[id].name);
    if (oct_node_int(&g->node[id], "transA", 0)) {
        int turned = -1;
        OCT_TRY(add_node(g, "Transpose", g->node[id].in[0], -1, id, &turned, err));
        OCT_TRY(oct_graph_set_input(g, id, 0, turned, err));
    }
    static const char *const attrs[] = { "alpha", "beta", "transA", "transB" };
    for (size_t i = 0; i < OCT_COUNT(attrs); i++)
        oct_node_drop_attr(g, id, attrs[i]);
    g->node[id].op = "MatMul";
    g->node[id].changed = g->changed = true;
    oct_graph_cut_inputs(g, id, 2);
    if (bias < 0)
        return OCT_OK;
    int y = g->node[id].out[0], product;
    OCT_TRY(oct_graph_new_value(g, g->value[y].name, OCT_F32, &product, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, product, err));
    return add_node(g, "Add", product, bias, next, &y, err);
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        OCT_TRY(to_gemm(g, id, self, log, err));
        OCT_TRY(from_gemm(g, id, self, log, err));
        while (g->order[i] != id)
            i--;
    }
    return OCT_OK;
}

const oct_pass oct_pass_gemm = {
    "gemm", "make 2-D MatMul with a constant matrix and bias a Gemm, and Gemm with one in front a MatMul", run
};
