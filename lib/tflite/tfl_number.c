/* Operators of a tensor and a number: clamps, lines, and quotients as products. Their results have the order of axes of
 * their operands. */
#include "tflite/tfl_number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- between one operator and the next ---- */

/* A tensor like another one; q: what its integers mean, NULL for reals. */
static oct_status another(oct_tfl_writer *w, const char *suffix, int as, const oct_quant *q, int *tensor, oct_err *err)
{
    const oct_tfl_tensor t = w->m->tensor[as];
    int64_t dims[OCT_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i];
    OCT_TRY(
        oct_tfl_between(w, oct_arena_printf(w->arena, "%s%s", t.name, suffix), as, t.rank, dims, t.open, tensor, err));
    w->m->tensor[*tensor].quant = q;
    return OCT_OK;
}

/* An operator on reals and a number; *tensor: its input, then its output. */
static oct_status with_real(oct_tfl_writer *w, oct_tfl_code code, float number, int out, int *tensor, oct_err *err)
{
    float *x = oct_arena_memdup(w->m->arena, &number, sizeof number);
    int constant;
    if (!x)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_constant(w, "limit", OCT_TFL_FLOAT32, 0, NULL, NULL, 0, x, &constant, err));
    OCT_TRY(oct_tfl_add(w, code, (int[]){ *tensor, constant }, 2, &out, 1, NULL, err));
    *tensor = out;
    return OCT_OK;
}

/* The same on int8; q: what the number's integer means. */
static oct_status with_integer(oct_tfl_writer *w, oct_tfl_code code, int32_t number, const oct_quant *q, int out,
                               int *tensor, oct_tfl_operator **op, oct_err *err)
{
    const int8_t narrow = (int8_t)number;
    int8_t *x = oct_arena_memdup(w->m->arena, &narrow, sizeof narrow);
    int constant;
    if (!x)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_constant(w, "number", OCT_TFL_INT8, 0, NULL, q, 0, x, &constant, err));
    OCT_TRY(oct_tfl_add(w, code, (int[]){ *tensor, constant }, 2, &out, 1, op, err));
    *tensor = out;
    return OCT_OK;
}

/* ---- clamps ---- */

/* The limits of Relu or Clip; fails where they are computed. */
static oct_status limits(const oct_tfl_writer *w, const oct_node *n, float *lo, float *hi, oct_err *err)
{
    *lo = strcmp(n->op, "Relu") == 0 ? 0 : -INFINITY;
    *hi = INFINITY;
    if (strcmp(n->op, "Relu") == 0)
        return OCT_OK;
    if ((oct_input_at(n, 1) >= 0 && !oct_tfl_one_real(w, n->in[1], lo)) ||
        (oct_input_at(n, 2) >= 0 && !oct_tfl_one_real(w, n->in[2], hi)))
        return oct_tfl_cannot(w, err, NULL, "its limits are computed at run time");
    return OCT_OK;
}

oct_tfl_activation oct_tfl_clamp_of(const oct_tfl_writer *w, const oct_node *n)
{
    float lo, hi;
    if ((strcmp(n->op, "Relu") != 0 && strcmp(n->op, "Clip") != 0) || n->domain[0] ||
        limits(w, n, &lo, &hi, NULL) != OCT_OK)
        return OCT_TFL_ACT_NONE;
    return lo == 0 && (isinf(hi) || hi >= FLT_MAX) ? OCT_TFL_ACT_RELU
           : lo == 0 && hi == 6                    ? OCT_TFL_ACT_RELU6
           : lo == -1 && hi == 1                   ? OCT_TFL_ACT_RELU_N1_TO_1
                                                   : OCT_TFL_ACT_NONE;
}

/* A limit as an integer of the result; where it is beyond all of them, the outermost. */
static int32_t limit_integer(const oct_quant *q, float limit)
{
    const float x = rintf(limit / q->scale[0]) + (float)q->zp[0];
    return x > -128 ? x < 127 ? (int32_t)x : 127 : -128;
}

/* On int8, by what all runtimes have: the result's integers, then its limits. */
static oct_status clamp_int8(oct_tfl_writer *w, const oct_node *n, const oct_tfl_order *order, float lo, float hi,
                             oct_err *err)
{
    const oct_quant *q = w->g->value[w->out].quant;
    const int32_t limit[2] = { limit_integer(q, lo), limit_integer(q, hi) };
    const bool needed[3] = { !oct_quant_same(w->g->value[n->in[0]].quant, q), limit[0] > -128, limit[1] < 127 };
    int tensor, out;
    OCT_TRY(oct_tfl_read(w, n->in[0], order, OCT_TFL_OWN, &tensor, err));
    OCT_TRY(oct_tfl_result(w, w->out, order, OCT_TFL_OWN, NULL, &out, err));
    if (needed[0]) {
        int to = out;
        if (needed[1] || needed[2])
            OCT_TRY(another(w, "_scaled", tensor, q, &to, err));
        OCT_TRY(oct_tfl_add(w, OCT_TFL_QUANTIZE, &tensor, 1, &to, 1, NULL, err));
        tensor = to;
    }
    if (needed[1] || (!needed[0] && !needed[2])) {
        int to = out;
        if (needed[2])
            OCT_TRY(another(w, "_bounded", tensor, q, &to, err));
        OCT_TRY(with_integer(w, OCT_TFL_MAXIMUM, limit[0], q, to, &tensor, NULL, err));
    }
    return needed[2] ? with_integer(w, OCT_TFL_MINIMUM, limit[1], q, out, &tensor, NULL, err) : OCT_OK;
}

