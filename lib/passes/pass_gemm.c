/* Pass: a 2-D MatMul with a constant matrix becomes a Gemm, with the Add of a constant row behind it as bias. ONNX Runtime runs
 * MatMul + Add without a quantizer between them in float; a Gemm is an integer operator. */
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
    if (!oct_is_op(&g->node[id], "MatMul") || !oct_layer_of(g, id, &l) || g->node[id].in[0] < 0 ||
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

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        OCT_TRY(to_gemm(g, id, self, log, err));
        while (g->order[i] != id)
            i--;
    }
    return OCT_OK;
}

const oct_pass oct_pass_gemm = { "gemm", "make 2-D MatMul with a constant matrix and bias a Gemm", run };
