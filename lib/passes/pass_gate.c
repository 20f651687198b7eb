/* Pass: MoE of com.microsoft with a third matrix, silu(x W1) * (x W3), becomes one with swiglu, whose first matrix has
 * the rows of both in turn. On CPUs ONNX Runtime runs that form alone, and QMoE has it. */
#include "passes/pass.h"

#include <string.h>

enum { FC1 = 2, BIAS1 = 3, FC3 = 6, BIAS3 = 7 };

static const oct_tensor *constant_at(const oct_graph *g, const oct_node *n, int slot, int rank)
{
    const oct_tensor *t = oct_graph_constant(g, oct_input_at(n, slot));
    return t && t->data && t->rank == rank && oct_dtype_bits(t->dtype) % 8 == 0 ? t : NULL;
}

static bool same(const oct_tensor *a, const oct_tensor *b)
{
    return a && b && a->dtype == b->dtype && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool match(const oct_graph *g, const oct_node *n)
{
    const char *act = oct_node_str(n, "activation_type", "relu");
    if (strcmp(n->op, "MoE") != 0 || strcmp(n->domain, "com.microsoft") != 0 || oct_input_at(n, FC3) < 0 ||
        !(strcmp(act, "silu") == 0 || (strcmp(act, "swiglu") == 0 && oct_node_int(n, "swiglu_fusion", 0) == 0)) ||
        !same(constant_at(g, n, FC1, 3), constant_at(g, n, FC3, 3)))
        return false;
    const bool none = oct_input_at(n, BIAS1) < 0 && oct_input_at(n, BIAS3) < 0;
    return none || same(constant_at(g, n, BIAS1, 2), constant_at(g, n, BIAS3, 2));
}

/* Joins two constants [experts][rows]...: rows of the first and the second in turn. */
static oct_status join(oct_graph *g, int id, int slot, int other, oct_err *err)
{
    const int v = g->node[id].in[slot];
    const oct_tensor *a = oct_graph_constant(g, v), *b = oct_graph_constant(g, g->node[id].in[other]);
    int64_t dims[3];
    int joined;
    oct_tensor *made;
    memcpy(dims, a->dims, (size_t)a->rank * sizeof *dims);
    dims[1] *= 2;
    OCT_TRY(oct_tensor_new(g->arena, a->dtype, a->rank, dims, &made, err));
    const size_t rows = (size_t)(a->dims[0] * a->dims[1]), row = rows ? a->bytes / rows : 0;
    char *to = (char *)(uintptr_t)made->data;
    for (size_t r = 0; r < rows; r++) {
        memcpy(to + 2 * r * row, (const char *)a->data + r * row, row);
        memcpy(to + (2 * r + 1) * row, (const char *)b->data + r * row, row);
    }
    OCT_TRY(oct_graph_new_value(g, g->value[v].name, a->dtype, &joined, err));
    oct_graph_set_const(g, joined, made);
    g->value[joined].own_type = g->value[v].own_type;
    return oct_graph_set_input(g, id, slot, joined, err);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    if (!match(g, &g->node[id]))
        return OCT_OK;
    OCT_TRY(join(g, id, FC1, FC3, err));
    if (oct_input_at(&g->node[id], BIAS1) >= 0)
        OCT_TRY(join(g, id, BIAS1, BIAS3, err));
    oct_graph_cut_inputs(g, id, FC3);
    if (strcmp(oct_node_str(&g->node[id], "activation_type", ""), "silu") == 0) {
        OCT_TRY(oct_node_set_float(g, id, "activation_alpha", 1, err));
        OCT_TRY(oct_node_set_float(g, id, "activation_beta", 0, err));
        oct_node_drop_attr(g, id, "swiglu_limit");
    }
    OCT_TRY(oct_node_set_str(g, id, "activation_type", "swiglu", err));
    OCT_TRY(oct_node_set_int(g, id, "swiglu_fusion", 1, err));
    g->node[id].changed = g->changed = true;
    oct_pass_note(log, self, "MoE with a third matrix", g->node[id].name);
    return OCT_OK;
}

const oct_pass oct_pass_gate = { "gate", "make the third matrix of a MoE a part of its first", .flattens = true,
                                 .at = at };
