/* Targets that recognize operators on integers by the quantizers around them, as ONNX Runtime does: DequantizeLinear
 * before every input and QuantizeLinear after every output, with types and parameters that the operator on integers
 * supports. */
#include "targets/stand_int.h"

#include "forms/qlinear.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "passes/match.h"
#include "targets/target_int.h"

#include <string.h>

/* The quantizers beside each value; NULL: there is none. */
typedef struct finder {
    const oct_target *t;
    const oct_graph *g;
    const oct_node **from; /* [n_value]: the node whose parameters dequantize the value; the target may have moved it
                              there across data movement */
    const oct_node **to;   /* [n_value]: the QuantizeLinear that is the value's only reader, also if the target moved it
                              there; or the first of several alike */
    bool *found;           /* [n_value]: `to` is known */
    oct_stand *stand;
} finder;

/* ---- parameters ---- */

static bool is_single(const oct_graph *g, const oct_node *q)
{
    return oct_linear_constant(g, q->in[1])->count == 1;
}

static bool same_parameters(const oct_graph *g, const oct_node *a, const oct_node *b)
{
    return is_single(g, a) && is_single(g, b) && oct_linear_scale(g, a, 0) == oct_linear_scale(g, b, 0) &&
           oct_linear_zero(g, a) == oct_linear_zero(g, b) && oct_linear_type(g, a) == oct_linear_type(g, b);
}

/* ---- quantizers beside values ---- */

static const oct_node *only_reader(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    return oct_value_used_once(v) && v->uses[0].slot == 0 ? &g->node[v->uses[0].node] : NULL;
}

static const oct_target_op *line_of(const oct_target *t, const oct_node *n)
{
    return n->domain[0] ? NULL : oct_target_entry(t, n->op);
}

/* Whether ONNX allows bytes as input of the operator in the node's opset. */
static bool takes_bytes(const oct_graph *g, const oct_node *n)
{
    const oct_signature *s = oct_signature_find(n->domain, n->op, oct_node_opset(g, n));
    const char letter = s ? oct_signature_letter(s->in, 0) : 0;
    const uint32_t set = letter ? s->set[letter - 'A'] : 0;
    return !set || set >> OCT_U8 & 1;
}

/* Whether the target moves quantizers across the node. */
static bool is_crossed(const finder *f, const oct_node *n)
{
    const oct_target_op *e = line_of(f->t, n);
    return e && e->rules.crossed && n->n_out >= 1 && n->out[0] >= 0 && n->in[0] >= 0 && takes_bytes(f->g, n);
}

/* The QuantizeLinear that quantizes a value for all its readers, in targets that have one for each reader: all readers
 * are quantizers, and have the same parameters. */
static const oct_node *common_quantizer(const finder *f, int value)
{
    const oct_value *v = &f->g->value[value];
    const oct_node *first = v->n_uses && !v->is_output && v->uses[0].slot == 0 ? &f->g->node[v->uses[0].node] : NULL;
    bool all = first && f->t->rules.own_quantizers;
    for (size_t i = 0; i < v->n_uses && all; i++) {
        const oct_node *q = &f->g->node[v->uses[i].node];
        all = v->uses[i].slot == 0 && oct_linear_is(f->g, q, "QuantizeLinear") && same_parameters(f->g, first, q);
    }
    return all ? first : NULL;
}

static const oct_node *quantizer_behind(finder *f, int value)
{
    const oct_node *n = only_reader(f->g, value);
    if (f->found[value])
        return f->to[value];
    f->found[value] =
        true; /* found from the end of the graph on, without recursion, because graphs in hostile files may be deep */
    if (!n)
        f->to[value] = common_quantizer(f, value);
    else if (oct_linear_is(f->g, n, "QuantizeLinear"))
        f->to[value] = n;
    else if (is_crossed(f, n) && f->found[n->out[0]] && f->to[n->out[0]] && is_single(f->g, f->to[n->out[0]]))
        f->to[value] = f->to[n->out[0]];
    return f->to[value];
}

