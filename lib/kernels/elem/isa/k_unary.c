/* lib/kernels/elem/isa/k_unary.c -- functions of one f32 over a row, compiled once per instruction set. */
#include "kernels/elem/isa.h"

static inline float clip(float x, float lo, float hi)
{
    x = x < lo ? lo : x; /* NaN stays */
    return x > hi ? hi : x;
}

static inline float mish(float x)
{
    return x * oct_tanhf(oct_softplusf(x));
}

/* 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2 u)) */
static inline float gelu_tanh(float x)
{
    float u = -0x1.988454p+0f * fmaf(0.044715f * x * x, x, x); /* -2 sqrt(2 / pi) ... */
    return x / (1.0f + oct_expf(u));
}

static inline float elu(float x, float alpha)
{
    float e = alpha * oct_expm1f(x > 0.0f ? 0.0f : x);
    return x < 0.0f ? e : x;
}

static inline float celu(float x, float alpha)
{
    float e = alpha * oct_expm1f(x < 0.0f ? x / alpha : 0.0f);
    return x < 0.0f ? e : x;
}

static inline float sign(float x)
{
    float s = (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f);
    return x != x ? x : s;
}

static inline float shrink(float x, float lambda, float bias)
{
    float y = x < -lambda ? x + bias : x > lambda ? x - bias : 0.0f;
    return x != x ? x : y;
}

