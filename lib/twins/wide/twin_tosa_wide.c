/* What TOSA's converter makes of operators on int16: sums of 48 bits times a multiplier of 15 bits, and tables with
 * lines between their numbers. */
#include "twins/wide/functions.h"

#include "kernels/math.h"
#include "twins/twin_ops.h"

#include <math.h>

/* ---- sums ---- */

/* The multiplier has 15 bits from the start: one of 31 bits, rounded again, is sometimes another. */
static oct_rescale multiplier_of(float in, float weights, float out)
{
    const double real = (double)in * (double)weights / (double)out;
    int shift = 0;
    if (!(real > 0) || !isfinite(real))
        return (oct_rescale){ 0 };
    int32_t q = (int32_t)round(frexp(real, &shift) * 32768.0);
    if (q == 1 << 15) {
        q /= 2;
        shift++;
    }
    return (oct_rescale){ real, q, shift };
}

static int32_t rescaled(const oct_rescale *r, int64_t sum)
{
    const int64_t x = oct_sum_bounded(sum);
    const int right = 15 - r->shift;
    if (right < 2 || right > 62)
        return 0;
    return oct_twin_clamp((x * r->multiplier + (INT64_C(1) << (right - 1))) >> right, INT32_MIN, INT32_MAX);
}

static int32_t bound_away(float bound, float scale, int32_t zero)
{
    return oct_rescaling_tosa.bound(bound, scale, zero);
}

static const oct_rescaling sums = { multiplier_of, NULL, bound_away, rescaled };

/* ---- functions of one number ---- */

static double logistic(double x)
{
    return 1 / (1 + oct_exp(-x));
}

static oct_status apply(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    int16_t table[OCT_LINES + 1];
    (void)how;
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    if (y->scale != ldexpf(1, -15))
        return oct_twin_cannot(c, err, "its result does not have a scale of 2^-15");
    oct_line_table(c->op->code == OCT_TFL_TANH ? oct_tanh : logistic, (double)x->scale * INT16_MIN,
                   (double)x->scale * INT16_MAX, false, table);
    for (int64_t i = 0; i < x->count; i++)
        oct_twin_put(y, i, oct_on_lines(((const int16_t *)x->data)[i], table));
    return OCT_OK;
}

const oct_twin_rule oct_twin_tosa_wide[] = {
    { OCT_TFL_CONV_2D, OCT_TWIN_INT16, oct_twin_conv, &sums },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_INT16, oct_twin_depthwise, &sums },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_INT16, oct_twin_transpose_conv, &sums },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT16, oct_twin_dense, &sums },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_INT16, oct_twin_average_pool_tosa, NULL },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_INT16, oct_twin_max_pool, NULL },
    { OCT_TFL_ADD, OCT_TWIN_INT16, oct_twin_add_fixed, &oct_rescaling_tosa },
    { OCT_TFL_SUB, OCT_TWIN_INT16, oct_twin_add_fixed, &oct_rescaling_tosa },
    { OCT_TFL_MUL, OCT_TWIN_INT16, oct_twin_mul, &oct_rescaling_tosa_in_float },
    { OCT_TFL_LOGISTIC, OCT_TWIN_INT16, apply, NULL },
    { OCT_TFL_TANH, OCT_TWIN_INT16, apply, NULL },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT16, oct_twin_softmax_wide, &oct_twin_softmax_wraps },
    { OCT_TFL_MEAN, OCT_TWIN_INT16, oct_twin_mean_fixed, &oct_rescaling_tosa },
    { OCT_TFL_QUANTIZE, OCT_TWIN_WHOLE, oct_twin_requantize, &oct_rescaling_tosa },
    { 0, 0, NULL, NULL },
};
