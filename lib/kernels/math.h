/* lib/kernels/math.h -- elementary functions with the same bits on every machine.
 *
 * Plain C with explicit fmaf and no branches on the data, so that compilers vectorise loops over them (but for math.c
 * and math_double.c); compiled once per instruction set (lib/kernels/elem), every version does the same IEEE operations
 * in the same order. libm's versions differ between CPUs: nothing that reaches a result may use them (sqrtf, fabsf,
 * floorf, ceilf, rintf, fmaf are exact and fine). NaN in gives NaN out; overflow gives infinity; results go down to
 * denormals. Coefficients: tests/generate/fit_math.py.
 *
 * Largest error against higher precision, in units of the last place (tests/check/check_elem.c asserts it):
 *   expf 1.1   expm1f 1.6   logf 1.0   log1pf 1.7   tanhf 2.5   sigmoidf 2.3   erff 1.5   softplusf 2.0
 *   powf, sinf, cosf, tanf 0.51; geluf 8e-7 of 1 + |result|
 *   double: exp 1.2, log 1.0, expm1, log1p 2, sinh, cosh, tanh, asinh, acosh, atanh, sin, cos 2.5, asin, acos,
 * atan 3.5, tan 5, erf 13 */
#ifndef OCT_KERNELS_MATH_H
#define OCT_KERNELS_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static inline int32_t oct_bits_of(float x)
{
    union {
        float f;
        int32_t i;
    } u = { x };
    return u.i;
}
static inline float oct_float_of(int32_t i)
{
    union {
        int32_t i;
        float f;
    } u = { i };
    return u.f;
}
static inline int64_t oct_bits_of_double(double x)
{
    union {
        double f;
        int64_t i;
    } u = { x };
    return u.i;
}
static inline double oct_double_of(int64_t i)
{
    union {
        int64_t i;
        double f;
    } u = { i };
    return u.f;
}

/* Adding this to |x| < 2^22 leaves x, rounded half to even, in the low bits: rintf for loops. */
#define OCT_ROUND_MAGIC 12582912.0f /* 1.5 * 2^23 */
#define OCT_ROUND_BITS 0x4b400000
#define OCT_ROUND_MAGIC_D 6755399441055744.0 /* 1.5 * 2^52 */

/* Nearest integer, half to even, of |x| < 2^22. */
static inline int32_t oct_round_small(float x)
{
    return oct_bits_of(x + OCT_ROUND_MAGIC) - OCT_ROUND_BITS;
}

/* |magnitude| with the sign of `sign`. */
static inline float oct_with_sign(float magnitude, float sign)
{
    return oct_float_of(
        (int32_t)(((uint32_t)oct_bits_of(magnitude) & 0x7fffffffu) | ((uint32_t)oct_bits_of(sign) & 0x80000000u)));
}
static inline float oct_absf(float x)
{
    return oct_float_of((int32_t)((uint32_t)oct_bits_of(x) & 0x7fffffffu));
}

/* x with a magnitude of at most `most`, which NaN gets too. By integers: compilers make masks of comparisons of
 * floats. */
static inline float oct_limitf(float x, float most)
{
    const int32_t a = oct_bits_of(oct_absf(x)), b = oct_bits_of(most);
    return oct_with_sign(oct_float_of(a < b ? a : b), x);
}

