/* tests/check/check_math.c -- the elementary functions of kernels/math.h against long double: the bounds its
 * header states, and C's special values. */
#include "check.h"
#include "kernels/math.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

typedef long double ld;

static ld sigmoid_ref(ld x)
{
    return 1 / (1 + expl(-x));
}
static ld softplus_ref(ld x)
{
    return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}

/* Distance in units of the last place of a float (bits 24) or double (53). */
static double distance(ld got, ld want, int bits, int least)
{
    if (got != got || want != want)
        return (got != got) == (want != want) ? 0 : 1e9;
    if (isinf(got) || isinf(want))
        return got == want || fabsl(want) > FLT_MAX ? 0 : 1e9;
    int e;
    frexpl(want, &e);
    return (double)fabsl((got - want) / ldexpl(1, (e < least ? least : e) - bits));
}

static float any_float(oct_check *t)
{
    return oct_float_of((int32_t)oct_check_random(t));
}

static float between(oct_check *t, float lo, float hi)
{
    return lo + (hi - lo) * (float)((double)oct_check_random(t) * 0x1p-32);
}

static void judge(oct_check *t, const char *name, double worst, float at, double bound)
{
    oct_check_wrong(t, !(worst <= bound), "%s: %.3f units at %a, bound %.2f", name, worst, (double)at, bound);
}

static void check_functions(oct_check *t)
{
    static const struct {
        const char *name;
        float (*f)(float);
        ld (*ref)(ld);
        float lo, hi; /* where most samples lie; one in four is any float in the domain */
        float domain;
        double bound;
    } cases[] = {
        { "expf", oct_expf, expl, -110, 95, -FLT_MAX, 1.1 },
        { "expm1f", oct_expm1f, expm1l, -20, 95, -FLT_MAX, 1.6 },
        { "logf", oct_logf, logl, 0.25f, 4, 0, 1.0 },
        { "log1pf", oct_log1pf, log1pl, -0.99f, 4, -1, 1.7 },
        { "tanhf", oct_tanhf, tanhl, -10, 10, -FLT_MAX, 2.5 },
        { "sigmoidf", oct_sigmoidf, sigmoid_ref, -104, 104, -FLT_MAX, 2.3 },
        { "erff", oct_erff, erfl, -5, 5, -FLT_MAX, 1.5 },
        { "softplusf", oct_softplusf, softplus_ref, -104, 104, -FLT_MAX, 2.0 },
        { "sinf", oct_sinf, sinl, -1000, 1000, -FLT_MAX, 0.51 },
        { "cosf", oct_cosf, cosl, -1000, 1000, -FLT_MAX, 0.51 },
        { "tanf", oct_tanf, tanl, -1000, 1000, -FLT_MAX, 0.51 },
    };
    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        double worst = 0;
        float at = 0;
        for (int i = 0; i < 40000; i++) {
            const float x = i % 4 ? between(t, cases[c].lo, cases[c].hi) : any_float(t);
            if (!(x >= cases[c].domain && x <= FLT_MAX))
                continue;
            const double d = distance(cases[c].f(x), cases[c].ref((ld)x), 24, -125);
            if (d > worst)
                worst = d, at = x;
        }
        judge(t, cases[c].name, worst, at, cases[c].bound);
    }
}

/* Far below zero the result is 0; elsewhere the error is that of Phi times x. */
static void check_gelu(oct_check *t)
{
    double worst = 0;
    float at = 0;
    for (int i = 0; i < 100000; i++) {
        const float x = i % 8 ? between(t, -12, 12) : any_float(t);
        if (!(fabsf(x) < 1e30f))
            continue;
        const ld want = 0.5L * (ld)x * erfcl(-(ld)x / sqrtl(2));
        const double d = (double)(fabsl((ld)oct_geluf(x) - want) / (1 + fabsl(want)));
        if (d > worst)
            worst = d, at = x;
    }
    judge(t, "geluf, in units of 1 + |result|", worst, at, 8e-7);
    judge(t, "geluf of -1e30", fabs((double)oct_geluf(-1e30f)), -1e30f, 0);
    judge(t, "geluf of 1e30", fabs((double)oct_geluf(1e30f) - (double)1e30f), 1e30f, 0);
}