/* Finds quantizers from the end of the graph on, because they move backwards; then dequantizers from its start on. */
static void find(finder *f)
{
    const oct_graph *g = f->g;
    for (size_t i = g->n_order; i-- > 0;) {
        const oct_node *n = &g->node[g->order[i]];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                quantizer_behind(f, n->out[k]);
    }
    for (size_t i = 0; i < g->n_input; i++)
        quantizer_behind(f, g->input[i]);
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        if (oct_linear_is(g, n, "DequantizeLinear"))
            f->from[n->out[0]] = n;
        if (!is_crossed(f, n))
            continue;
        if (f->to[n->out[0]] && f->to[n->in[0]] == f->to[n->out[0]] && !f->from[n->in[0]])
            f->from[n->in[0]] = f->to[n->in[0]]; /* the target moved the quantizer before the node, and the node reads
                                                    what it quantizes */
        if (f->from[n->in[0]] && is_single(g, f->from[n->in[0]])) {
            const oct_node *q = only_reader(g, n->out[0]);
            if (!q || strcmp(q->op, "QuantizeLinear") != 0)
                f->from[n->out[0]] = f->from[n->in[0]];
        }
    }
}

/* ---- what follows a node ---- */

/* The clamp that is the only reader of a value and has only one reader itself; -1: none. */
static int clamp_behind(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    const int id = oct_value_used_once(v) && v->uses[0].slot == 0 ? v->uses[0].node : -1;
    const oct_op *op = id >= 0 ? oct_op_of(g, id) : NULL;
    return op && op->clamp && oct_value_used_once(&g->value[g->node[id].out[0]]) ? id : -1;
}

/* Whether the range of the quantizer lies within that of the clamp. */
static bool covers(const oct_graph *g, const oct_node *q, int clamp)
{
    const oct_dtype t = oct_linear_type(g, q);
    const int levels = oct_dtype_bits(t) < 16 ? 1 << oct_dtype_bits(t) : 1 << 16,
              least = t == OCT_S8 || t == OCT_S16 ? -levels / 2 : 0, zero = oct_linear_zero(g, q);
    const float s = oct_linear_scale(g, q, 0);
    float lo, hi;
    return is_single(g, q) && oct_op_clamp(g, clamp, &lo, &hi) && s * (float)(least - zero) >= lo &&
           s * (float)(least + levels - 1 - zero) <= hi;
}

enum { CLAMPS = 2 }; /* the most consecutive clamps that a quantizer makes redundant: ONNX Runtime keeps a third one */

/* The clamp that belongs to an operator, as its line says, and alone reads its result; -1: there is none. */
static int own_clamp(const finder *f, const oct_target_op *e, int value)
{
    const oct_value *v = &f->g->value[value];
    const int id = e && e->rules.takes_clamp && oct_value_used_once(v) && v->uses[0].slot == 0 ? v->uses[0].node : -1;
    const oct_op *op = id >= 0 ? oct_op_of(f->g, id) : NULL;
    return op && op->clamp ? id : -1;
}

/* The quantizer after output `value` of an operator, or after the clamps that follow it; NULL: there is none. *why is
 * set if a clamp is the reason. */
static const oct_node *output_quantizer(finder *f, const oct_target_op *e, int value, const char **why)
{
    const int own = own_clamp(f, e, value);
    if (own >= 0)
        return f->to[f->g->node[own].out[0]];
    int clamp[CLAMPS], n = 0;
    while (n < CLAMPS && (clamp[n] = clamp_behind(f->g, value)) >= 0)
        value = f->g->node[clamp[n++]].out[0];
    const oct_node *q = f->to[value];
    bool all = q != NULL;
    for (int i = 0; i < n && all; i++)
        all = covers(f->g, q, clamp[i]);
    if (n && !all) {
        *why = q ? "the range of its result goes beyond the limits of the Relu or Clip behind it"
                 : "a Relu or Clip without a quantizer stands behind it";
        return NULL;
    }
    return q;
}

