/* lib/ops/nn/op_softmax.c -- Softmax, LogSoftmax and Hardmax, with the semantics of opset 13 (one axis) and of the ones
 * before (everything from the axis on). */
#include "kernels/math.h"
#include "kernels/reduce.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static oct_status axis_of(const oct_node *n, int64_t opset, int rank, int *axis, oct_err *err)
{
    return oct_axis(oct_node_int(n, "axis", opset < 13 ? 1 : -1), rank, axis, err);
}

static oct_status softmax_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    int64_t axis = oct_node_int(oct_in_node(c), "axis", c->opset < 13 ? 1 : -1);
    if (in.rank > 0 && (axis < -in.rank || axis > in.rank - (c->opset >= 13 ? 1 : 0)))
        return oct_fail(err, OCT_EMALFORMED, "axis %lld is outside of a tensor with %d dimensions", (long long)axis,
                        in.rank);
    return oct_out_like(c, 0, 0, err);
}

/* Old opsets allow axis == rank: every element stands alone. */
static oct_status block(const oct_step *s, int *axis, int64_t *outer, int64_t *n, int64_t *inner, oct_err *err)
{
    const oct_operand *x = s->in[0];
    *outer = *n = *inner = 1;
    if (x->rank == 0 || (s->opset < 13 && oct_node_int(s->node, "axis", 1) == x->rank)) {
        *axis = x->rank;
        *outer = x->count;
        return OCT_OK;
    }
    OCT_TRY(axis_of(s->node, s->opset, x->rank, axis, err));
    for (int i = 0; i < x->rank; i++) {
        bool inside = s->opset < 13 ? i >= *axis : i == *axis;
        *(inside ? n : i < *axis ? outer : inner) *= x->dims[i];
    }
    return OCT_OK;
}

/* Whether both tensors lie so that the kernel can run on them as they are; then sets outer and inner to memory's. */
static bool in_place(const oct_step *s, int axis, int64_t *outer, int64_t n, int64_t *inner)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool last = x->layout == OCT_LAYOUT_CHANNELS_LAST && x->rank >= 3;
    if (x->layout != y->layout)
        return false;
    if (!last)
        return true;
    if (s->opset < 13)
        return axis <= 1; /* whole images: their order inside does not matter */
    int64_t stride[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(x, stride);
    *inner = stride[axis];
    *outer = x->count / (n * *inner);
    return true;
}

static oct_status softmax_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    oct_dom dom = oct_dom_of(s->in[0]->dtype);
    bool quantized = oct_q8(s->in[0]) && oct_q8(s->out[0]);
    size_t bytes;
    if (!quantized && dom != OCT_DOM_F && dom != OCT_DOM_D)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    /* One buffer in plain order, in the type that the kernel computes in. */
    if (!oct_dtype_bytes(quantized ? OCT_U8 : dom == OCT_DOM_D ? OCT_F64 : OCT_F32, s->in[0]->count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "the tensor is too large");
    s->scratch = bytes;
    if (s->in[0]->dtype == OCT_F32)
        s->overwrites = oct_elem_overwrites(s, 1);
    return OCT_OK;
}

static void softmax_double(bool log, double *x, int64_t n, int64_t step)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = x[i * step] > top ? x[i * step] : top;
    for (int64_t i = 0; i < n; i++)
        sum += oct_exp(x[i * step] - top);
    for (int64_t i = 0; i < n; i++)
        x[i * step] = log ? x[i * step] - top - oct_log(sum) : oct_exp(x[i * step] - top) / sum;
}

typedef struct walk {
    oct_dtype from, to;
    const void *src;
    void *dst;
} walk;

static void convert_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    oct_chunk c;
    const void *v = oct_elem_load(w->from, w->src, o[1], st[1], n, &c);
    oct_elem_store(w->to, w->dst, o[0], st[0], n, oct_dom_of(w->from), v);
}

/* Between an operand and a plain buffer of another type. */
static void convert(const oct_operand *t, oct_dtype type, void *buffer, bool to_buffer, const oct_run *r)
{
    oct_operand plain = *t;
    plain.layout = OCT_LAYOUT_PLAIN;
    oct_nd d;
    oct_nd_init(&d, to_buffer ? &plain : t);
    oct_nd_add(&d, to_buffer ? t : &plain);
    walk w = to_buffer ? (walk){ t->dtype, type, t->data, buffer } : (walk){ type, t->dtype, buffer, t->data };
    oct_nd_run(&d, r->pool, convert_row, &w);
}