static void check_double(oct_check *t)
{
    double worst[3] = { 0 };
    for (int i = 0; i < 40000; i++) {
        const double x = (double)between(t, -700, 700);
        const double y = i % 2 ? oct_exp(x) : 0.4 + 1.8 * (double)oct_check_random(t) * 0x1p-32;
        const double a = distance(oct_exp(x), expl((ld)x), 53, -1021), b = distance(oct_log(y), logl((ld)y), 53, -1021);
        worst[0] = a > worst[0] ? a : worst[0];
        worst[1] = b > worst[1] ? b : worst[1];
        const float base = i % 2 ? fabsf(any_float(t)) : between(t, 0.5f, 2.0f), p = between(t, -60, 60);
        const double c = base < FLT_MAX ? distance(oct_powf(base, p), powl((ld)base, (ld)p), 24, -125) : 0;
        worst[2] = c > worst[2] ? c : worst[2];
    }
    judge(t, "exp", worst[0], 0, 1.2);
    judge(t, "log", worst[1], 0, 1.0);
    judge(t, "powf", worst[2], 0, 0.51);
}

/* The power of LRN, which is taken by roots, has the bits of the logarithm's. The listed ones lie beside the middle
 * between two floats; of all floats 28 tell the two ways apart if that is not looked at. */
static void check_three_quarters(oct_check *t)
{
    static const float beside[] = { 0x1.fffffcp-125f, 0x1.71e55ap-122f, 0x1.000004p-112f, 0x1.ea7426p-112f,
                                    0x1.fffffcp-109f, 0x1.00086cp-99f,  0x1.fffffcp-73f };
    int differ = 0;
    float at = 0;
    for (int i = 0; i < 200000; i++) {
        const float x = (size_t)i < OCT_COUNT(beside) ? beside[i]
                        : i % 2                       ? fabsf(any_float(t))
                                                      : between(t, 0.5f, 2.0f);
        if (!(x > 0) || x > FLT_MAX || oct_powf(x, 0.75f) == (float)oct_exp(0.75 * oct_log((double)x)))
            continue;
        differ++;
        at = x;
    }
    judge(t, "powf to the 0.75, inputs that differ", differ, at, 0);
}

/* Doubles between lo and hi, and of all magnitudes from 2^-60 to the farther end. */
static void check_more_double(oct_check *t)
{
    static const struct {
        const char *name;
        double (*f)(double);
        ld (*ref)(ld);
        double lo, hi, bound;
    } cases[] = {
        { "expm1", oct_expm1, expm1l, -40, 709, 2.0 },  { "log1p", oct_log1p, log1pl, -0.999, 1e6, 2.0 },
        { "sinh", oct_sinh, sinhl, -710, 710, 2.5 },    { "cosh", oct_cosh, coshl, -710, 710, 2.5 },
        { "tanh", oct_tanh, tanhl, -30, 30, 2.5 },      { "asinh", oct_asinh, asinhl, -1e12, 1e12, 2.5 },
        { "acosh", oct_acosh, acoshl, 1, 1e12, 2.5 },   { "atanh", oct_atanh, atanhl, -1, 1, 2.5 },
        { "sin", oct_sin, sinl, -0x1p62, 0x1p62, 2.5 }, { "cos", oct_cos, cosl, -0x1p62, 0x1p62, 2.5 },
        { "tan", oct_tan, tanl, -0x1p62, 0x1p62, 5.0 }, { "asin", oct_asin, asinl, -1, 1, 3.5 },
        { "acos", oct_acos, acosl, -1, 1, 3.5 },        { "atan", oct_atan, atanl, -1e12, 1e12, 3.5 },
        { "erf", oct_erf, erfl, -7, 7, 13.0 },
    };
    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        double worst = 0, at = 0, top = fmax(-cases[c].lo, cases[c].hi);
        for (int i = 0; i < 20000; i++) {
            double u = (double)oct_check_random(t) * 0x1p-32 + (double)oct_check_random(t) * 0x1p-64;
            double x = i % 2 ? cases[c].lo + (cases[c].hi - cases[c].lo) * u : top * exp2(-60 * u) * (i % 4 ? 1 : -1);
            if (x < cases[c].lo || x > cases[c].hi)
                continue;
            const double d = distance(cases[c].f(x), cases[c].ref((ld)x), 53, -1021);
            if (d > worst)
                worst = d, at = x;
        }
        judge(t, cases[c].name, worst, (float)at, cases[c].bound);
    }
    /* Multiples of pi / 2 in binary64, and the largest numbers: reduction with few bits left. */
    static const double hard[] = {
        0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1, 0x1.921fb54442d18p+40, 0x1.6ac5b262ca1ffp+849, 1e300, 1e22
    };
    for (size_t i = 0; i < OCT_COUNT(hard); i++) {
        judge(t, "sin of a hard case", distance(oct_sin(hard[i]), sinl((ld)hard[i]), 53, -1021), (float)hard[i], 2.5);
        judge(t, "cos of a hard case", distance(oct_cos(hard[i]), cosl((ld)hard[i]), 53, -1021), (float)hard[i], 2.5);
    }
}

