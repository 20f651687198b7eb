/* lib/kernels/elem/math_double.c -- elementary functions of double, plain C with fma: the same bits everywhere. */
#include "kernels/math.h"

#include <stdbool.h>

#define PI_2 0x1.921fb54442d18p+0
#define PI_2_TAIL 0x1.1a62633145c07p-54
#define PI_2_REST -0x1.f1976b7ed8fbcp-110

/* ------------------------------------------------------------------ hyperbolic functions */

double oct_sinh(double x)
{
    const double e = oct_exp(0.5 * fabs(x)); /* of x alone it would overflow too early */
    return fabs(x) > 700.0 ? copysign(0.5 * e * e, x) : oct_sinh_small(x);
}

double oct_cosh(double x)
{
    const double e = oct_exp(0.5 * fabs(x));
    return fabs(x) > 700.0 ? 0.5 * e * e : oct_cosh_small(x);
}

/* ------------------------------------------------------------------ trigonometric functions */

/* 2 / pi as bits behind the point. */
static const uint32_t two_over_pi[] = {
    0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
    0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
    0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu,
    0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu,
    0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du,
};

/* 64 bits of a number from bit `from`; limbs of 32 bits, the least first. */
static uint64_t bits_at(const uint32_t *limb, int from)
{
    const uint32_t *v = limb + from / 32;
    const int at = from % 32;
    const uint64_t low = (uint64_t)v[1] << 32 | v[0];
    return at == 0 ? low : low >> at | (uint64_t)v[2] << (64 - at);
}

/* x = q pi/2 + r, |r| <= pi/4; returns r. x = m 2^e >= 2^20, m of 53 bits. Words of 2/pi whose products with x are
 * multiples of 4 are skipped; of seven more, the sum has at least 2 whole and 190 other bits that are right. */
static double reduce_large(double x, int *q)
{
    enum { WORDS = 7 };
    const uint64_t b = (uint64_t)oct_bits_of_double(x);
    const int e = (int)(b >> 52) - 1075; /* -32..971 */
    const uint64_t m = (b & 0xfffffffffffffu) | 0x10000000000000u;
    const int skip = e > 2 ? (e - 2) / 32 : 0, point = 32 * (skip + WORDS) - e; /* bits behind the point: 191..256 */
    uint32_t limb[WORDS + 4] = { 0 };
    for (int i = 0; i < WORDS; i++) {
        const uint64_t w = two_over_pi[skip + WORDS - 1 - i], low = w * (uint32_t)m, high = w * (m >> 32);
        uint64_t c = (uint64_t)limb[i] + (uint32_t)low;
        limb[i] = (uint32_t)c;
        c = (c >> 32) + limb[i + 1] + (low >> 32) + (uint32_t)high;
        limb[i + 1] = (uint32_t)c;
        limb[i + 2] = (uint32_t)((c >> 32) + (high >> 32));
    }
    uint64_t hi = bits_at(limb, point - 64), lo = bits_at(limb, point - 128);
    const bool down = hi >> 63; /* nearer to the next quadrant */
    *q = (int)(bits_at(limb, point) + down) & 3;
    if (down) {
        lo = ~lo + 1;
        hi = ~hi + (lo == 0);
    }
    const double f = (double)hi * 0x1p-64 + (double)lo * 0x1p-128;
    return (down ? -f : f) * PI_2;
}

static double reduce(double x, int *q)
{
    const double a = fabs(x);
    if (a >= 0x1p20)
        return reduce_large(a, q);
    const double n = rint(a * 0x1.45f306dc9c883p-1);
    *q = (int)n & 3;
    double r = fma(-n, PI_2, a); /* exact: both sides are multiples of 2^-52, or n is 0 */
    r = fma(-n, PI_2_TAIL, r);
    return fma(-n, PI_2_REST, r);
}

static double sin_poly(double r)
{
    double z = r * r, s = -0x1.aaaf9c98ba8aep-41;
    s = fma(s, z, 0x1.6120aa7cfed2cp-33);
    s = fma(s, z, -0x1.ae6452c3a2369p-26);
    s = fma(s, z, 0x1.71de3a5361165p-19);
    s = fma(s, z, -0x1.a01a01a018d3fp-13);
    s = fma(s, z, 0x1.111111111110cp-7);
    s = fma(s, z, -0x1.5555555555555p-3);
    return fma(r * z, s, r);
}

static double cos_poly(double r)
{
    double z = r * r, c = 0x1.aaffd0b540c57p-45;
    c = fma(c, z, -0x1.9393c42657c25p-37);
    c = fma(c, z, 0x1.1eed8d2a8fb4ap-29);
    c = fma(c, z, -0x1.27e4fb7681d51p-22);
    c = fma(c, z, 0x1.a01a01a019687p-16);
    c = fma(c, z, -0x1.6c16c16c16c14p-10);
    c = fma(c, z, 0x1.5555555555555p-5);
    return fma(z * z, c, fma(z, -0.5, 1.0));
}

double oct_sin(double x)
{
    if (!(fabs(x) < (double)INFINITY))
        return x - x;
    int q;
    double r = reduce(x, &q), y = q & 1 ? cos_poly(r) : sin_poly(r);
    return x == 0.0 ? x : (q >= 2) != (x < 0.0) ? -y : y;
}

double oct_cos(double x)
{
    if (!(fabs(x) < (double)INFINITY))
        return x - x;
    int q;
    double r = reduce(x, &q), y = q & 1 ? sin_poly(r) : cos_poly(r);
    return q == 1 || q == 2 ? -y : y;
}

double oct_tan(double x)
{
    if (!(fabs(x) < (double)INFINITY))
        return x - x;
    int q;
    double r = reduce(x, &q), s = sin_poly(r), c = cos_poly(r);
    double y = q & 1 ? -c / s : s / c;
    return x == 0.0 ? x : x < 0.0 ? -y : y;
}

/* ------------------------------------------------------------------ error function */

/* erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...), all terms of one sign, below 2; above, the
 * continued fraction of erfc: 1 / (x + (1/2) / (x + 1 / (x + (3/2) / ...))). */
double oct_erf(double x)
{
    const double a = fabs(x), z = a * a;
    if (!(a < 6.0))
        return x != x ? x : copysign(1.0, x);
    const double tail = fma(a, a, -z), e = oct_exp(-z) * (1.0 - tail); /* z's rounding would show */
    double y;
    if (a < 2.0) {
        double term = a, sum = a;
        for (int n = 1; n < 40; n++) {
            term *= 2.0 * z / (2 * n + 1);
            sum += term;
        }
        y = 0x1.20dd750429b6dp+0 * e * sum;
    } else {
        double f = a;
        for (int n = 120; n > 0; n--)
            f = a + 0.5 * n / f;
        y = 1.0 - 0x1.20dd750429b6dp-1 * e / f;
    }
    return copysign(y, x);
}
