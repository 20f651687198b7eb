/* Operators on int16 with int8 weights, which runtimes compute alike, but for sums, MUL, dense layers and SOFTMAX: one
 * kernel each, whatever delegates there are. */
#include "twins/wide/functions.h"

#include "kernels/math.h"
#include "twins/twin_ops.h"

#include <math.h>

/* ---- functions of one number ---- */

typedef int32_t function(int32_t x, int32_t multiplier, int shift);

/* The multiplier of at most 15 bits that brings an operand to the table's steps, and how far its products are shifted.
 * A scale of 2^-12 (tanh: or 2^-11) needs none. */
static void to_table(float scale, bool tanh, int32_t *multiplier, int *shift)
{
    int exponent;
    double factor = (double)scale * 4096.0 * 3.0;
    const bool power = frexpf(scale, &exponent) == 0.5f;
    const int left = 12 + exponent - 1;
    *multiplier = *shift = 0;
    if (power && (left == 0 || (tanh && left == 1))) {
        *shift = left;
        return;
    }
    for (; factor <= 32767.0 / 2.0 && *shift <= 30; factor *= 2)
        ++*shift;
    *multiplier = factor < INT32_MAX ? (int32_t)factor : 0;
}

static oct_status apply(const oct_twin_call *c, function *of, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    int32_t multiplier;
    int shift;
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    to_table(x->scale, of == oct_wide_tanh, &multiplier, &shift);
    if (y->scale != ldexpf(1, -15) || multiplier > INT16_MAX)
        return oct_twin_cannot(c, err, "its result does not have a scale of 2^-15, or its operand one above 2.6");
    for (int64_t i = 0; i < x->count; i++)
        oct_twin_put(y, i, oct_twin_clamp(of(((const int16_t *)x->data)[i], multiplier, shift), INT16_MIN, INT16_MAX));
    return OCT_OK;
}

static oct_status logistic(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return apply(c, oct_wide_logistic, err);
}

static oct_status tangent(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return apply(c, oct_wide_tanh, err);
}

/* ---- SOFTMAX ---- */

static double exponential(double x)
{
    return oct_exp(x);
}

static double reciprocal(double x)
{
    return 1 / (1 + x);
}

struct oct_twin_softmax_wide {
    bool single; /* tables are made in float32 */
    bool wraps;  /* what is further below the largest than the table goes is cut to 16 bits */
};

/* x: a row of n, and y its result, which holds exponentials in between. */
static void softmax_row(const int16_t *x, int16_t *y, int64_t n, bool wraps, const oct_rescale *by,
                        const int16_t *exp_table, const int16_t *one_table)
{
    int32_t most = INT16_MIN, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++) {
        const int64_t below = (int64_t)oct_rescale_twice(by, x[i] - most) + INT16_MAX;
        y[i] = (int16_t)oct_on_lines(wraps ? (int16_t)below : oct_twin_clamp(below, INT16_MIN, INT16_MAX), exp_table);
        sum = (int32_t)((uint32_t)sum + (uint32_t)y[i]);
    }
    const int zeros = sum > 0 ? __builtin_clz((unsigned)sum) : 1;
    const int32_t shifted = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14);
    const int32_t one =
        oct_on_lines(oct_twin_clamp((int64_t)shifted - (1 << 15) - (1 << 16), INT16_MIN, INT16_MAX), one_table);
    const int right = 31 - zeros;
    for (int64_t i = 0; i < n; i++)
        y[i] = (int16_t)oct_twin_clamp(right > 0 ? ((int64_t)y[i] * one + (INT64_C(1) << (right - 1))) >> right : 0, 0,
                                       INT16_MAX);
}

oct_status oct_twin_softmax_wide(const oct_twin_call *c, const void *how, oct_err *err)
{
    const struct oct_twin_softmax_wide *as = how;
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const int64_t n = oct_twin_dim(x->t, 0);
    int16_t exp_table[OCT_LINES + 1], one_table[OCT_LINES + 1];
    if (x->count != y->count || n < 1)
        return oct_twin_unfit(c, "its result has another size", err);
    const double beta = (double)oct_tfl_option_real(c->op, OCT_TFL_SOFTMAX_BETA, 0);
    const oct_rescale by = oct_rescale_fixed((double)x->scale * beta / (10.0 / 65535.0));
    oct_line_table(exponential, -10, 0, as->single, exp_table);
    oct_line_table(reciprocal, 0, 1, as->single, one_table);
    for (int64_t i = 0; i < x->count; i += n)
        softmax_row((const int16_t *)x->data + i, (int16_t *)y->data + i, n, as->wraps, &by, exp_table, one_table);
    return OCT_OK;
}

const struct oct_twin_softmax_wide oct_twin_softmax_single = { true, false },
                                   oct_twin_softmax_double = { false, false }, oct_twin_softmax_wraps = { false, true };

const oct_twin_rule oct_twin_wide[] = {
    { OCT_TFL_CONV_2D, OCT_TWIN_INT16, oct_twin_conv, &oct_rescaling_double },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_INT16, oct_twin_depthwise, &oct_rescaling_double },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_INT16, oct_twin_transpose_conv, &oct_rescaling_double },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_INT16, oct_twin_average_pool, &oct_rescaling_double },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_INT16, oct_twin_max_pool, &oct_rescaling_double },
    { OCT_TFL_LOGISTIC, OCT_TWIN_INT16, logistic, NULL },
    { OCT_TFL_TANH, OCT_TWIN_INT16, tangent, NULL },
    { OCT_TFL_MEAN, OCT_TWIN_INT16, oct_twin_mean_fixed, &oct_rescaling_double },
    { 0, 0, NULL, NULL },
};
