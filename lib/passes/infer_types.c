/* Infers element types that no operator determines from its inputs: outputs of operators without a record. They follow
 * from signatures that require operands to have the same type, in both directions. */
#include "passes/infer_types.h"

#include "ops/op.h"
#include "ops/signature.h"

#include <string.h>

enum { LETTERS = 26, MOST_ROUNDS = 16 }; /* each round goes through the graph in both directions */

static bool is_open(const oct_graph *g, int value)
{
    return value >= 0 && g->value[value].dtype == OCT_UNDEFINED && g->value[value].kind == OCT_VALUE_TENSOR;
}

static bool any_open(const oct_graph *g, const oct_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= is_open(g, n->in[i]);
    for (int k = 0; k < n->n_out; k++)
        any |= is_open(g, n->out[k]);
    return any;
}

/* The only type in a set, or OCT_UNDEFINED. */
static oct_dtype only_type(uint32_t set)
{
    return set && !(set & (set - 1)) ? (oct_dtype)__builtin_ctz(set) : OCT_UNDEFINED;
}

static oct_dtype value_type(const oct_graph *g, int value)
{
    return value >= 0 && g->value[value].kind == OCT_VALUE_TENSOR ? g->value[value].dtype : OCT_UNDEFINED;
}

static bool set_type(oct_graph *g, int value, oct_dtype t)
{
    if (t == OCT_UNDEFINED || !is_open(g, value))
        return false;
    g->value[value].dtype = t;
    return true;
}

/* Operands with the same letter have the same type. */
static bool infer_operands(oct_graph *g, const oct_node *n)
{
    const oct_signature *s = oct_signature_find(n->domain, n->op, oct_node_opset(g, n));
    oct_dtype type[LETTERS];
    bool any = false;
    if (!s)
        return false;
    for (size_t i = 0; i < LETTERS; i++)
        type[i] = i < OCT_COUNT(s->set) ? only_type(s->set[i]) : OCT_UNDEFINED;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const bool out = i >= n->n_in;
        const char letter = oct_signature_letter(out ? s->out : s->in, out ? i - n->n_in : i);
        const oct_dtype t = value_type(g, out ? n->out[i - n->n_in] : n->in[i]);
        if (letter && t != OCT_UNDEFINED)
            type[letter - 'A'] = t;
    }
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const bool out = i >= n->n_in;
        const char letter = oct_signature_letter(out ? s->out : s->in, out ? i - n->n_in : i);
        any |= letter && set_type(g, out ? n->out[i - n->n_in] : n->in[i], type[letter - 'A']);
    }
    return any;
}

/* A value that is quantized with a float scale has the type of the scale. It may also be an integer according to ONNX,
 * but this does not occur. */
static bool infer_quantized(oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_signature *s = op && op->is_qdq ? oct_signature_find(n->domain, n->op, oct_node_opset(g, n)) : NULL;
    const char letter = s ? oct_signature_letter(s->in, 0) : 0;
    const oct_dtype scale = n->n_in > 1 ? value_type(g, n->in[1]) : OCT_UNDEFINED;
    return letter && s->set[letter - 'A'] >> scale & 1 && set_type(g, n->in[0], scale);
}

/* Takes over what a subgraph found about values that it captures. */
static bool take_back(oct_graph *g, const oct_graph *nested)
{
    bool any = false;
    for (size_t v = 0; v < nested->n_value; v++)
        if (nested->value[v].outer >= 0)
            any |= set_type(g, nested->value[v].outer, value_type(nested, (int)v));
    return any;
}

static bool infer_node(oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_graph *nested;
    bool any = any_open(g, n) && (infer_operands(g, n) || infer_quantized(g, id));
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        any |= take_back(g, nested);
    return any;
}

bool oct_infer_types(oct_graph *g)
{
    bool any = false, again = true;
    for (int round = 0; again && round < MOST_ROUNDS; round++) {
        again = false;
        for (size_t i = g->n_order; i-- > 0;)
            again |= infer_node(g, g->order[i]);
        for (size_t i = 0; i < g->n_order; i++)
            again |= infer_node(g, g->order[i]);
        any |= again;
    }
    return any;
}
