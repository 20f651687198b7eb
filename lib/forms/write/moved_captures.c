/* What ONNX Runtime 1.32 cannot load: a DequantizeLinear with one scale, then nodes that only move values, then an If,
 * Loop or Scan whose body captures the result. From its basic optimizations on (QDQPropagation), it gives each of these
 * nodes a QuantizeLinear and a DequantizeLinear for every reader, forgets that captures have no input slot, and ends
 * the process without an exception. It stops at a QuantizeLinear. So the captured value gets one, with a
 * DequantizeLinear behind it, of the same scale: moved values are those that the first one made, and stay the same. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "passes/match.h"

#include <string.h>

/* Whether the runtime moves a DequantizeLinear across a node, or removes the node before. */
static bool is_passed(const oct_node *n)
{
    static const char *const ops[] = { "Reshape", "Transpose", "Squeeze",  "Unsqueeze",
                                       "Slice",   "MaxPool",   "Identity", "Dropout" };
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        if (oct_is_op(n, ops[i]))
            return true;
    return false;
}

static bool has_one(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t ? t->count == 1 : slot == 2 && oct_input_at(n, slot) < 0;
}

/* The DequantizeLinear with one scale whose result nodes have only moved to value v; -1: there is none. */
static int dequantizer_behind(const oct_graph *g, int v)
{
    bool moved = false;
    for (size_t n = 0; v >= 0 && n < g->n_value; n++) {
        const int p = g->value[v].producer;
        const oct_node *x = p >= 0 ? &g->node[p] : NULL;
        if (x && oct_edit_is_quantizer(x, "DequantizeLinear"))
            return moved && has_one(g, x, 1) && has_one(g, x, 2) && g->value[x->in[0]].dtype != OCT_S32 ? p : -1;
        if (!x || !is_passed(x) || x->out[0] != v)
            return -1;
        moved = true;
        v = x->in[0];
    }
    return -1;
}

/* Adds a QuantizeLinear (op) or DequantizeLinear with the parameters of a DequantizeLinear, before node `before`. */
static oct_status add(oct_graph *g, const char *op, int like, int from, int to, int before, oct_err *err)
{
    const oct_node *n = &g->node[like];
    const char *domain = n->domain;
    const int in[3] = { from, n->in[1], oct_input_at(n, 2) };
    int node;
    OCT_TRY(oct_edit_node(g, op, in, in[2] >= 0 ? 3 : 2, to, before, &node, err));
    return domain[0] ? oct_edit_become(g, node, op, domain, 0, err) : OCT_OK;
}

static oct_status keep(oct_graph *g, int v, int dequantizer, oct_err *err)
{
    const char *base = g->value[v].name;
    const int p = g->value[v].producer, before = oct_edit_after(g, p), slot = oct_edit_output_slot(g, p, v);
    int raw, codes;
    OCT_TRY(oct_edit_value(g, base, "_raw", g->value[v].dtype, v, &raw, err));
    OCT_TRY(oct_edit_value(g, base, "_quantized", g->value[g->node[dequantizer].in[0]].dtype, v, &codes, err));
    OCT_TRY(oct_graph_set_output(g, p, slot, raw, err));
    OCT_TRY(add(g, "QuantizeLinear", dequantizer, raw, codes, before, err));
    return add(g, "DequantizeLinear", dequantizer, codes, v, before, err);
}

oct_status oct_keep_moved_captures(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_value;
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(oct_keep_moved_captures(nested, err));
    for (size_t v = 0; v < n; v++) {
        const bool captured = !g->value[v].dead && oct_value_is_captured(&g->value[v]);
        const int dequantizer = captured ? dequantizer_behind(g, (int)v) : -1;
        if (dequantizer >= 0)
            OCT_TRY(keep(g, (int)v, dequantizer, err));
    }
    return OCT_OK;
}
