/* Valid nodes that a target does not load, or computes wrongly. */
#include "ops/op.h"
#include "ops/signature.h"
#include "passes/match.h"
#include "targets/stand_int.h"
#include "targets/target_int.h"

#include <string.h>

/* Whether the runtime, when it rewrites graphs, takes the node for one that only passes input 0 on. */
static bool passes_on(const oct_node *n)
{
    static const char *const ops[] = { "Identity", "Cast", "Reshape", "Dropout", "Squeeze", "Unsqueeze", "Expand" };
    bool any = false;
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        any |= !n->domain[0] && strcmp(n->op, ops[i]) == 0;
    return any;
}

static bool is_product(const oct_node *n)
{
    return (!n->domain[0] && strcmp(n->op, "MatMul") == 0) || strcmp(n->op, "FusedMatMul") == 0;
}

static bool same_ranks(const oct_graph *g, const oct_node *n)
{
    const int a = g->value[n->in[0]].shape.rank, b = g->value[n->in[1]].shape.rank;
    return a >= 0 && a == b;
}

/* Whether a product of operands with unequal ranks reads the value, directly or through nodes that pass it on. */
static bool reaches_product(const oct_graph *g, int value, int depth)
{
    enum { DEEPEST = 8 };
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_node *n = &g->node[v->uses[i].node];
        if (is_product(n) && !same_ranks(g, n))
            return true;
        if (depth < DEEPEST && passes_on(n) && v->uses[i].slot == 0 && n->out[0] >= 0 &&
            reaches_product(g, n->out[0], depth + 1))
            return true;
    }
    return false;
}

/* Whether it moves dimension 0 to the last place or the last but one, and keeps the order of all others. */
static bool moves_first(const oct_attr *perm)
{
    int64_t next = 1;
    if (!perm || perm->n < 3 || (perm->ints[perm->n - 1] != 0 && perm->ints[perm->n - 2] != 0))
        return false;
    for (int64_t i = 0; i < perm->n; i++)
        if (perm->ints[i] != 0 && perm->ints[i] != next++)
            return false;
    return true;
}

static bool turns_batch(const oct_graph *g, const oct_node *n)
{
    return !n->domain[0] && strcmp(n->op, "Transpose") == 0 && moves_first(oct_node_attr(n, "perm")) &&
           reaches_product(g, n->out[0], 0);
}

static bool is_mean_variance(const oct_graph *g, const oct_node *n)
{
    return !n->domain[0] && strcmp(n->op, "MeanVarianceNormalization") == 0;
}

static bool is_scatter_reduction(const oct_graph *g, const oct_node *n)
{
    return !n->domain[0] && (strcmp(n->op, "ScatterND") == 0 || strcmp(n->op, "ScatterElements") == 0) &&
           strcmp(oct_node_str(n, "reduction", "none"), "none") != 0;
}

static bool is_list(const oct_graph *g, int value)
{
    return value >= 0 && g->value[value].constant && g->value[value].constant->rank > 0;
}

/* AveragePool between quantizers, at least one of which has a list of one number as its scale. */
static bool is_pool_of_lists(const oct_graph *g, const oct_node *n)
{
    if (n->domain[0] || strcmp(n->op, "AveragePool") != 0 || n->in[0] < 0 || n->out[0] < 0)
        return false;
    const int p = g->value[n->in[0]].producer;
    const oct_value *y = &g->value[n->out[0]];
    const oct_node *from = p >= 0 ? &g->node[p] : NULL, *to = oct_value_used_once(y) ? &g->node[y->uses[0].node] : NULL;
    return from && to && strcmp(from->op, "DequantizeLinear") == 0 && strcmp(to->op, "QuantizeLinear") == 0 &&
           from->n_in > 1 && to->n_in > 1 && (is_list(g, from->in[1]) || is_list(g, to->in[1]));
}

/* Operators on integers whose weights have several scales. */
static bool is_qlinear_of_channels(const oct_graph *g, const oct_node *n)
{
    const bool layer = !n->domain[0] && (strcmp(n->op, "QLinearConv") == 0 || strcmp(n->op, "QLinearMatMul") == 0);
    const oct_tensor *scale = layer ? oct_node_constant(g, n, 4) : NULL;
    return scale && scale->count > 1;
}

static bool is_qlinear_unknown(const oct_graph *g, const oct_node *n)
{
    static const char *const ops[] = { "QGemm", "QLinearGlobalAveragePool", "NhwcMaxPool", "QLinearConv" };
    bool any = false;
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        any |= n->domain[0] && strcmp(n->op, ops[i]) == 0;
    return any;
}

/* The QuantizeLinear that is the only reader of a value, or NULL. */
static const oct_node *quantizer_of(const oct_graph *g, int value)
{
    const oct_node *q =
        value >= 0 && oct_value_used_once(&g->value[value]) ? &g->node[g->value[value].uses[0].node] : NULL;
    return q && oct_linear_is(g, q, "QuantizeLinear") ? q : NULL;
}

