/* Operators on integers, by the table of qlinear.h, and operators that move data, which take quantized values unchanged
 * if their inputs and outputs have the same parameters.
 *
 * A node is written in this way only if it then computes the same as on real numbers between DequantizeLinear and
 * QuantizeLinear: with types for which ONNX Runtime has kernels, and with a bias whose scale is exactly s_x * s_w. All
 * other nodes stay between these two. */
#include "forms/read/read_int.h"
#include "forms/write/write_int.h"

#include "ops/traits.h"
#include "passes/match.h"

#include <string.h>

/* ---- values ---- */

/* The quantization of a value, per tensor or per channel: its own, or the one that the file's QuantizeLinear or
 * DequantizeLinear gives it; NULL: none. */
static const oct_quant *quant_of(const oct_writer *w, int v)
{
    const oct_quant *q = v < 0 ? NULL : w->g->value[v].quant ? w->g->value[v].quant : w->value[v].q;
    return q && q->n && !q->block ? q : NULL;
}

/* The same for an activation that integer kernels take: u8 or s8, with one scale. */
static const oct_quant *activation(const oct_writer *w, int v)
{
    const oct_quant *q = quant_of(w, v);
    return q && q->n == 1 && (q->dtype == OCT_U8 || q->dtype == OCT_S8) ? q : NULL;
}

/* The quantized value for an output: itself, or the output of the quantizer that is its only reader; -1: it stays
 * real. */
static int quantized_output(const oct_writer *w, int v)
{
    const int reader = v >= 0 ? oct_only_reader(w->g, v) : -1;
    const oct_node *n = reader >= 0 ? &w->g->node[reader] : NULL;
    const int q = n && oct_is_op(n, "QuantizeLinear") && n->n_out == 1 ? n->out[0] : v;
    return activation(w, q) ? q : -1;
}

/* Notes the quantization that a QuantizeLinear or DequantizeLinear of the file gives to its output. */
static oct_status note_pair(oct_writer *w, forms_reader *r, int id, oct_err *err)
{
    const oct_graph *g = w->g;
    const oct_node *n = &g->node[id];
    const bool to = oct_is_op(n, "QuantizeLinear");
    const oct_quant *q;
    if ((!to && !oct_is_op(n, "DequantizeLinear")) || n->n_out != 1 || n->out[0] < 0 || oct_input_at(n, 0) < 0 ||
        oct_input_at(n, 1) < 0 || oct_input_at(n, 2) < 0)
        return OCT_OK;
    const int qvals = to ? n->out[0] : n->in[0], real = to ? n->in[0] : n->out[0];
    if (g->value[n->in[1]].dtype != OCT_F32 || g->value[real].dtype != OCT_F32)
        return OCT_OK;
    OCT_TRY(forms_params_of(r, n, qvals, &q, err));
    if (!q)
        return OCT_OK;
    oct_quant with = *q;
    with.qvals = g->value[qvals].constant;
    return forms_quant(r, &with, &w->value[n->out[0]].q, err);
}

/* ---- which form a node has ---- */

static bool all_equal(const oct_quant *q)
{
    for (int i = 1; i < q->n; i++)
        if (q->zp[i] != q->zp[0])
            return false;
    return true;
}

/* The quantization of weights, if the operator supports it; else NULL. u8 needs u8 activations. Weights must be
 * constant, except those of MatMul, which may be a second activation. There may be a scale for each output channel,
 * except for stacks of matrices, if all zero points are equal. */
static const oct_quant *weights(const oct_writer *w, const oct_op *op, const oct_node *n, const oct_qlinear *f,
                                const oct_quant *x)
{
    const oct_quant *q = quant_of(w, n->in[1]);
    const oct_shape *s = &w->g->value[n->in[1]].shape;
    if (!q || (q->dtype != OCT_S8 && !(q->dtype == OCT_U8 && x->dtype == OCT_U8)) ||
        !(q->qvals || op->weights.computed))
        return NULL;
    const int axis = oct_qlinear_axis(f, n, 1, s->rank);
    const bool fits = q->qvals && (op->weights.kernel || s->rank == 2) && s->rank > axis && s->d[axis].n == q->n;
    return q->n == 1 || (fits && q->axis == axis && all_equal(q)) ? q : NULL;
}

static bool is_bias(const oct_writer *w, int v, const oct_quant *x, const oct_quant *q)
{
    const oct_quant *b = quant_of(w, v);
    if (!b || b->dtype != OCT_S32 || !b->qvals || w->g->value[v].shape.rank != 1 || b->n != q->n)
        return false;
    for (int i = 0; i < b->n; i++)
        if (b->zp[i] || b->scale[i] != x->scale[0] * q->scale[i])
            return false;
    return true;
}

static bool all_ones(const oct_node *n, const char *attr)
{
    int count;
    const int64_t *v = oct_node_ints(n, attr, &count);
    for (int i = 0; i < count; i++)
        if (v[i] != 1)
            return false;
    return true;
}