static oct_status clamp_real(oct_tfl_writer *w, const oct_node *n, const oct_tfl_order *order, float lo, float hi,
                             oct_err *err)
{
    const bool low = lo > -FLT_MAX, high = hi < FLT_MAX;
    int in, out, between;
    OCT_TRY(oct_tfl_read(w, n->in[0], order, OCT_TFL_REAL, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, order, OCT_TFL_REAL, NULL, &out, err));
    if (!low)
        return with_real(w, OCT_TFL_MINIMUM, high ? hi : FLT_MAX, out, &in, err);
    between = out;
    if (high)
        OCT_TRY(another(w, "_bounded", in, NULL, &between, err));
    OCT_TRY(with_real(w, OCT_TFL_MAXIMUM, lo, between, &in, err));
    return high ? with_real(w, OCT_TFL_MINIMUM, hi, out, &in, err) : OCT_OK;
}

oct_status oct_tfl_write_clamp(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const oct_tfl_code codes[] = { [OCT_TFL_ACT_RELU] = OCT_TFL_RELU,
                                          [OCT_TFL_ACT_RELU_N1_TO_1] = OCT_TFL_RELU_N1_TO_1,
                                          [OCT_TFL_ACT_RELU6] = OCT_TFL_RELU6 };
    const oct_tfl_activation a = oct_tfl_clamp_of(w, n);
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const bool whole = oct_tfl_runs_whole(w, 0, 1);
    float lo, hi;
    int in, out;
    OCT_TRY(limits(w, n, &lo, &hi, err));
    if (whole && a != OCT_TFL_ACT_RELU)
        return clamp_int8(w, n, &order, lo, hi, err);
    if (!a)
        return clamp_real(w, n, &order, lo, hi, err);
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, whole ? OCT_TFL_OWN : OCT_TFL_REAL, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, whole ? OCT_TFL_OWN : OCT_TFL_REAL, NULL, &out, err));
    return oct_tfl_add(w, codes[a], &in, 1, &out, 1, NULL, err);
}

/* ---- lines with ends ---- */

/* A scale that stays with the model, for integers whose zero point is `zero`. */
static oct_status scale_of(oct_tfl_writer *w, float scale, int32_t zero, const oct_quant **q, oct_err *err)
{
    const float *kept = oct_arena_memdup(w->m->arena, &scale, sizeof scale);
    const int32_t *point = oct_arena_memdup(w->m->arena, &zero, sizeof zero);
    const oct_quant own = { .n = 1, .scale = kept, .zp = point, .dtype = OCT_S8 };
    *q = kept && point ? oct_arena_memdup(w->m->arena, &own, sizeof own) : NULL;
    return *q ? OCT_OK : oct_nomem(err);
}

/* Whether the least and the largest integer of the result are the ends of the line, or within them. */
static bool ends_are_limits(const oct_tfl_writer *w)
{
    const oct_quant *q = w->g->value[w->out].quant;
    return q->zp[0] == -128 && q->scale[0] * 255 <= 1;
}

/* On int8: times alpha, which keeps the integers and changes their scale, and plus beta; the result saturates. */
static oct_status hard_sigmoid_int8(oct_tfl_writer *w, const oct_node *n, float alpha, float beta, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const oct_quant *by, *line, *more;
    int tensor, between, out;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_OWN, &tensor, err));
    const oct_quant *x = w->m->tensor[tensor].quant;
    OCT_TRY(scale_of(w, alpha, 0, &by, err));
    OCT_TRY(scale_of(w, x->scale[0] * alpha, x->zp[0], &line, err));
    OCT_TRY(scale_of(w, fabsf(beta), 0, &more, err));
    OCT_TRY(another(w, "_line", tensor, line, &between, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_OWN, NULL, &out, err));
    oct_tfl_operator *op;
    OCT_TRY(with_integer(w, OCT_TFL_MUL, 1, by, between, &tensor, &op, err));
    op->version = 3; /* the factor of the scales is 1 */
    return with_integer(w, OCT_TFL_ADD, beta < 0 ? -1 : 1, more, out, &tensor, NULL, err);
}

