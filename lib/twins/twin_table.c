/* Functions of one number of 8 bits: all of their results are computed, and looked up. */
#include "twins/fixed_point.h"
#include "twins/twin_ops.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/math.h"

oct_status oct_twin_apply_table(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_table *table = how;
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    int8_t of[256];
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int i = 0; i < 256; i++)
        of[i] = (int8_t)oct_twin_clamp(table->of(c, i - 128), -128, 127);
    for (int64_t i = 0; i < x->count; i++)
        ((int8_t *)y->data)[i] = of[((const int8_t *)x->data)[i] + 128];
    return OCT_OK;
}

/* ---- in float: the number that the integer means, the function, the nearest integer ---- */

static double meant(const oct_twin_call *c, int32_t x)
{
    return (double)((float)(x - c->in[0]->zero) * c->in[0]->scale);
}

static int32_t nearest(const oct_twin_call *c, double y)
{
    const float v = rintf((float)y * (1.0f / c->out[0]->scale));
    return oct_twin_clamp((int64_t)fmaxf(-1e6f, fminf(1e6f, v)) + c->out[0]->zero, -128, 127);
}

static int32_t logistic_float(const oct_twin_call *c, int32_t x)
{
    return nearest(c, 1 / (1 + oct_exp(-meant(c, x))));
}

static int32_t tanh_float(const oct_twin_call *c, int32_t x)
{
    return nearest(c, oct_tanh(meant(c, x)));
}

/* ---- the same, where the nearest integer is that away from zero ---- */