/* Whether a node is within limits of the integer operator that oct_no_integer does not check. Pools take three or four
 * dimensions, and no dilations. ceil_mode with counted padding is excluded, because opset 19 changed its divisor. ONNX
 * Runtime's Softmax rounds 1 / scale down, which is exact only for 1/256. */
static bool within_limits(const oct_graph *g, const oct_node *n, const oct_quant *y)
{
    const int rank = g->value[n->in[0]].shape.rank;
    if (oct_is_op(n, "Softmax"))
        return y->scale[0] == 1.0f / 256.0f && oct_graph_opset(g, "") >= 13;
    return (!oct_is_op(n, "AveragePool") && !oct_is_op(n, "GlobalAveragePool")) ||
           (rank >= 3 && rank <= 4 && all_ones(n, "dilations") &&
            !(oct_node_int(n, "ceil_mode", 0) && oct_node_int(n, "count_include_pad", 0)));
}

static bool has_form(const oct_writer *w, const oct_op *op, const oct_node *n, const oct_qlinear *f, const oct_quant *y)
{
    const int n_data = f->n_data < 0 ? n->n_in : f->n_data, behind = oct_input_at(n, n_data);
    const oct_quant *x = activation(w, oct_input_at(n, 0)), *q = x;
    if (n_data < 1 || n->n_in > n_data + (f->bias >= 0) || !(y || f->y_real) || !x)
        return false;
    for (int i = 0; i < n_data; i++) {
        const bool weighted = i == 1 && op->quant == OCT_QUANT_WEIGHTED;
        q = oct_input_at(n, i) < 0 ? NULL : weighted ? weights(w, op, n, f, x) : activation(w, n->in[i]);
        if (!q || (!weighted && y && y->dtype != q->dtype))
            return false;
    }
    return (behind < 0 || is_bias(w, behind, x, q)) && within_limits(w->g, n, y);
}

/* Operators for which ONNX Runtime has kernels for both u8 and s8. */
static const char *const moves[] = { "MaxPool",  "Reshape",      "Transpose",    "Flatten",   "Squeeze",  "Unsqueeze",
                                     "Slice",    "Split",        "Gather",       "Resize",    "Expand",   "Tile",
                                     "Identity", "DepthToSpace", "SpaceToDepth", "ReduceMax", "ReduceMin" };

