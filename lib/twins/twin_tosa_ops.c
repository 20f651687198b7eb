/* What the TOSA converter makes of an operator, where that is not an operator of other runtimes with TOSA's rounding.
 */
#include "twins/fixed_point.h"
#include "twins/twin_ops.h"

#include <math.h>

#include "kernels/math.h"

/* ---- tables: computed in double, the nearest integer away from zero ---- */

static double function_of(oct_tfl_code code, double x)
{
    switch (code) {
    case OCT_TFL_LOGISTIC: return 1 / (1 + oct_exp(-x));
    case OCT_TFL_TANH: return oct_tanh(x);
    case OCT_TFL_ELU: return x < 0 ? oct_expm1(x) : x;
    default: return oct_exp(x);
    }
}

static int32_t function_tosa(const oct_twin_call *c, int32_t x)
{
    const double y = function_of(c->op->code, (double)c->in[0]->scale * (x - c->in[0]->zero));
    return (int32_t)fmin(fmax(round(y / (double)c->out[0]->scale), -1e6), 1e6) + c->out[0]->zero;
}

/* ---- functions that are products ---- */

static int32_t scaled(const oct_twin_call *c, int32_t x, double factor)
{
    const oct_rescale r = oct_rescale_fixed((double)c->in[0]->scale * factor / (double)c->out[0]->scale);
    return oct_rescaling_tosa.to(&r, x - c->in[0]->zero, 0, INT32_MIN, INT32_MAX);
}

/* The larger of the operand and its product with a slope below 1. */
static int32_t leaky_tosa(const oct_twin_call *c, int32_t x)
{
    const float alpha = oct_tfl_option_real(c->op, OCT_TFL_LEAKY_RELU_ALPHA, 0);
    const int32_t whole = scaled(c, x, 1), sloped = scaled(c, x, (double)alpha);
    return ((whole > sloped) == (alpha <= 1) ? whole : sloped) + c->out[0]->zero;
}

static int32_t requantize_tosa(const oct_twin_call *c, int32_t x)
{
    return scaled(c, x, 1) + c->out[0]->zero;
}

static int32_t relu_tosa(const oct_twin_call *c, int32_t x)
{
    const oct_twin_tensor *to = c->out[0];
    const oct_rescaling *by = &oct_rescaling_single;
    const oct_rescale r = by->of(c->in[0]->scale, 1, to->scale);
    const int32_t lo = by->bound(c->op->code == OCT_TFL_RELU_N1_TO_1 ? -1 : 0, to->scale, to->zero);
    const int32_t hi =
        c->op->code == OCT_TFL_RELU ? 127 : by->bound(c->op->code == OCT_TFL_RELU6 ? 6 : 1, to->scale, to->zero);
    return by->to(&r, x - c->in[0]->zero, to->zero, lo, hi);
}

const oct_twin_table oct_table_function_tosa = { function_tosa }, oct_table_leaky_tosa = { leaky_tosa },
                     oct_table_requantize_tosa = { requantize_tosa }, oct_table_relu_tosa = { relu_tosa };

/* ---- softmax: as in fixed point elsewhere, but products are rounded half up ---- */

static int32_t product(int32_t a, int32_t b, int shift)
{
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << (shift - 1))) >> shift);
}

static int32_t shifted(int32_t x, int n)
{
    return n > 0 ? (x >> n) + ((x >> (n - 1)) & 1) : x;
}

/* 1 / x, of x in [2^30, 2^31). */
static int32_t reciprocal(int32_t x)
{
    int32_t y = product(x, -1010580540, 31) + 1515870810; /* 48/17 - 32/17 x */
    for (int i = 0; i < 3; i++)
        y += 4 * product(y, (1 << 29) - product(y, x, 31), 31);
    return y;
}

oct_status oct_twin_softmax_tosa(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *to = c->out[0];
    const int64_t width = c->in[0]->t->rank ? oct_twin_dim(c->in[0]->t, 0) : 0;
    const int8_t *x = c->in[0]->data;
    int8_t *y = to->data;
    int32_t of[256];
    (void)how;
    if (c->in[0]->count != to->count || width < 1 || width > 1 << 12)
        return oct_twin_unfit(c, "its rows are too long, or its result has another size", err);
    oct_twin_exponentials(c, of);
    for (int64_t i = 0; i < to->count / width; i++, x += width, y += width) {
        int32_t most = -128, sum = 0;
        for (int64_t k = 0; k < width; k++)
            most = x[k] > most ? x[k] : most;
        for (int64_t k = 0; k < width; k++)
            sum += shifted(of[most - x[k]] < 0 ? 0 : of[most - x[k]], 12);
        const int head = sum > 0 ? __builtin_clz((unsigned)sum) : 32;
        const int32_t by = reciprocal((int32_t)((uint32_t)sum << (head - 1)));
        for (int64_t k = 0; k < width; k++) {
            const int32_t e = of[most - x[k]] < 0 ? 0 : of[most - x[k]];
            y[k] = (int8_t)oct_twin_clamp((int64_t)shifted(product(e, by, 30), 35 - head) + to->zero, -128, 127);
        }
    }
    return OCT_OK;
}