/* Whether a value is read by a quantizer, but not only by that. */
static bool is_shared(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses && !oct_value_used_once(v); i++)
        if (v->uses[i].slot == 0 && strcmp(g->node[v->uses[i].node].op, "QuantizeLinear") == 0)
            return true;
    return false;
}

/* ---- rules ---- */

static bool read_once(const oct_graph *g, int value)
{
    return g->value[value].n_uses + g->value[value].is_output <= 1;
}

/* Whether a value that `from` dequantizes has only one reader, and so have its quantized values: quantizer, dequantizer
 * and reader form a chain. If the value is not the result of `from`, the target inserts a new pair before it, and only
 * the value's readers count. */
static bool is_lone_input(const oct_graph *g, const oct_node *from, int value)
{
    const bool own = from->out[0] == value && strcmp(from->op, "DequantizeLinear") == 0;
    const int codes = own ? from->in[0] : -1;
    return read_once(g, value) && (!own || (g->value[codes].producer >= 0 && read_once(g, codes)));
}

/* Whether the only reader of a quantizer is a DequantizeLinear with only one reader. */
static bool is_lone_output(const oct_graph *g, const oct_node *to)
{
    const oct_node *d = only_reader(g, to->out[0]);
    return d && oct_linear_is(g, d, "DequantizeLinear") && read_once(g, d->out[0]);
}

/* The row of oct_target.takes for a type of activations; -1: none. lone: quantizer, dequantizer and reader form a
 * chain, so that s8 may become u8. */
static int row_of(const finder *f, oct_dtype type, bool lone)
{
    const bool becomes_u8 = type == OCT_S8 && f->t->rules.signs_free && lone;
    return type == OCT_U8 || becomes_u8 ? 0 : type == OCT_S8 ? 1 : type == OCT_U16 ? 2 : type == OCT_S16 ? 3 : -1;
}

/* The row of a value that is dequantized. */
static int input_row(const finder *f, int value)
{
    return row_of(f, oct_linear_type(f->g, f->from[value]), is_lone_input(f->g, f->from[value], value));
}

static int output_row(const finder *f, const oct_node *to)
{
    return row_of(f, oct_linear_type(f->g, to), is_lone_output(f->g, to));
}

/* Why two operands (inputs, or an input and the output) do not agree in type, or one has an unsuitable scale; NULL:
 * they fit. */
static const char *unequal(const finder *f, const oct_target_op *e, const oct_node *first, int row,
                           const oct_node *other, int other_row)
{
    const bool bytes = f->t->takes[0][0] || f->t->takes[0][1] || f->t->takes[1][0] || f->t->takes[1][1];
    if (row < 0 || (row > 1) == bytes || row != other_row)
        return bytes ? "the target wants its inputs and results in one 8-bit type"
                     : "the target wants its inputs and results in one 16-bit type";
    if (!is_single(f->g, first) || !is_single(f->g, other))
        return "a scale is not one number";
    if (e && e->rules.scalars &&
        (oct_linear_constant(f->g, first->in[1])->rank || oct_linear_constant(f->g, other->in[1])->rank))
        return "a scale is a list of one number, where the target wants a number";
    return NULL;
}

/* Why the bias of a product does not fit. NULL: there is none, or the target adds real numbers and it is not quantized,
 * or its scale is the product of the other scales (unless the target accepts any), or it is a constant that the target
 * quantizes (rounds). */
