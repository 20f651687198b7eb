/* lib/kernels/elem/math.c -- the elementary functions that take branches. */
#include "kernels/math.h"

#include <stdbool.h>

/* 2 or 1 for an odd or even integer, 0 otherwise. */
static int parity(float y)
{
    float a = oct_absf(y);
    if (a >= 0x1p24f)
        return 1;
    if (a != floorf(a))
        return 0;
    return (int32_t)a & 1 ? 2 : 1;
}

/* x to the 0.75, x > 0 and finite, by two roots: it is what the logarithm gives, rounded, unless it lies so near the
 * middle between two floats that errors of some units in the last place of a double could tell them apart. False: it
 * does. LRN takes one such power for each element. */
static bool three_quarters(double x, float *r)
{
    enum { MIDDLE = 1 << 28, NEAR = 64 }; /* of the 29 bits that a float does not have */
    const double root = sqrt(x), p = root * sqrt(root);
    const int32_t beside = (int32_t)(oct_bits_of_double(p) & (2 * MIDDLE - 1)) - MIDDLE;
    *r = (float)p;
    return beside > NEAR || beside < -NEAR;
}

float oct_powf(float x, float y)
{
    if (y == 2.0f)
        return x * x;
    if (y == 3.0f)
        return x * x * x;
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return NAN;
    if (oct_absf(y) == INFINITY) {
        float a = oct_absf(x);
        return a == 1.0f ? 1.0f : (a > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    }
    int p = parity(y);
    bool flip = p == 2 && oct_bits_of(x) < 0;
    if (x == 0.0f || oct_absf(x) == INFINITY) {
        float r = (x == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY;
        return flip ? -r : r;
    }
    if (x < 0.0f && p == 0)
        return NAN;
    float root;
    if (y == 0.75f && three_quarters(x, &root))
        return root;
    const float r = oct_powf_small(oct_absf(x), y);
    return flip ? -r : r;
}

/* 2 / pi as bits behind the point, for arguments whose quadrant doubles cannot tell. */
static const uint32_t two_over_pi[] = { 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                        0xdb629599u, 0x3c439041u, 0xfe5163abu };

/* x = q pi/2 + r, |r| <= pi/4; returns r. x = m * 2^e >= 2^23, m of 24 bits. Of x * 2/pi only the bits below 4
 * matter, so the words of 2/pi whose products are multiples of 4 are skipped; four words leave an error below 2^-63. */
static double reduce_large(float x, int64_t *q)
{
    const uint32_t b = (uint32_t)oct_bits_of(x);
    const int e = (int)(b >> 23) - 150; /* 0..104 */
    const uint64_t m = (b & 0x7fffffu) | 0x800000u;
    const int skip = e > 2 ? (e - 2) / 32 : 0, shift = e - 32 * skip;
    const uint32_t *w = two_over_pi + skip;
    uint64_t p2 = m * w[2] + (m * w[3] >> 32), p1 = m * w[1] + (p2 >> 32), p0 = m * w[0] + (p1 >> 32);
    uint64_t high = p0, low = p1 << 32 | (uint32_t)p2; /* the point stands at bit 32 of high */
    high = high << shift | (shift ? low >> (64 - shift) : 0);
    low <<= shift;
    const uint64_t frac = high << 32 | low >> 32;
    *q = (int64_t)((high >> 32) + (frac >> 63)); /* to the nearest quadrant */
    return (double)(int64_t)frac * 0x1p-64 * 0x1.921fb54442d18p+0;
}

static double reduce(float x, int64_t *q)
{
    const float a = oct_absf(x);
    return a < OCT_TURN_SMALL ? oct_turn_reduce(a, q) : reduce_large(a, q);
}

float oct_sinf(float x)
{
    if (!(oct_absf(x) < INFINITY))
        return x - x;
    int64_t q;
    const double r = reduce(x, &q);
    return oct_turn_sin(x, r, q);
}

float oct_cosf(float x)
{
    if (!(oct_absf(x) < INFINITY))
        return x - x;
    int64_t q;
    const double r = reduce(x, &q);
    return oct_turn_cos(r, q);
}

float oct_tanf(float x)
{
    if (!(oct_absf(x) < INFINITY))
        return x - x;
    int64_t q;
    const double r = reduce(x, &q);
    return oct_turn_tan(x, r, q);
}