static void quantized_run(const oct_step *s, const oct_run *r, int axis, int64_t outer, int64_t n, int64_t inner)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool direct = in_place(s, axis, &outer, n, &inner) && inner == 1;
    size_t rows = (size_t)(x->count / n);
    if (direct) {
        oct_qsoftmax_8(r->pool, x->dtype == OCT_S8, x->data, rows, (size_t)n, oct_q8_param(x), oct_q8_param(y),
                       y->data);
        return;
    }
    oct_nd to, from; /* [outer][inner][n] in the buffer */
    int64_t so[OCT_MAX_RANK] = { 0 }, step = n;
    for (int i = x->rank - 1; i >= 0; i--) {
        bool inside = i == axis || (s->opset < 13 && i > axis);
        so[i] = step;
        if (!inside)
            step *= x->dims[i];
    }
    int64_t in_step = 1;
    for (int i = x->rank - 1; i >= 0; i--)
        if (i == axis || (s->opset < 13 && i > axis)) {
            so[i] = in_step;
            in_step *= x->dims[i];
        }
    oct_nd_init(&to, x);
    memcpy(to.stride[1], to.stride[0], sizeof to.stride[0]);
    memcpy(to.stride[0], so, sizeof so);
    to.arrays = 2;
    oct_nd_copy(&to, r->pool, r->scratch, x->data, 1, NULL);
    oct_qsoftmax_8(r->pool, x->dtype == OCT_S8, r->scratch, rows, (size_t)n, oct_q8_param(x), oct_q8_param(y),
                   r->scratch);
    oct_nd_init(&from, y);
    oct_nd_add_strides(&from, so);
    oct_nd_copy(&from, r->pool, y->data, r->scratch, 1, NULL);
}

static oct_status softmax_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool log = s->op->type[0] == 'L';
    int64_t outer, n, inner;
    int axis;
    OCT_TRY(block(s, &axis, &outer, &n, &inner, err));
    if (x->count == 0)
        return OCT_OK;
    if (oct_q8(x) && oct_q8(y)) {
        quantized_run(s, r, axis, outer, n, inner);
        return OCT_OK;
    }
    if (x->dtype == OCT_F32) {
        int64_t o = outer, i = inner;
        if (in_place(s, axis, &o, n, &i)) {
            oct_softmax_f32(r->pool, log, x->data, (size_t)o, (size_t)n, (size_t)i, y->data);
            return OCT_OK;
        }
    }
    oct_dtype type = x->dtype == OCT_F64 ? OCT_F64 : OCT_F32;
    convert(x, type, r->scratch, true, r);
    if (type == OCT_F32)
        oct_softmax_f32(r->pool, log, r->scratch, (size_t)outer, (size_t)n, (size_t)inner, r->scratch);
    else
        for (int64_t k = 0; k < outer * inner; k++)
            softmax_double(log, (double *)r->scratch + k / inner * n * inner + k % inner, n, inner);
    convert(y, type, r->scratch, false, r);
    return OCT_OK;
}

static bool softmax_by_rows(const oct_step *s)
{
    int axis;
    const int rank = s->in[0]->rank;
    return rank > 0 && axis_of(s->node, s->opset, rank, &axis, NULL) == OCT_OK && axis == rank - 1;
}

static bool softmax_integer(const oct_step *s)
{
    return oct_q8(s->in[0]) && oct_q8(s->out[0]) && s->in[0]->dtype == s->out[0]->dtype;
}

/* ------------------------------------------------------------------ Hardmax */

/* One at the first largest element, zero elsewhere. */
#define PICK(real)                                                           \
    static void pick_##real(const real *x, int64_t n, int64_t step, real *y) \
    {                                                                        \
        int64_t best = 0;                                                    \
        real most = n > 0 ? *x : 0;                                          \
        for (int64_t i = 0; i < n; i++) {                                    \
            y[i * step] = 0;                                                 \
            if (x[i * step] > most) {                                        \
                most = x[i * step];                                          \
                best = i;                                                    \
            }                                                                \
        }                                                                    \
        if (n > 0)                                                           \
            y[best * step] = 1;                                              \
    }