static const char *bad_bias(const finder *f, const oct_target_op *e, const oct_node *n, int slot, bool rounds)
{
    const int b = oct_input_at(n, slot);
    const oct_node *d = b >= 0 ? f->from[b] : NULL;
    if (b < 0 || (!d && f->t->rules.biases == OCT_BIASES_FLOAT))
        return NULL;
    if (d && f->t->rules.biases == OCT_BIASES_FLOAT)
        return "its bias is quantized, and the target adds float biases";
    if (!d)
        return rounds && oct_linear_constant(f->g, b) ? NULL : "its bias is not quantized";
    if (f->t->rules.biases == OCT_BIASES_INT8 && oct_linear_type(f->g, d) == OCT_S8)
        return NULL;
    if (oct_linear_type(f->g, d) != OCT_S32)
        return "its bias is not of int32";
    const oct_node *w = f->from[n->in[1]];
    return !w || e->rules.any_bias || oct_linear_fits_bias(f->g, f->from[n->in[0]], w, d)
               ? NULL
               : "the scale of its bias is not the product of those of input and weights";
}

/* Whether the operator can return its sums as real numbers, so that it runs on integers whatever follows it. */
static bool real_results(const oct_target_op *e)
{
    return !e->rules.needs_output && !e->rules.clamp_needs_output;
}

/* Why a product runs in float; NULL: it runs on integers. gemm: it becomes a Gemm together with a sum. constants: the
 * target then quantizes its float weights, too. */
static const char *product(finder *f, const oct_target_op *e, const oct_node *n, int bias, const oct_node *to,
                           bool clamped, bool gemm, bool constants)
{
    const oct_node *x = f->from[n->in[0]], *w = oct_input_at(n, 1) >= 0 ? f->from[n->in[1]] : NULL;
    const bool rounds = (e->rules.rounds || gemm) && (to || real_results(e));
    if (!x)
        return "the input is not quantized";
    if (!w && !(rounds && (constants || !gemm) && oct_linear_constant(f->g, n->in[1])))
        return "the weights are not quantized";
    if (e->rules.needs_output && !to && !clamped)
        return "nothing quantizes the result";
    const int a = input_row(f, n->in[0]);
    const oct_dtype b = w ? oct_linear_type(f->g, w) : OCT_S8;
    if (a < 0 || (b != OCT_U8 && b != OCT_S8) || !f->t->takes[a][b == OCT_S8])
        return "the target does not multiply these types";
    if (a == 1 && f->t->rules.signs_free && !e->rules.signs && !gemm)
        return "its activations stay s8, because their quantizer has several readers, and the target takes u8";
    if (to && !real_results(e) && a != output_row(f, to))
        return "its result has another type than its input";
    if (!is_single(f->g, x))
        return "a scale of the input is not one number";
    if (w && e->rules.per_tensor && !is_single(f->g, w))
        return "the target takes one scale for all its weights";
    return bias ? bad_bias(f, e, n, bias, rounds) : NULL;
}

static const char *moves(finder *f, const oct_node *n)
{
    const oct_node *from = f->from[n->in[0]];
    bool crossed = is_crossed(f, n);
    if (!from)
        return "the input is not quantized";
    if (!takes_bytes(f->g, n))
        return "the operator takes no bytes in this opset";
    for (int k = 0; k < n->n_out; k++) {
        const oct_node *to = n->out[k] >= 0 ? f->to[n->out[k]] : NULL;
        if (n->out[k] < 0)
            continue;
        if (!to && crossed && k == 0 && f->from[n->out[0]]) {
            if (input_row(f, n->in[0]) != input_row(f, n->out[0]))
                return "its input stays s8, because its quantizer has several readers, and its result becomes u8";
            continue;
        }
        if (!to)
            return "nothing quantizes the result";
        if (!same_parameters(f->g, from, to) || input_row(f, n->in[0]) != output_row(f, to))
            return "scale, zero point or type of its result are not those of its input";
    }
    return NULL;
}