/* Blocks of |x| below `limit` by the short form; the bits are the same. */
#define SHORT(name, limit)                                                          \
    static void map_##name(const float *x, float *y, size_t n, float a, float b)    \
    {                                                                               \
        for (size_t i = 0; i < n; i += OCT_SCREEN_BLOCK) {                          \
            const size_t k = n - i < OCT_SCREEN_BLOCK ? n - i : OCT_SCREEN_BLOCK;   \
            const bool small = all_below(x + i, 1, k, 0x7fffffffu, limit);          \
            (small ? map_##name##_small : map_##name##_any)(x + i, y + i, k, a, b); \
        }                                                                           \
    }
#define MAP(name, expr)                                                          \
    static void map_##name(const float *x, float *y, size_t n, float a, float b) \
    {                                                                            \
        OCT_EACH                                                                 \
        for (size_t i = 0; i < n; i++) {                                         \
            float v = x[i];                                                      \
            y[i] = (expr);                                                       \
        }                                                                        \
    }
MAP(copy, v)
MAP(relu, v < 0.0f ? 0.0f : v)
MAP(clip, clip(v, a, b))
MAP(leaky_relu, v < 0.0f ? a * v : v)
MAP(thresholded_relu, ((v > a) | (v != v)) ? v : 0.0f)
MAP(sigmoid_small, oct_sigmoidf_small(v))
MAP(sigmoid_any, oct_sigmoidf(v))
SHORT(sigmoid, OCT_SIGMOID_SMALL)
MAP(hard_sigmoid, clip(fmaf(a, v, b), 0.0f, 1.0f))
MAP(hard_swish, v *clip(fmaf(v, 0x1.555556p-3f, 0.5f), 0.0f, 1.0f))
MAP(swish, v *oct_sigmoidf(a *v))
MAP(mish, mish(v))
MAP(tanh, oct_tanhf(v))
MAP(elu, elu(v, a))
MAP(celu, celu(v, a))
MAP(selu, b *elu(v, a))
MAP(softplus, oct_softplusf(v))
MAP(softsign, v / (1.0f + oct_absf(v)))
MAP(erf, oct_erff(v))
MAP(gelu, oct_geluf(v))
MAP(gelu_tanh, gelu_tanh(v))
MAP(exp_small, oct_expf_small(v))
MAP(exp_any, oct_expf(v))
SHORT(exp, 87.0f)
MAP(expm1, oct_expm1f(v))
MAP(log, oct_logf(v))
MAP(log1p, oct_log1pf(v))
MAP(sqrt, sqrtf(v))
MAP(rsqrt, 1.0f / sqrtf(v))
MAP(reciprocal, 1.0f / v)
MAP(square, v *v)
MAP(abs, oct_absf(v))
MAP(neg, -v)
MAP(sign, sign(v))
MAP(floor, floorf(v))
MAP(ceil, ceilf(v))
MAP(round, rintf(v))
MAP(sin_small, oct_sinf_small(v))
MAP(sin_any, oct_sinf(v))
SHORT(sin, OCT_TURN_SMALL)
MAP(cos_small, oct_cosf_small(v))
MAP(cos_any, oct_cosf(v))
SHORT(cos, OCT_TURN_SMALL)
MAP(tan_small, oct_tanf_small(v))
MAP(tan_any, oct_tanf(v))
SHORT(tan, OCT_TURN_SMALL)
MAP(shrink, shrink(v, a, b))
MAP(asin, (float)oct_asin((double)v))
MAP(acos, (float)oct_acos((double)v))
MAP(atan, (float)oct_atan((double)v))
MAP(sinh, oct_sinhf(v))
MAP(cosh, oct_coshf(v))
MAP(asinh, (float)oct_asinh((double)v))
MAP(acosh, (float)oct_acosh((double)v))
MAP(atanh, (float)oct_atanh((double)v))
MAP(scale, fmaf(v, a, b))

static void map_pow(const float *x, float *y, size_t n, float a, float b)
{
    K(binary)(OCT_BINARY_POW, x, 1, &a, 0, y, 1, n);
}

static void (*const maps[OCT_UNARY_COUNT])(const float *, float *, size_t, float, float) = {
    [OCT_UNARY_COPY] = map_copy,
    [OCT_UNARY_RELU] = map_relu,
    [OCT_UNARY_CLIP] = map_clip,
    [OCT_UNARY_LEAKY_RELU] = map_leaky_relu,
    [OCT_UNARY_THRESHOLDED_RELU] = map_thresholded_relu,
    [OCT_UNARY_SIGMOID] = map_sigmoid,
    [OCT_UNARY_HARD_SIGMOID] = map_hard_sigmoid,
    [OCT_UNARY_HARD_SWISH] = map_hard_swish,
    [OCT_UNARY_SWISH] = map_swish,
    [OCT_UNARY_MISH] = map_mish,
    [OCT_UNARY_TANH] = map_tanh,
    [OCT_UNARY_ELU] = map_elu,
    [OCT_UNARY_CELU] = map_celu,
    [OCT_UNARY_SELU] = map_selu,
    [OCT_UNARY_SOFTPLUS] = map_softplus,
    [OCT_UNARY_SOFTSIGN] = map_softsign,
    [OCT_UNARY_ERF] = map_erf,
    [OCT_UNARY_GELU] = map_gelu,
    [OCT_UNARY_GELU_TANH] = map_gelu_tanh,
    [OCT_UNARY_EXP] = map_exp,
    [OCT_UNARY_EXPM1] = map_expm1,
    [OCT_UNARY_LOG] = map_log,
    [OCT_UNARY_LOG1P] = map_log1p,
    [OCT_UNARY_SQRT] = map_sqrt,
    [OCT_UNARY_RSQRT] = map_rsqrt,
    [OCT_UNARY_RECIPROCAL] = map_reciprocal,
    [OCT_UNARY_SQUARE] = map_square,
    [OCT_UNARY_ABS] = map_abs,
    [OCT_UNARY_NEG] = map_neg,
    [OCT_UNARY_SIGN] = map_sign,
    [OCT_UNARY_FLOOR] = map_floor,
    [OCT_UNARY_CEIL] = map_ceil,
    [OCT_UNARY_ROUND] = map_round,
    [OCT_UNARY_SIN] = map_sin,
    [OCT_UNARY_COS] = map_cos,
    [OCT_UNARY_TAN] = map_tan,
    [OCT_UNARY_SHRINK] = map_shrink,
    [OCT_UNARY_ASIN] = map_asin,
    [OCT_UNARY_ACOS] = map_acos,
    [OCT_UNARY_ATAN] = map_atan,
    [OCT_UNARY_SINH] = map_sinh,
    [OCT_UNARY_COSH] = map_cosh,
    [OCT_UNARY_ASINH] = map_asinh,
    [OCT_UNARY_ACOSH] = map_acosh,
    [OCT_UNARY_ATANH] = map_atanh,
    [OCT_UNARY_POW] = map_pow,
    [OCT_UNARY_SCALE] = map_scale,
};

void K(unary)(const oct_unary *f, const float *x, float *y, size_t n)
{
    maps[f->op](x, y, n, f->a, f->b);
}
