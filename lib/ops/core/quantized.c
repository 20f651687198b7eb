/* How nodes compute whose values carry quantization. */
#include "ops/core/quantized.h"

#include "ops/core/block_matrix.h"
#include "ops/core/small.h"

#include <string.h>

oct_border oct_border_of(const oct_graph *g, const oct_node *n)
{
    if (n->n_in != 1 || n->n_out != 1 || n->in[0] < 0 || n->out[0] < 0)
        return OCT_NO_BORDER;
    const oct_quant *from = g->value[n->in[0]].quant, *to = g->value[n->out[0]].quant;
    const bool known = to && to->n > 0;
    if (oct_is_op(n, "QuantizeLinear"))
        return known ? OCT_BORDER_ROUNDS : from && from->n ? OCT_BORDER_NUMBERS : OCT_NO_BORDER;
    if (oct_is_op(n, "DequantizeLinear"))
        return known ? OCT_BORDER_QVALS : OCT_NO_BORDER;
    return to && !known && oct_is_op(n, "DynamicQuantizeLinear") ? OCT_BORDER_DYNAMIC : OCT_NO_BORDER;
}

const oct_op *oct_op_between(bool to_qvals)
{
    return oct_op_find("", to_qvals ? "QuantizeLinear" : "DequantizeLinear", 21);
}

int oct_clamp_behind(const oct_graph *g, int value, oct_epilogue *e)
{
    const oct_value *v = &g->value[value];
    float lo, hi;
    /* A value that is rounded is rounded before it is clamped. */
    if (v->quant || !oct_value_used_once(v) || v->uses[0].slot != 0 || !oct_op_clamp(g, v->uses[0].node, &lo, &hi))
        return -1;
    *e = (oct_epilogue){ true, lo, hi };
    return v->uses[0].node;
}

/* ---- quantized values ---- */

/* A step as integer() is asked about it. */
typedef struct question {
    oct_step s;
    oct_operand *operand; /* of inputs, then of outputs */
} question;

/* rank: assumed if the rank of the value is unknown before the model runs; negative: none is assumed. */
static bool describe(const oct_graph *g, int value, int rank, oct_operand *t)
{
    const oct_value *v = &g->value[value];
    const oct_tensor *data = v->quant && v->quant->qvals ? v->quant->qvals : v->constant;
    *t = (oct_operand){
        .dtype = v->quant ? v->quant->dtype : v->dtype, .rank = v->shape.rank, .count = 1, .q = v->quant, .value = value
    };
    if (t->rank < 0)
        t->rank = rank;
    if (t->rank < 0 || t->rank > OCT_MAX_RANK)
        return false;
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = i >= v->shape.rank || v->shape.d[i].n < 0 ? 1 : v->shape.d[i].n;
    t->constant = data != NULL;
    t->data = data ? (void *)(uintptr_t)data->data : NULL;
    return oct_count(t->dims, t->rank, &t->count);
}

/* integer() decides which inputs must be quantized. Only products may have real outputs, whose sums are more precise
 * than quantized values. */
static bool runs_on_qvals(const oct_graph *g, int node, question *a)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = a->s.op;
    /* Elements of sequences have shapes that nothing says; those of a product have the rank of its weights, or one that
     * does not matter. */
    const int rank = op->quant == OCT_QUANT_WEIGHTED && oct_input_at(n, 1) >= 0 ? g->value[n->in[1]].shape.rank : -1;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        oct_operand **slot = i < n->n_in ? &a->s.in[i] : &a->s.out[i - n->n_in];
        int v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        const int clamp = i == n->n_in && v >= 0 && op->fuses_clamp ? oct_clamp_behind(g, v, &a->s.epilogue) : -1;
        if (v < 0)
            continue;
        if (!describe(g, clamp >= 0 ? g->node[clamp].out[0] : v, rank, &a->operand[i]))
            return false;
        *slot = &a->operand[i];
        if (i >= n->n_in && !(*slot)->q && op->quant != OCT_QUANT_WEIGHTED)
            return false;
    }
    return op->integer(&a->s);
}

static oct_status ask(const oct_graph *g, int node, const oct_op *op, bool *yes, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const size_t ends = (size_t)n->n_in + (size_t)n->n_out;
    question a = { { .op = op, .node = n, .opset = oct_node_opset(g, n), .n_in = n->n_in, .n_out = n->n_out }, NULL };
    a.s.in = oct_calloc(ends + 1, sizeof *a.s.in);
    a.operand = oct_calloc(ends + 1, sizeof *a.operand);
    const bool made = a.s.in && a.operand;
    a.s.out = a.s.in ? a.s.in + n->n_in : NULL;
    *yes = made && runs_on_qvals(g, node, &a);
    oct_free(a.s.in);
    oct_free(a.operand);
    return made ? OCT_OK : oct_nomem(err);
}

/* ---- dynamic ---- */

static bool is_byte(const oct_quant *q)
{
    return q && (q->dtype == OCT_U8 || q->dtype == OCT_S8);
}

/* A * B + C with nothing else to it. */
static bool is_plain_gemm(const oct_node *n)
{
    return !oct_node_int(n, "transA", 0) && oct_node_float(n, "alpha", 1.0f) == 1.0f &&
           oct_node_float(n, "beta", 1.0f) == 1.0f;
}