static bool is_move(const oct_graph *g, const oct_node *n)
{
    bool listed = false;
    for (size_t i = 0; i < OCT_COUNT(moves); i++)
        listed |= strcmp(n->op, moves[i]) == 0;
    if (!listed)
        return false;
    const int rank = g->value[n->in[0]].shape.rank;
    if (strcmp(n->op, "MaxPool") == 0) /* this and the reductions support 8-bit integers from opset 12 on */
        return oct_graph_opset(g, "") >= 12 && n->n_out == 1 && rank >= 3 && rank <= 4;
    if (strncmp(n->op, "Reduce", 6) == 0)
        return oct_graph_opset(g, "") >= 12;
    /* In this mode, the number for positions beyond the edge is a real one. */
    return strcmp(n->op, "Resize") != 0 ||
           strcmp(oct_node_str(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize") != 0;
}

/* How many of the first inputs of a node that moves data are the data. */
static int moved_inputs(const oct_node *n)
{
    return oct_is_op(n, "Concat") ? n->n_in : 1;
}

/* Whether a node moves data, and all its data inputs and outputs have the same parameters. */
static bool moves_qvals(const oct_writer *w, const oct_node *n)
{
    const oct_quant *x = activation(w, oct_input_at(n, 0));
    if (!x || n->n_out < 1 || !(oct_is_op(n, "Concat") || is_move(w->g, n)))
        return false;
    for (int i = 1; i < moved_inputs(n); i++)
        if (!activation(w, n->in[i]) || !oct_quant_same(x, quant_of(w, n->in[i])))
            return false;
    for (int k = 0; k < n->n_out; k++) {
        const int y = quantized_output(w, n->out[k]);
        if (y < 0 || !oct_quant_same(x, quant_of(w, y)))
            return false;
    }
    return true;
}

/* Allocates the inputs of the operator on integers: tensor, scale and zero point of each data input, and places for the
 * bias and for scale and zero point of the result. */
static oct_status make_inputs(oct_graph *g, const oct_node *n, oct_node_plan *plan, oct_err *err)
{
    plan->n_in = oct_qlinear_slot(plan->f, plan->f->n_data < 0 ? n->n_in : plan->f->n_data) + 3;
    plan->in = oct_arena_alloc(g->arena, (size_t)plan->n_in * sizeof *plan->in);
    if (!plan->in)
        return oct_nomem(err);
    memset(plan->in, -1, (size_t)plan->n_in * sizeof *plan->in);
    return OCT_OK;
}

static oct_status plan_node(oct_writer *w, int id, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_node *n = &g->node[id];
    oct_node_plan *p = &w->node[id];
    const oct_op *op = n->domain[0] ? NULL : oct_op_of(g, id);
    const oct_qlinear *f = op ? oct_qlinear_for(n->op) : NULL;
    const int y = n->n_out == 1 ? quantized_output(w, n->out[0]) : -1;
    if (!op || oct_no_integer(op, n))
        return OCT_OK;
    if (moves_qvals(w, n)) {
        p->spelling = OCT_SPELLED_QVALS;
    } else if (f && n->n_out == 1 && n->out[0] >= 0 && has_form(w, op, n, f, quant_of(w, y))) {
        p->spelling = OCT_SPELLED_QLINEAR;
        p->f = f;
        OCT_TRY(make_inputs(g, n, p, err));
    } else {
        return OCT_OK;
    }
    for (int k = 0; k < n->n_out; k++) {
        const int made = quantized_output(w, n->out[k]);
        if (made >= 0)
            w->value[made].maker = id;
    }
    return OCT_OK;
}

oct_status oct_write_plan_operators(oct_writer *w, oct_err *err)
{
    const oct_graph *g = w->g;
    forms_reader r = { .g = w->g };
    for (size_t i = 0; i < g->n_order; i++)
        OCT_TRY(note_pair(w, &r, g->order[i], err));
    for (size_t i = 0; i < g->n_order; i++)
        if (w->node[g->order[i]].spelling == OCT_SPELLED_REAL && !oct_half_of(w->o->half, g->order[i]))
            OCT_TRY(plan_node(w, g->order[i], err));
    return OCT_OK;
}

/* ---- writing ---- */

bool oct_write_input_qvals(const oct_writer *w, oct_use u, const int qval[3])
{
    const oct_node_plan *p = (size_t)u.node < w->n_node ? &w->node[u.node] : NULL;
    if (!p || u.slot < 0 || p->spelling != OCT_SPELLED_QLINEAR)
        return p && p->spelling == OCT_SPELLED_QVALS && u.slot >= 0 && u.slot < moved_inputs(&w->g->node[u.node]);
    const bool bias = p->f->n_data >= 0 && u.slot >= p->f->n_data;
    memcpy(p->in + (bias ? p->f->bias : oct_qlinear_slot(p->f, u.slot)), qval, (bias ? 1 : 3) * sizeof *qval);
    return true;
}

oct_status oct_write_output_qvals(oct_writer *w, int id, int real, const int qval[3], oct_err *err)
{
    const oct_node_plan *plan = &w->node[id];
    if (plan->spelling == OCT_SPELLED_QLINEAR)
        memcpy(plan->in + plan->f->y, qval + 1, 2 * sizeof *qval);
    return oct_graph_set_output(w->g, id, oct_edit_output_slot(w->g, id, real), qval[0], err);
}

oct_status oct_write_given_pairs(oct_writer *w, const int *order, size_t n, oct_err *err)
{
    oct_graph *g = w->g;
    for (size_t i = 0; i < n; i++) {
        const oct_node *x = &g->node[order[i]];
        const bool to = oct_is_op(x, "QuantizeLinear");
        if (x->dead || x->n_out != 1 || x->out[0] < 0 || !(to || oct_is_op(x, "DequantizeLinear")) ||
            !w->value[x->out[0]].q)
            continue;
        const int in = x->in[0], out = x->out[0], maker = w->value[out].maker,
                  qval[3] = { to ? out : in, x->in[1], x->in[2] };
        if (!to) {
            OCT_TRY(oct_write_readers(w, out, qval, out, err));
        } else if (maker >= 0) {
            oct_graph_remove_node(g, order[i]);
            OCT_TRY(oct_write_output_qvals(w, maker, in, qval, err));
            oct_graph_remove_value(g, in);
        }
    }
    return OCT_OK;
}

/* Changes the attributes of the real operator to those of the integer operator. */
static oct_status fit_attributes(oct_graph *g, int id, const oct_qlinear *f, oct_err *err)
{
    if (strcmp(f->op, "Gemm") == 0)
        oct_node_drop_attr(g, id, "beta");
    if (strcmp(f->op, "AveragePool") == 0)
        oct_node_drop_attr(g, id, "dilations");
    if (strcmp(f->op, "Softmax") != 0)
        return OCT_OK;
    OCT_TRY(oct_node_set_int(g, id, "axis", oct_node_int(&g->node[id], "axis", -1), err));
    return oct_node_set_int(g, id, "opset", 13, err);
}

oct_status oct_write_qlinear(oct_writer *w, int id, oct_err *err)
{
    const oct_node_plan *plan = &w->node[id];
    int n_in = plan->n_in;
    while (plan->in[n_in - 1] < 0)
        n_in--;
    OCT_TRY(fit_attributes(w->g, id, plan->f, err));
    oct_graph_cut_inputs(w->g, id, 0);
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(w->g, id, i, plan->in[i], err));
    return oct_edit_become(w->g, id, plan->f->type, plan->f->domain, 0, err);
}