PICK(float)
PICK(double)

static oct_status hardmax_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_dtype t = s->in[0]->dtype;
    return t == OCT_F32 || t == OCT_F64 ? OCT_OK : oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(t));
}

static oct_status hardmax_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    int64_t outer, n, inner;
    int axis;
    OCT_TRY(block(s, &axis, &outer, &n, &inner, err));
    for (int64_t k = 0; k < outer * inner; k++) {
        const int64_t at = k / inner * n * inner + k % inner;
        if (s->in[0]->dtype == OCT_F64)
            pick_double((const double *)s->in[0]->data + at, n, inner, (double *)s->out[0]->data + at);
        else
            pick_float((const float *)s->in[0]->data + at, n, inner, (float *)s->out[0]->data + at);
    }
    return OCT_OK;
}

/* ------------------------------------------------------------------ raising */

/* The one axis that the old semantics normalises over, when at most one dimension from `axis` on is not 1. */
static int single_axis(const oct_shape *in, int axis)
{
    int found = -1;
    for (int i = axis; i < in->rank; i++) {
        if (in->d[i].n == 1)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found >= 0 ? found : axis < in->rank ? axis : -1;
}

/* Opset 13. The general case becomes Flatten, Softmax, and a Reshape to the shape of the input; the node itself
 * becomes the Reshape, so that its output keeps its producer. */
static oct_status softmax_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 12)
        return OCT_OK;
    int64_t axis = oct_node_int(&g->node[node], "axis", 1);
    int x = g->node[node].in[0];
    oct_shape in = g->value[x].shape;
    oct_dtype t = g->value[x].dtype;
    if (in.rank >= 0) {
        int64_t from_start = axis < 0 ? axis + in.rank : axis;
        int single = from_start >= 0 && from_start < in.rank ? single_axis(&in, (int)from_start) : -1;
        if (single >= 0)
            return oct_node_set_int(g, node, "axis", single == in.rank - 1 ? -1 : single, err);
    } else if (axis == -1) {
        return oct_node_set_int(g, node, "axis", -1, err);
    }
    int flat, soft, shape, made;
    char op[16];
    snprintf(op, sizeof op, "%s", g->node[node].op);
    OCT_TRY(oct_raise_node(g, "Flatten", node, x, -1, "softmax_flat", t, &flat, &made, err));
    OCT_TRY(oct_node_set_int(g, made, "axis", axis, err));
    OCT_TRY(oct_raise_node(g, op, node, flat, -1, "softmax_rows", t, &soft, &made, err));
    OCT_TRY(oct_node_set_int(g, made, "axis", -1, err));
    OCT_TRY(oct_raise_node(g, "Shape", node, x, -1, "softmax_shape", OCT_S64, &shape, &made, err));
    oct_node_drop_attr(g, node, "axis");
    g->node[node].op = "Reshape";
    g->node[node].changed = true;
    OCT_TRY(oct_graph_set_input(g, node, 0, soft, err));
    return oct_graph_set_input(g, node, 1, shape, err);
}

const oct_op oct_op_softmax = {
    OCT_SCHEMA("Softmax", "", 1, 1, 1, 1, 1),
    .infer = softmax_infer,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .layout = OCT_RULE_ANY,
    .integer = softmax_integer,
    .by_rows = softmax_by_rows,
    .quant = OCT_QUANT_UNARY,
    .fixed_range = true,
    .range_lo = 0.0f,
    .range_hi = 1.0f,
    .competes = true,
    .raise = softmax_raise,
};

const oct_op oct_op_log_softmax = {
    OCT_SCHEMA("LogSoftmax", "", 1, 1, 1, 1, 1),
    .infer = softmax_infer,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .layout = OCT_RULE_ANY,
    .raise = softmax_raise,
    .compresses = true,
    .competes = true,
};

const oct_op oct_op_hardmax = {
    OCT_SCHEMA("Hardmax", "", 1, 1, 1, 1, 1),
    .infer = softmax_infer,
    .prepare = hardmax_prepare,
    .run = hardmax_run,
    .raise = softmax_raise,
    .widens = true,
    .decision = OCT_DECIDES,
};