/* Why an operator that needs all real inputs and the output in one type runs in float; NULL: it runs on integers. */
static const char *functions(finder *f, const oct_target_op *e, const oct_node *n, const oct_node *to)
{
    const oct_node *first = NULL;
    const char *why = NULL;
    int row = -1;
    for (int i = 0; i < n->n_in && !why; i++) {
        if (n->in[i] < 0 || f->g->value[n->in[i]].dtype != OCT_F32)
            continue;
        const oct_node *from = f->from[n->in[i]];
        if (!from)
            return "some inputs are not quantized";
        row = first ? row : input_row(f, n->in[i]);
        first = first ? first : from;
        why = unequal(f, e, first, row, from, input_row(f, n->in[i]));
    }
    if (!first)
        return "the input is not quantized";
    return why ? why : to ? unequal(f, e, first, row, to, output_row(f, to)) : "nothing quantizes the result";
}

/* ---- nodes ---- */

/* Whether the target supports the form in which scales of weights are stored: one number, one for each column (axis 1),
 * or blocks along the columns (axis 0). A negative axis is not supported. */
static bool has_block_scales(const oct_graph *g, const oct_node *w)
{
    const oct_tensor *s = oct_linear_constant(g, w->in[1]);
    const int64_t axis = oct_node_int(w, "axis", 1), columns = oct_linear_constant(g, w->in[0])->dims[1];
    if (oct_node_int(w, "block_size", 0))
        return axis == 0;
    return s->rank == 0 || (s->rank == 1 && s->count == columns && axis == 1);
}

/* Whether only the weights of a product are quantized, in a form in which the target multiplies them by real
 * numbers. */
static bool is_blocks(const finder *f, const oct_node *n, const oct_op *op)
{
    const oct_node *w = oct_input_at(n, 1) >= 0 ? f->from[n->in[1]] : NULL;
    const char *transposed = op->weights.transposed;
    return op->weights.blocks && w && !f->from[n->in[0]] && !(transposed && oct_node_int(n, transposed, 0)) &&
           oct_linear_constant(f->g, w->in[0]) && f->g->value[w->in[0]].shape.rank == 2 && has_block_scales(f->g, w) &&
           oct_target_lists(f->t, n->op, OCT_TARGET_WEIGHT_ONLY) && !f->to[n->out[0]];
}

static bool same_dim(const oct_dim *a, const oct_dim *b)
{
    return a->n >= 0 ? a->n == b->n : b->n < 0 && a->sym && b->sym && strcmp(a->sym, b->sym) == 0;
}

/* The sum that is the only reader of a product of matrices and becomes one operator with it before the target looks for
 * quantizers; -1: none. *vector: the other summand is a constant row. */
static int joined_sum(const finder *f, const oct_target_op *e, const oct_node *n, bool *vector)
{
    const oct_graph *g = f->g;
    const oct_value *v = &g->value[n->out[0]];
    const int id = e->rules.joins_sum && oct_value_used_once(v) ? v->uses[0].node : -1;
    const oct_op *op = id >= 0 ? oct_op_of(g, id) : NULL;
    const int other = op && op->adds && g->node[id].n_in == 2 ? oct_other_input(&g->node[id], n->out[0]) : -1;
    const oct_shape *a = &g->value[n->in[0]].shape, *b = &g->value[n->in[1]].shape,
                    *c = other >= 0 ? &g->value[other].shape : NULL;
    if (!c || g->value[other].dtype != OCT_F32 || a->rank < 1 || b->rank != 2 ||
        (c->rank != 1 && (c->rank != 2 || a->rank != 2)))
        return -1;
    *vector = c->rank == 1 && oct_linear_constant(g, other);
    if (!same_dim(&c->d[c->rank - 1], &b->d[1]))
        return -1;
    if (real_results(e))
        return *vector ? id : -1;
    if (a->rank != 2)
        return oct_shape_known(a, NULL) && oct_shape_known(b, NULL) ? id : -1;
    return c->rank == 1 || c->d[0].n == 1 || same_dim(&c->d[0], &a->d[0]) ? id : -1;
}

static void settle(finder *f, int id, const char *why)
{
    const oct_node *n = &f->g->node[id];
    const int clamp = own_clamp(f, line_of(f->t, n), n->out[0]);
    f->stand[id].kind = why ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER;
    f->stand[id].why = why ? why : "quantized in the model";
    if (clamp >= 0 && !why)
        f->stand[clamp] = (oct_stand){ OCT_STANDS_INTEGER, "part of the layer before it", id };
}