static double function_of(const oct_twin_call *c, double x)
{
    switch (c->op->code) {
    case OCT_TFL_ELU: return x < 0 ? oct_expm1(x) : x;
    case OCT_TFL_EXP: return oct_exp(x);
    case OCT_TFL_LOG: return oct_log(x);
    default: /* GELU */
        return oct_tfl_option(c->op, OCT_TFL_GELU_APPROXIMATE, 0)
                   ? 0.5 * x * (1 + oct_tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
                   : 0.5 * x * (1 + oct_erf(x * 0.7071067811865476));
    }
}

static int32_t function_away(const oct_twin_call *c, int32_t x)
{
    const float y = (float)function_of(c, meant(c, x)), v = roundf(y * (1.0f / c->out[0]->scale));
    return (v == v ? oct_twin_clamp((int64_t)fmaxf(-1e6f, fminf(1e6f, v)), -512, 512) : -512) + c->out[0]->zero;
}

/* ---- in fixed point ---- */

/* The factor that brings an operand to so many integer bits, and the smallest distance from the zero point at which it
 * overflows. */
static oct_rescale to_bits(float scale, int integer_bits, int32_t *radius)
{
    const oct_rescale r = oct_rescale_fixed((double)scale * (double)(INT64_C(1) << (31 - integer_bits)));
    *radius = (int32_t)floor((double)((1 << integer_bits) - 1) * (double)(INT64_C(1) << (31 - integer_bits)) /
                             (double)(INT64_C(1) << (r.shift > 0 ? r.shift : 0)));
    return r;
}

static int32_t logistic_fixed(const oct_twin_call *c, int32_t x)
{
    int32_t radius;
    const oct_rescale r = to_bits(c->in[0]->scale, 4, &radius);
    const int32_t v = x - c->in[0]->zero;
    if (v <= -radius || v >= radius)
        return v < 0 ? -128 : 127;
    return oct_divide_power(oct_fixed_logistic(32, oct_rescale_twice(&r, v), 4), 23) - 128;
}

static int32_t tanh_fixed(const oct_twin_call *c, int32_t x)
{
    int32_t radius;
    const oct_rescale r = to_bits(c->in[0]->scale, 4, &radius);
    const int32_t v = x - c->in[0]->zero;
    if (v <= -radius || v >= radius)
        return v < 0 ? -128 : 127;
    return oct_divide_power(oct_fixed_tanh(32, oct_rescale_twice(&r, v), 4), 24);
}

static int32_t short_product(int32_t a, int32_t b, int32_t half) /* of 16 bits; half: rounded, or 0: cut */
{
    if (a == INT16_MIN && b == INT16_MIN)
        return INT16_MAX;
    return (a * b + (half && a * b < 0 ? 1 - half : half)) / (1 << 15);
}

static int32_t short_left(int32_t x, int bits)
{
    return oct_twin_clamp((int64_t)x * (INT64_C(1) << bits), INT16_MIN, INT16_MAX);
}

/* A multiplier of 15 bits. */
static int32_t short_multiplier(const oct_rescale *r)
{
    return r->multiplier >= 0x7fff0000 ? 0x7fff : (r->multiplier + (1 << 15)) >> 16;
}

/* The operand times a ramp from 0 to 1, both of 16 bits. */
static int32_t hard_swish_fixed(const oct_twin_call *c, int32_t x)
{
    enum { HALF = 1 << 14 };
    const float fine = (1.0f / 128) * c->in[0]->scale;
    const oct_rescale out = oct_rescale_fixed((double)(fine / c->out[0]->scale)),
                      ramp = oct_rescale_fixed((double)(fine / (3.0f / 32768)));
    const int32_t v = (x - c->in[0]->zero) * 128;
    int32_t up = v;
    if (ramp.shift > 0)
        up = short_left(up, ramp.shift - 1);
    up = short_product(up, short_multiplier(&ramp), HALF);
    up = ramp.shift > 0 ? short_left(up, 1) : oct_divide_power(up, -ramp.shift);
    up = (up + (1 << 15)) >> 1;
    const int32_t y = short_product(up, short_product(v, short_multiplier(&out), HALF), 0);
    return oct_divide_power(y, -out.shift) + c->out[0]->zero;
}

static int32_t leaky_fixed(const oct_twin_call *c, int32_t x)
{
    const int32_t v = x - c->in[0]->zero;
    const float alpha = v >= 0 ? 1 : oct_tfl_option_real(c->op, OCT_TFL_LEAKY_RELU_ALPHA, 0);
    const oct_rescale r = oct_rescale_fixed(fabs((double)(c->in[0]->scale * alpha / c->out[0]->scale)));
    return oct_rescale_twice(&r, alpha < 0 ? -v : v) + c->out[0]->zero;
}

static int32_t requantize_fixed(const oct_twin_call *c, int32_t x)
{
    const oct_rescale r = oct_rescale_fixed((double)c->in[0]->scale / (double)c->out[0]->scale);
    return oct_rescale_twice(&r, x - c->in[0]->zero) + c->out[0]->zero;
}

static int32_t abs_fixed(const oct_twin_call *c, int32_t x)
{
    const oct_rescale r = oct_rescale_fixed((double)(c->in[0]->scale / c->out[0]->scale));
    const int32_t v = abs(x - c->in[0]->zero);
    return (c->in[0]->scale == c->out[0]->scale ? v : oct_rescale_twice(&r, v)) + c->out[0]->zero;
}

/* ---- by multipliers with 8 bits behind the point, rounded half up ---- */

static int32_t by_eighth_bits(const oct_twin_call *c, int32_t x, float factor)
{
    const int64_t m = (int64_t)rintf(256 * factor);
    return (int32_t)(((x - c->in[0]->zero) * m + 128) >> 8) + c->out[0]->zero;
}

static int32_t requantize_shift(const oct_twin_call *c, int32_t x)
{
    return by_eighth_bits(c, x, c->in[0]->scale / c->out[0]->scale);
}

static int32_t leaky_shift(const oct_twin_call *c, int32_t x)
{
    const float whole = c->in[0]->scale / c->out[0]->scale;
    return by_eighth_bits(c, x,
                          x >= c->in[0]->zero ? whole
                                              : whole * oct_tfl_option_real(c->op, OCT_TFL_LEAKY_RELU_ALPHA, 0));
}

/* ---- RELU and its kin ---- */

static int32_t relu_fixed(const oct_twin_call *c, int32_t x)
{
    const oct_twin_tensor *to = c->out[0];
    const oct_rescaling *by = &oct_rescaling_double;
    const int32_t lo = by->bound(c->op->code == OCT_TFL_RELU_N1_TO_1 ? -1 : 0, to->scale, to->zero);
    const int32_t hi =
        c->op->code == OCT_TFL_RELU ? 127 : by->bound(c->op->code == OCT_TFL_RELU6 ? 6 : 1, to->scale, to->zero);
    return oct_twin_clamp(requantize_fixed(c, x), lo, hi);
}

/* The operand's integers between those that mean 0 and 6: that the result has another scale is not looked at. */
static int32_t relu6_clamp(const oct_twin_call *c, int32_t x)
{
    const oct_twin_tensor *from = c->in[0];
    return oct_twin_clamp(x, from->zero, oct_rescaling_double.bound(6, from->scale, from->zero));
}

const oct_twin_table oct_table_logistic_float = { logistic_float }, oct_table_tanh_float = { tanh_float },
                     oct_table_logistic_fixed = { logistic_fixed }, oct_table_tanh_fixed = { tanh_fixed },
                     oct_table_hard_swish_fixed = { hard_swish_fixed }, oct_table_leaky_fixed = { leaky_fixed },
                     oct_table_leaky_shift = { leaky_shift }, oct_table_relu_fixed = { relu_fixed },
                     oct_table_relu6_clamp = { relu6_clamp }, oct_table_requantize_fixed = { requantize_fixed },
                     oct_table_requantize_shift = { requantize_shift }, oct_table_abs_fixed = { abs_fixed },
                     oct_table_function_away = { function_away };