bool oct_is_row(const oct_graph *g, int value, int64_t columns, int rank)
{
    const oct_tensor *t = value >= 0 && !g->value[value].quant ? g->value[value].constant : NULL;
    return t && t->data && t->dtype == OCT_F32 && t->rank >= 1 && t->rank <= rank && t->count == columns &&
           t->dims[t->rank - 1] == columns;
}

static bool is_dynamic_product(const oct_graph *g, const oct_node *n)
{
    const oct_value *w = &g->value[n->in[1]];
    const bool gemm = oct_is_op(n, "Gemm"), transposed = gemm && oct_node_int(n, "transB", 0);
    const int rank = w->shape.rank, axis = transposed ? 0 : rank - 1;
    const oct_quant *q = w->quant;
    if ((!gemm && !oct_is_op(n, "MatMul")) || !is_byte(q) || q->n == 0 || q->block || rank < 2 ||
        g->value[n->out[0]].dtype != OCT_F32)
        return false;
    if ((transposed && !q->qvals) || (q->n > 1 && q->axis != axis))
        return false;
    return !gemm || is_plain_gemm(n);
}

/* Weights of a recurrent operator as ONNX has them, [dirs][rows][k]: one scale a direction, or one a row of each. */
static bool is_recurrent_matrix(const oct_value *v)
{
    const oct_quant *q = v->quant;
    if (!is_byte(q) || !q->qvals || q->qvals->rank != 3)
        return false;
    const int64_t *d = q->qvals->dims;
    return q->block ? q->axis == 2 && q->block == d[2] && q->n == d[0] * d[1]
                    : q->n == d[0] && (q->n == 1 || q->axis == 0);
}

static bool is_dynamic_recurrent(const oct_graph *g, const oct_node *n, const oct_op *op)
{
    return op->quant == OCT_QUANT_RECURRENT && n->n_in > 2 && n->in[1] >= 0 && n->in[2] >= 0 &&
           g->value[n->in[0]].dtype == OCT_F32 && is_recurrent_matrix(&g->value[n->in[1]]) &&
           is_recurrent_matrix(&g->value[n->in[2]]) && !(op->no_integer && op->no_integer(n));
}

/* ---- blocks ---- */

/* Whether a MatMul, or a Gemm without factors, is one of reals with a constant matrix in blocks that kernels take. */
static bool in_blocks(const oct_graph *g, const oct_node *n)
{
    const bool gemm = oct_is_op(n, "Gemm");
    if ((!gemm && !oct_is_op(n, "MatMul")) || n->n_in < 2 || n->in[0] < 0 || n->in[1] < 0 ||
        g->value[n->in[0]].dtype != OCT_F32)
        return false;
    const oct_value *w = &g->value[n->in[1]];
    const oct_quant *q = w->quant;
    const int axis = gemm && oct_node_int(n, "transB", 0) ? 1 : 0;
    int64_t d[OCT_MAX_RANK];
    if (!q || !q->block || !q->qvals || w->shape.rank != 2 || !oct_shape_known(&w->shape, d) || q->axis != axis ||
        w->dtype != OCT_F32 || (!oct_is_small_int(q->dtype) && !is_byte(q)))
        return false;
    const oct_nbits_form f = oct_blocks_form(q, d);
    oct_nbits probe;
    return f.n > 0 && (f.k >= f.block || oct_value_by_columns(w)) && oct_nbits_prepare(&probe, &f, 1, NULL) == OCT_OK &&
           (!gemm || (is_plain_gemm(n) && (n->n_in < 3 || n->in[2] < 0 || oct_is_row(g, n->in[2], (int64_t)f.n, 2))));
}

/* ---- all ---- */

oct_status oct_compute_of(const oct_graph *g, int node, oct_compute *how, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    const oct_quant *x = oct_input_at(n, 0) >= 0 ? g->value[n->in[0]].quant : NULL;
    bool yes;
    *how = OCT_ON_REALS;
    if (!op || n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0)
        return OCT_OK;
    if (is_dynamic_recurrent(g, n, op)) {
        *how = OCT_ON_DYNAMIC;
        return OCT_OK;
    }
    if (!x) {
        *how = in_blocks(g, n) ? OCT_ON_BLOCKS : OCT_ON_REALS;
        return OCT_OK;
    }
    if (x->n == 0 && g->value[n->in[0]].is_input)
        return OCT_OK; /* reals come, whose parameters are not known */
    if (x->n == 0) {
        *how = oct_input_at(n, 1) >= 0 && is_dynamic_product(g, n) ? OCT_ON_DYNAMIC : OCT_ON_REALS;
        return OCT_OK;
    }
    if (!op->integer)
        return OCT_OK;
    OCT_TRY(ask(g, node, op, &yes, err));
    *how = yes ? OCT_ON_QUANTIZED : OCT_ON_REALS;
    return OCT_OK;
}

const oct_op *oct_op_computing(const oct_graph *g, int node, oct_compute how, bool from_qvals)
{
    if (how == OCT_ON_BLOCKS)
        return oct_op_find("com.microsoft", "MatMulNBits", 1);
    const oct_op *own = oct_op_of(g, node);
    if (how != OCT_ON_DYNAMIC || (own && own->quant == OCT_QUANT_RECURRENT))
        return own;
    return oct_op_find("com.microsoft", from_qvals ? "MatMulIntegerToFloat" : "DynamicQuantizeMatMul", 1);
}