static void judge_product(finder *f, const oct_target_op *e, int id, const oct_op *op)
{
    const oct_node *n = &f->g->node[id];
    bool vector = false;
    const char *why = NULL;
    const int sum = joined_sum(f, e, n, &vector), end = sum >= 0 ? sum : id, value = f->g->node[end].out[0];
    const oct_node *to = output_quantizer(f, e, value, &why);
    const bool clamped = why != NULL;
    if (!clamped && is_blocks(f, n, op)) {
        f->stand[id].kind = OCT_STANDS_BLOCKS;
        f->stand[id].why = "its weights are stored in few bits";
        return;
    }
    if (clamped && real_results(e))
        why = NULL;
    if (!why && !to && is_shared(f->g, value) && !real_results(e))
        why = "its result has other readers beside the quantizer";
    if (!why && sum >= 0 && (!vector || (!to && !real_results(e))))
        why = vector ? "the sum with its bias is not quantized" : "what is added to it is not a constant row";
    /* With more than two dimensions, a Reshape follows that Gemm. A quantizer moves across the Reshape, but not across
     * a Relu or Clip. */
    const bool constants = sum >= 0 && to && (f->g->value[n->in[0]].shape.rank == 2 || to->in[0] == value);
    const char *other = product(f, e, n, op->weights.bias, to, clamped, sum >= 0, constants);
    settle(f, id, other ? other : why);
    if (!other && !why && !f->from[n->in[1]])
        f->stand[id].why = "the target quantizes its float weights when it loads the model, with one scale for all";
    if (sum >= 0) {
        f->stand[end] = f->stand[id];
        f->stand[end].with = id;
    }
}

/* A bias that is added after the result of MatMulInteger is scaled becomes part of that operator. */
static void join_bias(finder *f, int id)
{
    static const char *const path[] = { "Cast", "Mul", "Add" };
    const oct_graph *g = f->g;
    const oct_op *op = oct_op_of(g, id);
    int v = g->node[id].n_out > 0 ? g->node[id].out[0] : -1, at = id;
    if (!op || !op->scheme || strcmp(op->type, "MatMulInteger") != 0)
        return;
    for (size_t i = 0; i < OCT_COUNT(path); i++) {
        at = v >= 0 && oct_value_used_once(&g->value[v]) ? g->value[v].uses[0].node : -1;
        if (at < 0 || !oct_is_op(&g->node[at], path[i]))
            return;
        const int other = i == 2 ? oct_other_input(&g->node[at], v) : -1;
        const oct_tensor *row = other >= 0 ? oct_linear_constant(g, other) : NULL;
        const oct_shape *y = &g->value[v].shape;
        if (i == 2 &&
            (!row || row->rank != 1 || (y->rank > 0 && y->d[y->rank - 1].n >= 0 && y->d[y->rank - 1].n != row->count)))
            return;
        v = g->node[at].out[0];
    }
    f->stand[at] = (oct_stand){ OCT_STANDS_INTEGER, "part of the product before it", id };
}

/* ---- targets that want quantizers on inputs alone ---- */

/* Whether additions are computed in the layer before them, and clamps with that. */
static bool fuses_forward(const oct_target *t)
{
    for (size_t i = 0; i < t->n_op; i++)
        if (t->op[i].forms & OCT_TARGET_RESIDUAL)
            return true;
    return false;
}

/* The layer on integers that alone makes a value, possibly with a sum behind it, and whose result nothing else reads;
 * -1: there is none. sums: such a sum counts. */