/* A maximum or minimum of real numbers that is quantized with a zero point other than 0, or after a Concat. */
static bool is_quantized_extreme(const oct_graph *g, const oct_node *n)
{
    const int p = g->value[n->in[0]].producer;
    if (n->domain[0] || (strcmp(n->op, "ReduceMax") != 0 && strcmp(n->op, "ReduceMin") != 0) ||
        g->value[n->in[0]].dtype != OCT_F32)
        return false;
    if (p >= 0 && strcmp(g->node[p].op, "DequantizeLinear") == 0)
        return false;
    const oct_node *q = quantizer_of(g, n->out[0]);
    const oct_node *joins =
        oct_value_used_once(&g->value[n->out[0]]) ? &g->node[g->value[n->out[0]].uses[0].node] : NULL;
    return q ? oct_linear_zero(g, q) != 0 : joins && oct_is_op(joins, "Concat") && quantizer_of(g, joins->out[0]);
}

/* The DequantizeLinear that makes an input of a node, or NULL. */
static const oct_node *dequantizer_of(const oct_graph *g, const oct_node *n, int slot)
{
    const int v = oct_input_at(n, slot), p = v >= 0 ? g->value[v].producer : -1;
    return p >= 0 && oct_linear_is(g, &g->node[p], "DequantizeLinear") ? &g->node[p] : NULL;
}

/* Gemm with an int32 bias whose scale is not the product of those of input and weights. */
static bool is_gemm_of_other_bias(const oct_graph *g, const oct_node *n)
{
    const oct_node *x = dequantizer_of(g, n, 0), *w = dequantizer_of(g, n, 1), *b = dequantizer_of(g, n, 2);
    return oct_is_op(n, "Gemm") && x && w && b && oct_linear_type(g, b) == OCT_S32 && !oct_linear_fits_bias(g, x, w, b);
}

/* Whether a Resize makes something smaller by cubic interpolation over few points (without antialias). */
static bool shrinks_cubic(const oct_graph *g, const oct_node *n)
{
    if (!oct_is_op(n, "Resize") || strcmp(oct_node_str(n, "mode", "nearest"), "cubic") != 0 ||
        oct_node_int(n, "antialias", 0))
        return false;
    const oct_tensor *scales = oct_node_constant(g, n, 2);
    const oct_shape *x = &g->value[n->in[0]].shape, *y = &g->value[n->out[0]].shape;
    bool less = false;
    for (int64_t i = 0; scales && scales->dtype == OCT_F32 && i < scales->count; i++)
        less |= ((const float *)scales->data)[i] < 1;
    for (int k = 0; k < x->rank && x->rank == y->rank; k++)
        less |= x->d[k].n >= 0 && y->d[k].n >= 0 && y->d[k].n < x->d[k].n;
    return less;
}

/* Whether a graph, or one around it, quantizes activations. */
static bool has_quantizer(const oct_graph *g)
{
    bool any = false;
    for (; g && !any; g = g->outer)
        for (size_t i = 0; i < g->n_order && !any; i++)
            any = strcmp(g->node[g->order[i]].op, "QuantizeLinear") == 0;
    return any;
}

/* What a walk along the readers of a value looks for. */
typedef struct conv_chain {
    bool shrunk;    /* a cubic Resize to less was passed */
    bool quantized; /* a quantizer was passed after that, or need not be */
} conv_chain;

/* Whether the nodes between a Conv on integers and the next one have such a Resize among them. Nothing else that needs
 * the channels where they are may be between. */
static bool reaches_conv(const oct_graph *g, int value, conv_chain c, int depth)
{
    enum { DEEPEST = 12 };
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_node *n = &g->node[v->uses[i].node];
        const oct_op *op = v->uses[i].slot >= 0 ? oct_op_of(g, v->uses[i].node) : NULL;
        if (c.shrunk && c.quantized && v->uses[i].slot == 0 && oct_is_op(n, "Conv"))
            return true;
        const bool stops = !op || op->quant == OCT_QUANT_WEIGHTED || (op->alias && !oct_is_op(n, "Identity"));
        conv_chain next = c;
        next.shrunk |= v->uses[i].slot == 0 && shrinks_cubic(g, n);
        next.quantized |= next.shrunk && oct_linear_is(g, n, "QuantizeLinear");
        for (int k = 0; k < n->n_out && !stops && depth < DEEPEST; k++)
            if (n->out[k] >= 0 && reaches_conv(g, n->out[k], next, depth + 1))
                return true;
    }
    return false;
}

/* A Conv with such a Resize and another Conv behind it. In a file that is quantized both are on integers. */
static bool is_conv_of_cubic(const oct_graph *g, const oct_node *n)
{
    return oct_is_op(n, "Conv") && n->out[0] >= 0 &&
           reaches_conv(g, n->out[0], (conv_chain){ .quantized = !has_quantizer(g) }, 0);
}

static bool is_state_layer(const oct_node *n)
{
    return !n->domain[0] && (strcmp(n->op, "LSTM") == 0 || strcmp(n->op, "GRU") == 0);
}

