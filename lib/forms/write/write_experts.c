/* com.microsoft.MoE whose experts come out of DequantizeLinear in blocks of 4 bits becomes QMoE, which reads the
 * quantized values. So no runtime makes float copies of all experts in each run. ONNX Runtime's QMoE divides the
 * weights of a token's experts by their sum, whatever normalize_routing_weights says, so a MoE that does not stays. */
#include "forms/write/write_int.h"

#include "ops/core/small.h"
#include "passes/match.h"

#include <string.h>

enum { LEAST_BLOCK = 16 };
/* Inputs of MoE, and those of QMoE: the matrices, their scales and biases, for the first layer and the second. */
enum { REAL_FC1 = 2, REAL_BIAS1, REAL_FC2, REAL_BIAS2, REAL_FC3 };
enum { FC1 = 2, SCALE1, BIAS1, FC2, SCALE2, BIAS2, ZERO1 = 11, ZERO2 };

typedef struct matrices {
    int node; /* the DequantizeLinear */
    const oct_tensor *qvals, *scale, *zero;
    int64_t block;
} matrices;

static const oct_tensor *constant_at(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data ? t : NULL;
}

static bool read_matrices(const oct_graph *g, int v, matrices *m)
{
    m->node = v >= 0 && oct_value_used_once(&g->value[v]) && !g->value[v].is_output ? g->value[v].producer : -1;
    const oct_node *n = m->node >= 0 ? &g->node[m->node] : NULL;
    if (!n || !oct_is_op(n, "DequantizeLinear") || oct_node_int(n, "axis", 1) != 2)
        return false;
    m->block = oct_node_int(n, "block_size", 0);
    m->qvals = constant_at(g, n, 0);
    m->scale = constant_at(g, n, 1);
    m->zero = constant_at(g, n, 2);
    return m->qvals && m->qvals->rank == 3 && (m->qvals->dtype == OCT_S4 || (m->qvals->dtype == OCT_U4 && m->zero)) &&
           m->scale && m->scale->dtype == OCT_F32 && m->scale->rank == 3 && m->block >= LEAST_BLOCK &&
           (m->block & (m->block - 1)) == 0 && m->qvals->dims[2] % m->block == 0;
}

/* Rows of 4-bit numbers, each padded to whole bytes. Signed ones get 8 added. */
static oct_status packed_rows(oct_graph *g, const char *base, const char *suffix, const oct_tensor *t, int *v,
                              oct_err *err)
{
    const int64_t wide = t->dims[2], bytes = (wide + 1) / 2, rows = t->dims[0] * t->dims[1];
    oct_tensor *made;
    OCT_TRY(oct_tensor_new(g->arena, OCT_U8, 3, (const int64_t[]){ t->dims[0], t->dims[1], bytes }, &made, err));
    uint8_t *to = memset((void *)(uintptr_t)made->data, 0, made->bytes);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < wide; k++) {
            const int q = (int)oct_small_get(t->dtype, t->data, r * wide + k) + (t->dtype == OCT_S4 ? 8 : 0);
            to[r * bytes + k / 2] |= (uint8_t)(q << 4 * (k % 2));
        }
    return oct_edit_refer(g, base, suffix, made, v, err);
}

/* Gives a node the inputs of one layer. */
static oct_status set_layer(oct_graph *g, int id, const matrices *m, int slot, int zero_slot, int bias, oct_err *err)
{
    const int scale = g->node[m->node].in[1];
    const oct_writer w = { .g = g };
    const char *base;
    int v;
    OCT_TRY(oct_write_base(&w, g->node[m->node].in[0], &base, err));
    OCT_TRY(packed_rows(g, base, "_packed", m->qvals, &v, err));
    OCT_TRY(oct_graph_set_input(g, id, slot, v, err));
    OCT_TRY(oct_graph_set_input(g, id, slot + 1, scale, err));
    if (bias >= 0)
        OCT_TRY(oct_graph_set_input(g, id, slot + 2, bias, err));
    if (!m->zero)
        return OCT_OK;
    OCT_TRY(packed_rows(g, base, "_packed_zero_point", m->zero, &v, err));
    return oct_graph_set_input(g, id, zero_slot, v, err);
}

oct_status oct_write_experts(oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    matrices fc1, fc2;
    if (strcmp(n->op, "MoE") != 0 || strcmp(n->domain, "com.microsoft") != 0 || oct_input_at(n, REAL_FC3) >= 0 ||
        !oct_node_int(n, "normalize_routing_weights", 0) || !read_matrices(g, oct_input_at(n, REAL_FC1), &fc1) ||
        !read_matrices(g, oct_input_at(n, REAL_FC2), &fc2) || fc1.block != fc2.block || !fc1.zero != !fc2.zero)
        return OCT_OK;
    const int bias1 = oct_input_at(n, REAL_BIAS1), bias2 = oct_input_at(n, REAL_BIAS2);
    oct_graph_cut_inputs(g, id, REAL_FC1);
    OCT_TRY(set_layer(g, id, &fc1, FC1, ZERO1, bias1, err));
    OCT_TRY(set_layer(g, id, &fc2, FC2, ZERO2, bias2, err));
    OCT_TRY(oct_node_set_int(g, id, "expert_weight_bits", 4, err));
    OCT_TRY(oct_node_set_int(g, id, "block_size", fc1.block, err));
    return oct_edit_become(g, id, "QMoE", "com.microsoft", 0, err);
}