static void judge_special(oct_check *t, const char *name, float x, float y, float got, float want)
{
    const bool near = !signbit(got) == !signbit(want) && (got == want || fabsf(got - want) <= 1e-6f * fabsf(want));
    oct_check_wrong(t, !near && (got == got || want == want), "%s(%g, %g): %g, want %g", name, (double)x, (double)y,
                    (double)got, (double)want);
}

static void check_special(oct_check *t)
{
    static const float v[] = { 0.0f,    -0.0f, INFINITY, -INFINITY, NAN,      1,        -1,    1e-40f,
                               -1e-40f, 3e38f, -3e38f,   88.8f,     -88,      -104,     2,     -2,
                               3,       -3,    0.5f,     -0.5f,     16777216, 16777215, -1e-8f };
    for (size_t i = 0; i < OCT_COUNT(v); i++) {
        const float x = v[i];
        judge_special(t, "expf", x, 0, oct_expf(x), expf(x));
        judge_special(t, "expm1f", x, 0, oct_expm1f(x), expm1f(x));
        judge_special(t, "logf", x, 0, oct_logf(x), logf(x));
        judge_special(t, "log1pf", x, 0, oct_log1pf(x), log1pf(x));
        judge_special(t, "tanhf", x, 0, oct_tanhf(x), tanhf(x));
        judge_special(t, "erff", x, 0, oct_erff(x), erff(x));
        judge_special(t, "sinf", x, 0, oct_sinf(x), sinf(x));
        judge_special(t, "cosf", x, 0, oct_cosf(x), cosf(x));
        judge_special(t, "tanf", x, 0, oct_tanf(x), tanf(x));
        judge_special(t, "asin", x, 0, (float)oct_asin((double)x), asinf(x));
        judge_special(t, "acos", x, 0, (float)oct_acos((double)x), acosf(x));
        judge_special(t, "atan", x, 0, (float)oct_atan((double)x), atanf(x));
        judge_special(t, "sinh", x, 0, (float)oct_sinh((double)x), sinhf(x));
        judge_special(t, "cosh", x, 0, (float)oct_cosh((double)x), coshf(x));
        judge_special(t, "sinhf", x, 0, oct_sinhf(x), sinhf(x));
        judge_special(t, "coshf", x, 0, oct_coshf(x), coshf(x));
        judge_special(t, "asinh", x, 0, (float)oct_asinh((double)x), asinhf(x));
        judge_special(t, "acosh", x, 0, (float)oct_acosh((double)x), acoshf(x));
        judge_special(t, "atanh", x, 0, (float)oct_atanh((double)x), atanhf(x));
        judge_special(t, "sin", x, 0, (float)oct_sin((double)x), sinf(x));
        judge_special(t, "tan", x, 0, (float)oct_tan((double)x), tanf(x));
        judge_special(t, "erf", x, 0, (float)oct_erf((double)x), erff(x));
        judge_special(t, "expm1", x, 0, (float)oct_expm1((double)x), expm1f(x));
        judge_special(t, "log1p", x, 0, (float)oct_log1p((double)x), log1pf(x));
        for (size_t j = 0; j < OCT_COUNT(v); j++)
            judge_special(t, "powf", x, v[j], oct_powf(x, v[j]), powf(x, v[j]));
    }
}

void check_math(oct_check *t)
{
    check_functions(t);
    check_gelu(t);
    check_double(t);
    check_three_quarters(t);
    check_more_double(t);
    check_special(t);
}