static const oct_node *maker_of(const oct_graph *g, int value)
{
    const int p = value >= 0 ? g->value[value].producer : -1;
    return p >= 0 && !g->node[p].domain[0] ? &g->node[p] : NULL;
}

/* Whether a value is a constant of 8 bits that a node converts to real numbers, with or without its scale. */
static bool is_made_real(const oct_graph *g, int value)
{
    const oct_node *n = maker_of(g, value);
    const bool passes =
        n && oct_input_at(n, 0) >= 0 && (strcmp(n->op, "DequantizeLinear") == 0 || strcmp(n->op, "Cast") == 0);
    const oct_tensor *from = passes ? g->value[n->in[0]].constant : NULL;
    return from && (from->dtype == OCT_S8 || from->dtype == OCT_U8);
}

static bool is_dequantized(const oct_graph *g, int value)
{
    const oct_node *n = maker_of(g, value);
    return is_made_real(g, value) ||
           (n && strcmp(n->op, "Mul") == 0 && n->n_in == 2 && (is_made_real(g, n->in[0]) || is_made_real(g, n->in[1])));
}

static bool is_dequantized_state(const oct_graph *g, const oct_node *n)
{
    return is_state_layer(n) && n->n_in > 2 && (is_dequantized(g, n->in[1]) || is_dequantized(g, n->in[2])) &&
           has_quantizer(g);
}

static bool may_be_dequantized_state(const oct_graph *g, const oct_node *n)
{
    return is_state_layer(n);
}

static const struct {
    const char *name, *why;
    bool (*is)(const oct_graph *g, const oct_node *n);
    bool half;    /* it applies only to nodes that compute on 16-bit floats */
    bool integer; /* it applies only to nodes that run on integers */
    bool (*stored)(
        const oct_graph *g,
        const oct_node *n); /* whether the node would be such a case with weights stored in 8 bits; NULL: never */
} all[] = {
#define OCT_TRAP(name, versions, what, why, is) { name, why, is, true, false, NULL },
#define OCT_TRAP_AS_IT_STANDS(name, versions, what, why, is) { name, why, is, false, false, NULL },
#define OCT_TRAP_ON_INTEGERS(name, versions, what, why, is) { name, why, is, false, true, NULL },
#define OCT_TRAP_STORED(name, versions, what, why, is, stored) { name, why, is, false, false, stored },
#include "targets/traps.inc"
#undef OCT_TRAP
#undef OCT_TRAP_AS_IT_STANDS
#undef OCT_TRAP_ON_INTEGERS
#undef OCT_TRAP_STORED
};

const char *oct_target_trap_name(size_t i)
{
    return i < OCT_COUNT(all) ? all[i].name : NULL;
}

const char *oct_target_trap(const oct_target *t, const oct_graph *g, int node)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (all[i].half && t->traps >> i & 1 && all[i].is(g, &g->node[node]))
            return all[i].why;
    return NULL;
}

const char *oct_target_no_static(const oct_target *t, const oct_graph *g, int node)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (all[i].integer && t->traps >> i & 1 && all[i].is(g, &g->node[node]))
            return all[i].why;
    return NULL;
}

const char *oct_target_no_stored(const oct_target *t, const oct_graph *g, int node)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (all[i].stored && t->traps >> i & 1 && all[i].stored(g, &g->node[node]))
            return all[i].why;
    return NULL;
}

/* Whether runtimes may know an operator: it is in ONNX's own domain, or in a domain of ONNX or of ONNX Runtime, whose
 * operators are not all listed here. */
static bool may_be_known(const oct_graph *g, const oct_node *n)
{
    return n->domain[0] ? strncmp(n->domain, "ai.onnx", 7) == 0 || strncmp(n->domain, "com.microsoft", 13) == 0
                        : oct_signature_find("", n->op, oct_node_opset(g, n)) != NULL;
}

const char *oct_target_lacks(const oct_target *t, const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    if (n->domain[0] && t->rules.onnx_alone)
        return "the target has only operators of ONNX's own domain";
    if (oct_op_of(g, node))
        return NULL;
    return t->rules.runs_all && !t->rules.in_parts ? "Octet does not have this operator"
           : may_be_known(g, n)                    ? NULL
                                                   : "the operator is unknown: it is neither ONNX's nor ONNX Runtime's";
}

const char *oct_target_refuses(const oct_target *t, const oct_graph *g, int node, bool integer)
{
    const oct_node *n = &g->node[node];
    const oct_dtype type = oct_input_at(n, 0) >= 0 ? g->value[n->in[0]].dtype : OCT_UNDEFINED;
    if (n->n_in < 1 || n->n_out < 1 || n->in[0] < 0 || n->out[0] < 0)
        return NULL;
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (t->traps >> i & 1 && (!all[i].half || type == OCT_F16) && (!all[i].integer || integer) && all[i].is(g, n))
            return all[i].why;
    return NULL;
}