/* clamp(alpha x + beta, 0, 1) */
oct_status oct_tfl_write_hard_sigmoid(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const float factor[2] = { oct_node_float(n, "alpha", 0.2f), oct_node_float(n, "beta", 0.5f) };
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int tensor, out, between;
    if (oct_tfl_runs_whole(w, 0, 1) && ends_are_limits(w) && isnormal(factor[0]) && factor[0] > 0 &&
        isnormal(factor[1]))
        return hard_sigmoid_int8(w, n, factor[0], factor[1], err);
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_REAL, &tensor, err));
    for (int i = 0; i < 2; i++) {
        OCT_TRY(another(w, "_line", tensor, NULL, &between, err));
        OCT_TRY(with_real(w, i ? OCT_TFL_ADD : OCT_TFL_MUL, factor[i], between, &tensor, err));
    }
    oct_tfl_set_byte(&w->m->op[w->m->n_op - 1], OCT_TFL_BINARY_ACTIVATION, OCT_TFL_ACT_RELU);
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_REAL, NULL, &out, err));
    return with_real(w, OCT_TFL_MINIMUM, 1, out, &tensor, err);
}

/* 1 / x, on reals. */
oct_status oct_tfl_write_reciprocal(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const float one = 1;
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int in[2], out;
    OCT_TRY(oct_tfl_constant(w, "one", OCT_TFL_FLOAT32, 0, NULL, NULL, 0, &one, &in[0], err));
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_REAL, &in[1], err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_REAL, NULL, &out, err));
    return oct_tfl_add(w, OCT_TFL_DIV, in, 2, &out, 1, NULL, err);
}

bool oct_tfl_has_integers(const oct_tfl_writer *w)
{
    for (size_t i = 0; i < w->g->n_value; i++)
        if (w->g->value[i].quant)
            return true;
    return false;
}

/* x clamp(x + 3, 0, 6) / 6, on reals. */
oct_status oct_tfl_write_hard_swish(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int x, ramp, product, out;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_REAL, &x, err));
    int tensor = x;
    OCT_TRY(another(w, "_ramp", x, NULL, &ramp, err));
    OCT_TRY(with_real(w, OCT_TFL_ADD, 3, ramp, &tensor, err));
    oct_tfl_set_byte(&w->m->op[w->m->n_op - 1], OCT_TFL_BINARY_ACTIVATION, OCT_TFL_ACT_RELU6);
    OCT_TRY(another(w, "_product", x, NULL, &product, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_MUL, (int[]){ x, ramp }, 2, &product, 1, NULL, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_REAL, NULL, &out, err));
    return with_real(w, OCT_TFL_MUL, 1.0f / 6, out, &product, err);
}

/* ---- quotients ---- */

/* A constant's one number, also where it is quantized. */
static bool one_number(const oct_tfl_writer *w, int value, float *x)
{
    const oct_quant *q = w->g->value[value].quant;
    if (!q)
        return oct_tfl_one_real(w, value, x);
    const oct_tensor *t = q->qvals;
    if (!t || !t->data || t->dtype != OCT_S8 || t->count < 1 || q->n != 1 || q->block)
        return false;
    const int8_t *v = t->data;
    for (int64_t i = 1; i < t->count; i++)
        if (v[i] != v[0])
            return false;
    *x = (float)(v[0] - q->zp[0]) * q->scale[0];
    return true;
}

/* What it multiplies its operand by; 0: it is no such product. */
static float factor_of(const oct_tfl_writer *w, const oct_node *n)
{
    float by = -1;
    if (!oct_tfl_runs_whole(w, 0, 1) || oct_value_is_constant(&w->g->value[n->in[0]]))
        return 0;
    if (strcmp(n->op, "Neg") == 0)
        return by;
    if (strcmp(n->op, "Div") != 0 || n->n_in != 2 || !one_number(w, n->in[1], &by) ||
        w->g->value[n->in[1]].shape.rank > w->g->value[n->in[0]].shape.rank)
        return 0;
    return isnormal(by) && isnormal(1 / by) ? 1 / by : 0;
}

bool oct_tfl_is_product(const oct_tfl_writer *w, const oct_node *n)
{
    return factor_of(w, n) != 0;
}

/* With the integer 1 or -1, whose scale is the factor. */
oct_status oct_tfl_write_product(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const int32_t zero = 0;
    const float factor = factor_of(w, n), size = fabsf(factor);
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const float *scale = oct_arena_memdup(w->m->arena, &size, sizeof size);
    oct_quant q = { .n = 1, .scale = scale, .zp = &zero, .dtype = OCT_S8 };
    const oct_quant *kept = oct_arena_memdup(w->m->arena, &q, sizeof q);
    oct_tfl_operator *op;
    int tensor, out;
    if (!scale || !kept)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_OWN, &tensor, err));
    const float from = w->m->tensor[tensor].quant->scale[0];
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_OWN, NULL, &out, err));
    OCT_TRY(with_integer(w, OCT_TFL_MUL, factor < 0 ? -1 : 1, kept, out, &tensor, &op, err));
    if (w->activation)
        oct_tfl_set_byte(op, OCT_TFL_BINARY_ACTIVATION, w->activation);
    if (from * size / w->g->value[w->out].quant->scale[0] >= 1)
        op->version = 3;
    return OCT_OK;
}