static int layer_before(const finder *f, int value, bool sums)
{
    const oct_value *v = value >= 0 ? &f->g->value[value] : NULL;
    const int p = v && oct_value_used_once(v) ? v->producer : -1;
    const oct_op *op = p >= 0 ? oct_op_of(f->g, p) : NULL;
    if (!op || f->stand[p].kind != OCT_STANDS_INTEGER || (op->quant != OCT_QUANT_WEIGHTED && !(sums && op->adds)))
        return -1;
    return op->adds ? f->stand[p].with : p;
}

/* A sum or a clamp that such a target computes in the layer before it. Whether it is one is the result; if so, the node
 * is judged. */
static bool is_fused_forward(finder *f, int id, const oct_op *op)
{
    const oct_node *n = &f->g->node[id];
    int layer = op->clamp ? layer_before(f, n->in[0], true) : -1;
    for (int i = 0; i < 2 && layer < 0 && n->n_in == 2 && oct_target_runs(f->t, f->g, id, OCT_TARGET_RESIDUAL, NULL);
         i++)
        if (n->in[1 - i] >= 0 && f->from[n->in[1 - i]])
            layer = layer_before(f, n->in[i], false);
    if (layer < 0)
        return false;
    f->stand[id] = (oct_stand){ OCT_STANDS_INTEGER,
                                op->clamp ? "part of the layer before it" : "added up in the layer before it", layer };
    return true;
}

/* Why a recurrent layer between quantizers is not computed on integers by a target that has such kernels; NULL: it is.
 */
static const char *recurrent(const finder *f, const oct_node *n)
{
    for (int i = 0; i < 3; i++)
        if (oct_input_at(n, i) < 0 || !f->from[n->in[i]])
            return "its input or its matrices are not quantized";
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && f->g->value[n->out[k]].n_uses && !f->to[n->out[k]])
            return "a result of it is not quantized";
    return NULL;
}

static void judge(finder *f, int id)
{
    const oct_node *n = &f->g->node[id];
    const oct_op *op = oct_op_of(f->g, id);
    const oct_target_op *e = op ? line_of(f->t, n) : NULL;
    const char *why = NULL;
    if (f->stand[id].kind == OCT_STANDS_INTEGER)
        join_bias(f, id);
    if (f->stand[id].kind != OCT_STANDS_FLOAT || f->stand[id].with >= 0 || !op || n->n_in < 1 || n->in[0] < 0 ||
        n->n_out < 1 || n->out[0] < 0)
        return;
    if ((op->clamp || op->adds) && fuses_forward(f->t) && is_fused_forward(f, id, op))
        return;
    if (op->quant == OCT_QUANT_RECURRENT && oct_target_runs(f->t, f->g, id, OCT_TARGET_ROUNDED, NULL)) {
        settle(f, id, recurrent(f, n));
        return;
    }
    if (!e || !(e->forms & OCT_TARGET_STATIC || e->kept) ||
        (op->integer && !e->kept && !oct_target_runs(f->t, f->g, id, OCT_TARGET_STATIC, &why))) {
        f->stand[id].why = why ? why : "the target runs this operator in float";
        return;
    }
    if (op->quant == OCT_QUANT_WEIGHTED) {
        judge_product(f, e, id, op);
        return;
    }
    if (op->quant == OCT_QUANT_SAME) {
        settle(f, id, moves(f, n));
        return;
    }
    const oct_node *to = output_quantizer(f, e, n->out[0], &why);
    const char *other = functions(f, e, n, to);
    settle(f, id, why ? why : other);
}

oct_status oct_target_stand_around(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand,
                                   oct_err *err)
{
    finder f = { .t = t, .g = g, .stand = stand };
    f.from = oct_arena_calloc(arena, g->n_value + 1, sizeof *f.from);
    f.to = oct_arena_calloc(arena, g->n_value + 1, sizeof *f.to);
    f.found = oct_arena_calloc(arena, g->n_value + 1, sizeof *f.found);
    if (!f.from || !f.to || !f.found)
        return oct_nomem(err);
    find(&f);
    for (size_t i = 0; i < g->n_order; i++)
        judge(&f, g->order[i]);
    return OCT_OK;
}