/* x = k ln 2 + r; returns exp(r) - 1, |r| <= 0.348. x in [-200, 200]. */
static inline float oct_exp_reduce(float x, int32_t *k)
{
    float t = fmaf(x, 0x1.715476p+0f, OCT_ROUND_MAGIC);
    *k = oct_bits_of(t) - OCT_ROUND_BITS;
    float n = t - OCT_ROUND_MAGIC;
    float r = fmaf(n, -0x1.62e4p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6be81ep-10f;
    p = fmaf(p, r, 0x1.123f9p-7f);
    p = fmaf(p, r, 0x1.5556b8p-5f);
    p = fmaf(p, r, 0x1.555488p-3f);
    p = fmaf(p, r, 0x1.fffffep-2f);
    return fmaf(r * r, p, r);
}

/* 2^k for k in [-126, 127]. */
static inline float oct_pow2(int32_t k)
{
    return oct_float_of((int32_t)((uint32_t)(k + 127) << 23));
}

/* oct_expf of -87.3 < x < 88, with fewer steps and the same bits. */
static inline float oct_expf_small(float x)
{
    int32_t k;
    float q = oct_exp_reduce(x, &k);
    return (1.0f + q) * oct_pow2(k);
}

static inline float oct_expf(float x)
{
    int32_t k;
    float q = oct_exp_reduce(oct_limitf(x, 130.0f), &k);
    int32_t half = k >> 1; /* two steps: k reaches 188, and denormal results round once */
    float y = (1.0f + q) * oct_pow2(half) * oct_pow2(k - half);
    return x != x ? x : y;
}

/* exp(x) - 1, accurate near zero. */
static inline float oct_expm1f(float x)
{
    float c = x < 89.0f ? x : 89.0f;
    c = c > -30.0f ? c : -30.0f;
    int32_t k;
    float q = oct_exp_reduce(c, &k);
    float s = oct_pow2(k - 1); /* half the scale: k reaches 128 */
    float y = 2.0f * fmaf(s, q, s - 0.5f);
    y = oct_with_sign(y, x); /* -0 stays */
    return x != x ? x : y;
}

/* Natural logarithm: -inf at 0, NaN below. */
static inline float oct_logf(float x)
{
    float up = x < 0x1p-126f ? x * 0x1p23f : x; /* denormals */
    int32_t lift = x < 0x1p-126f ? 23 : 0;
    int32_t b = oct_bits_of(up);
    int32_t e = (int32_t)((uint32_t)b - 0x3f3504f3u) >> 23; /* m in [sqrt(1/2), sqrt 2) */
    float m = oct_float_of((int32_t)((uint32_t)b - ((uint32_t)e << 23)));
    float n = (float)(e - lift), f = m - 1.0f, z = f * f;
    float p = 0x1.1434a2p-4f;
    p = fmaf(p, f, -0x1.dd7ca2p-4f);
    p = fmaf(p, f, 0x1.e692bap-4f);
    p = fmaf(p, f, -0x1.fc3d56p-4f);
    p = fmaf(p, f, 0x1.23406ap-3f);
    p = fmaf(p, f, -0x1.555bcap-3f);
    p = fmaf(p, f, 0x1.99a42cp-3f);
    p = fmaf(p, f, -0x1.000006p-2f);
    p = fmaf(p, f, 0x1.555548p-2f);
    p = p * f;
    p = fmaf(n, 0x1.7f7d1cp-20f, fmaf(z, p, -0.5f * z));
    float y = fmaf(n, 0x1.62e4p-1f, f + p);
    y = x < INFINITY ? y : x; /* inf, NaN */
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : y;
}

/* log(1 + x), accurate near zero. */
static inline float oct_log1pf(float x)
{
    float u = 1.0f + x;
    float lost = x - (u - 1.0f); /* what rounding u took away */
    float y = oct_logf(u) + lost / u;
    y = u == 1.0f ? x : y;
    return x < INFINITY && u > 0.0f ? y : (u == 0.0f ? -INFINITY : (u < 0.0f ? NAN : x));
}

static inline float oct_tanhf(float x)
{
    float a = oct_absf(x);
    int32_t k;
    float q = oct_exp_reduce(2.0f * (a > 10.0f ? 10.0f : a), &k); /* NaN stays */
    float s = oct_pow2(k - 1);
    float t = 2.0f * fmaf(s, q, s - 0.5f);
    return oct_with_sign(t / (t + 2.0f), x);
}

/* 1 / (1 + exp(-x)), accurate on both sides. */
static inline float oct_sigmoidf(float x)
{
    float z = oct_expf(-oct_absf(x));
    float y = (x < 0.0f ? z : 1.0f) / (1.0f + z);
    return x != x ? x : y;
}

/* Of |x| < 87 the same bits with fewer steps. */
#define OCT_SIGMOID_SMALL 87.0f
static inline float oct_sigmoidf_small(float x)
{
    float z = oct_expf_small(-oct_absf(x));
    return (x < 0.0f ? z : 1.0f) / (1.0f + z);
}

static inline float oct_erff(float x)
{
    float a = oct_absf(x), z = x * x;
    float t = a < 4.0f ? a : 4.0f;
    float s = -0x1.4067bap-11f;
    s = fmaf(s, z, 0x1.48bdb6p-8f);
    s = fmaf(s, z, -0x1.b6cb72p-6f);
    s = fmaf(s, z, 0x1.ce1ebap-4f);
    s = fmaf(s, z, -0x1.8126fep-2f);
    s = fmaf(s, z, 0x1.06eba6p-3f);
    float near = fmaf(x, s, x);
    float g = 0x1.68b7c6p-23f; /* -log(erfc(t)) / t */
    g = fmaf(g, t, 0x1.e1db76p-17f);
    g = fmaf(g, t, -0x1.7c09fap-12f);
    g = fmaf(g, t, 0x1.f32a1ap-9f);
    g = fmaf(g, t, -0x1.8af12ep-6f);
    g = fmaf(g, t, 0x1.b4b46cp-4f);
    g = fmaf(g, t, 0x1.451638p-1f);
    g = fmaf(g, t, 0x1.20f258p+0f);
    float far = oct_with_sign(1.0f - oct_expf_small(-g * t), x);
    float y = a < 0.9f ? near : far;
    return x != x ? x : y;
}

/* x Phi(x), Phi the normal distribution function: 0.5 + t P(t^2) / Q(t^2), within 2e-7 of Phi. At the ends t P / Q,
 * rounded, is 0.5 or -0.5, so far below zero the result is 0. */
#define OCT_GELU_END 0x1.4da6ccp+2f
static inline float oct_geluf(float x)
{
    float t = oct_limitf(x, OCT_GELU_END); /* NaN too: the last product keeps it */
    float z = t * t;
    float p = 0x1.9d2d86p-26f;
    p = fmaf(p, z, 0x1.ac175cp-18f);
    p = fmaf(p, z, 0x1.503f84p-13f);
    p = fmaf(p, z, 0x1.2f4cf4p-8f);
    p = fmaf(p, z, 0x1.0dcf98p-5f);
    p = fmaf(p, z, 0x1.988452p-2f);
    float q = 0x1.4c192ap-20f;
    q = fmaf(q, z, 0x1.2b464ap-14f);
    q = fmaf(q, z, 0x1.e172a4p-10f);
    q = fmaf(q, z, 0x1.cd070ep-6f);
    q = fmaf(q, z, 0x1.fe694ep-3f);
    q = fmaf(q, z, 1.0f);
    return x * (t * (p / q) + 0.5f);
}

/* log(1 + exp(x)), accurate on both sides. */
static inline float oct_softplusf(float x)
{
    float y = (x > 0.0f ? x : 0.0f) + oct_log1pf(oct_expf(-oct_absf(x)));
    return x != x ? x : y;
}

/* ------------------------------------------------------------------ double, for tables and powf */

/* x = k ln 2 + r; returns exp(r) - 1, |r| <= 0.347. |x| <= 800. */
static inline double oct_exp_reduce_d(double x, int64_t *k)
{
    double t = fma(x, 0x1.71547652b82fep+0, OCT_ROUND_MAGIC_D);
    *k = oct_bits_of_double(t) - oct_bits_of_double(OCT_ROUND_MAGIC_D);
    double n = t - OCT_ROUND_MAGIC_D;
    double r = fma(n, -0x1.62e42fefa2p-1, x);
    r = fma(n, -0x1.9ef35793c7673p-41, r);
    double p = 0x1.1f9f67f1cc2d9p-29;
    p = fma(p, r, 0x1.af6f0b39a2826p-26);
    p = fma(p, r, 0x1.27e4be2bf07f0p-22);
    p = fma(p, r, 0x1.71ddee4dd1956p-19);
    p = fma(p, r, 0x1.a01a01b4dad3bp-16);
    p = fma(p, r, 0x1.a01a01b43c0c5p-13);
    p = fma(p, r, 0x1.6c16c16c133a0p-10);
    p = fma(p, r, 0x1.111111110ea6ap-7);
    p = fma(p, r, 0x1.555555555555ep-5);
    p = fma(p, r, 0x1.555555555555cp-3);
    p = fma(p, r, 0.5);
    return fma(r * r, p, r);
}

static inline double oct_exp(double x)
{
    double c = x < 800.0 ? x : 800.0;
    c = c > -800.0 ? c : -800.0;
    int64_t k;
    double q = 1.0 + oct_exp_reduce_d(c, &k);
    int64_t half = (k - (k & 1)) / 2;
    double y = q * oct_double_of((int64_t)((uint64_t)(half + 1023) << 52)) *
               oct_double_of((int64_t)((uint64_t)(k - half + 1023) << 52));
    return x != x ? x : y;
}

static inline double oct_log(double x)
{
    double up = x < 0x1p-1022 ? x * 0x1p52 : x;
    int64_t lift = x < 0x1p-1022 ? 52 : 0;
    uint64_t b = (uint64_t)oct_bits_of_double(up);
    uint64_t e52 = (b - 0x3fe6a09e667f3bcdu) & 0xfff0000000000000u; /* exponent in place; m in [sqrt(1/2), sqrt 2) */
    double m = oct_double_of((int64_t)(b - e52));
    int32_t e = (int32_t)(e52 >> 32) >> 20;
    double n = (double)(e - (int32_t)lift), f = m - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double p = 0x1.0ef0f64e53fbfp-3;
    p = fma(p, z, 0x1.0f6abbfd369bfp-3);
    p = fma(p, z, 0x1.3b1ff8e5a0046p-3);
    p = fma(p, z, 0x1.745ce2e88a384p-3);
    p = fma(p, z, 0x1.c71c724740879p-3);
    p = fma(p, z, 0x1.249249243db49p-2);
    p = fma(p, z, 0x1.9999999999ccdp-2);
    p = fma(p, z, 0x1.5555555555555p-1);
    /* log(1 + f) = 2 s + s z p, and 2 s = f - s f. */
    double h = 0.5 * f * f;
    double tail = fma(s, h + z * p, fma(n, 0x1.9ef35793c7673p-41, 0.0));
    double y = fma(n, 0x1.62e42fefa2p-1, f - (h - tail));
    y = x < (double)INFINITY ? y : x;
    y = x == 0.0 ? -(double)INFINITY : y;
    return x < 0.0 ? (double)NAN : y;
}

/* exp(x) - 1, accurate near zero. */
static inline double oct_expm1(double x)
{
    double c = x < 710.0 ? x : 710.0; /* infinity; and -1 at the other end */
    c = c > -40.0 ? c : -40.0;
    int64_t k;
    double q = oct_exp_reduce_d(c, &k);
    double s = oct_double_of((int64_t)((uint64_t)(k - 1 + 1023) << 52)); /* half the scale: k reaches 1024 */
    double y = 2.0 * fma(s, q, s - 0.5);
    y = x == 0.0 ? x : y;
    return x != x ? x : y;
}

static inline double oct_log1p(double x)
{
    double u = 1.0 + x;
    double y = oct_log(u) + (x - (u - 1.0)) / u; /* what rounding u took away */
    y = u == 1.0 || x == (double)INFINITY ? x : y;
    return x == -1.0 ? -(double)INFINITY : y;
}

/* Of |x| <= 700. */
static inline double oct_sinh_small(double x)
{
    double e = oct_expm1(fabs(x));
    return copysign(0.5 * (e + e / (e + 1.0)), x);
}
static inline double oct_cosh_small(double x)
{
    double e = oct_exp(fabs(x));
    return 0.5 * (e + 1.0 / e);
}

/* Beyond 200 both are infinite as floats. */
static inline float oct_sinhf(float x)
{
    return (float)oct_sinh_small((double)(x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x));
}
static inline float oct_coshf(float x)
{
    return (float)oct_cosh_small((double)(x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x));
}

static inline double oct_tanh(double x)
{
    double a = fabs(x), e = oct_expm1(a > 20.0 ? 40.0 : 2.0 * a);
    return copysign(e / (e + 2.0), x);
}

static inline double oct_asinh(double x)
{
    double a = fabs(x);
    double far = oct_log(a) + 0x1.62e42fefa39efp-1; /* log 2 */
    double near = oct_log1p(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
    return copysign(a > 0x1p28 ? far : near, x);
}

static inline double oct_acosh(double x)
{
    double t = x - 1.0;
    double far = oct_log(x) + 0x1.62e42fefa39efp-1, near = oct_log1p(t + sqrt(fma(t, t, 2.0 * t)));
    double y = x > 0x1p28 ? far : near;
    return t < 0.0 ? (double)NAN : y;
}

static inline double oct_atanh(double x)
{
    double a = fabs(x), y = 0.5 * oct_log1p(2.0 * a / (1.0 - a));
    return copysign(a > 1.0 ? (double)NAN : y, x);
}

static inline double oct_atan(double x)
{
    double a = fabs(x);
    bool far = a > 0x1.3504f333f9de6p+1, mid = a > 0x1.a827999fcef32p-2; /* sqrt 2 + 1, sqrt 2 - 1 */
    double r = (far ? -1.0 : mid ? a - 1.0 : a) / (far ? a : mid ? a + 1.0 : 1.0);
    double base = far ? 0x1.921fb54442d18p+0 : mid ? 0x1.921fb54442d18p-1 : 0.0; /* pi / 2, pi / 4 */
    double z = r * r, p = 0x1.f77330bfd1c34p-7;
    p = fma(p, z, -0x1.13afe81e72ae3p-5);
    p = fma(p, z, 0x1.719c771131ef7p-5);
    p = fma(p, z, -0x1.abac913fa0ac5p-5);
    p = fma(p, z, 0x1.e17a0f62543c6p-5);
    p = fma(p, z, -0x1.110ce83ae061dp-4);
    p = fma(p, z, 0x1.3b137729edb3ap-4);
    p = fma(p, z, -0x1.745d152eb7041p-4);
    p = fma(p, z, 0x1.c71c71bb1bb09p-4);
    p = fma(p, z, -0x1.249249247ef86p-3);
    p = fma(p, z, 0x1.99999999997dap-3);
    p = fma(p, z, -0x1.5555555555555p-2);
    return copysign(base + fma(r * z, p, r), x);
}

static inline double oct_asin(double x)
{
    return oct_atan(x / sqrt((1.0 - x) * (1.0 + x))); /* beyond 1: NaN from the root */
}

static inline double oct_acos(double x)
{
    return 2.0 * oct_atan(sqrt((1.0 - x) / (1.0 + x)));
}

/* x to the y; 0 <= x < infinity (but -0), y finite. The product's error, some 1e-15 of a result's logarithm below 90,
 * stays far below half a float's unit. */
static inline float oct_powf_small(float x, float y)
{
    float r = (float)oct_exp((double)y * oct_log((double)x));
    r = y == 0.5f ? sqrtf(x) : r;
    r = y == 2.0f ? x * x : r;
    r = y == 3.0f ? x * x * x : r;
    return y == 0.0f ? 1.0f : r;
}

/* |x| = q pi/2 + r, |r| <= pi/4, of |x| < OCT_TURN_SMALL; returns r. Of q the lowest two bits hold. */
#define OCT_TURN_SMALL 0x1p23f
static inline double oct_turn_reduce(float x, int64_t *q)
{
    double a = (double)oct_absf(x), t = a * 0x1.45f306dc9c883p-1 + OCT_ROUND_MAGIC_D, n = t - OCT_ROUND_MAGIC_D;
    *q = oct_bits_of_double(t);
    return fma(-n, 0x1.1a62633145c07p-54, fma(-n, 0x1.921fb54442d18p+0, a));
}

static inline double oct_turn_sin_poly(double r)
{
    double z = r * r, s = -0x1.a94dfe9b07253p-26;
    s = fma(s, z, 0x1.71d738f7b8caap-19);
    s = fma(s, z, -0x1.a019f8dc08a1ep-13);
    s = fma(s, z, 0x1.1111110c472d9p-7);
    s = fma(s, z, -0x1.5555555551ef5p-3);
    return fma(r * z, s, r);
}
static inline double oct_turn_cos_poly(double r)
{
    double z = r * r, c = -0x1.2461571722115p-22;
    c = fma(c, z, 0x1.a012649aeb5ffp-16);
    c = fma(c, z, -0x1.6c16bb02cfb57p-10);
    c = fma(c, z, 0x1.5555555237481p-5);
    return fma(z * z, c, fma(z, -0.5, 1.0));
}

/* y with its sign flipped where bit 1 of q is set. */
static inline double oct_turn_sign(double y, int64_t q)
{
    return oct_double_of((int64_t)((uint64_t)oct_bits_of_double(y) ^ ((uint64_t)q & 2) << 62));
}

/* Of what oct_turn_reduce gives for x. They are odd or even: the sign of x, -0's too, is taken as a bit. */
static inline float oct_turn_sin(float x, double r, int64_t q)
{
    double s = oct_turn_sin_poly(r), c = oct_turn_cos_poly(r);
    return oct_with_sign(1.0f, x) * (float)oct_turn_sign(q & 1 ? c : s, q);
}
static inline float oct_turn_cos(double r, int64_t q)
{
    double s = oct_turn_sin_poly(r), c = oct_turn_cos_poly(r);
    return (float)oct_turn_sign(q & 1 ? s : c, q + 1);
}
static inline float oct_turn_tan(float x, double r, int64_t q)
{
    double s = oct_turn_sin_poly(r), c = oct_turn_cos_poly(r);
    return oct_with_sign(1.0f, x) * (float)((q & 1 ? -c : s) / (q & 1 ? s : c));
}

/* |x| < OCT_TURN_SMALL, without branches. */
static inline float oct_sinf_small(float x)
{
    int64_t q;
    double r = oct_turn_reduce(x, &q);
    return oct_turn_sin(x, r, q);
}
static inline float oct_cosf_small(float x)
{
    int64_t q;
    double r = oct_turn_reduce(x, &q);
    return oct_turn_cos(r, q);
}
static inline float oct_tanf_small(float x)
{
    int64_t q;
    double r = oct_turn_reduce(x, &q);
    return oct_turn_tan(x, r, q);
}

/* x to the y with C's special cases; y = 2 and y = 3 are x*x and x*x*x, y = 0.5 the root. */
float oct_powf(float x, float y);
/* Radians; any finite argument (exact reduction). Infinity gives NaN. */
float oct_sinf(float x);
float oct_cosf(float x);
float oct_tanf(float x);

/* The same of double, and others; a float function is the double one, rounded. NaN outside the domain. */
double oct_sinh(double x);
double oct_cosh(double x);
double oct_sin(double x);
double oct_cos(double x);
double oct_tan(double x);
double oct_erf(double x);

#endif
