#include "twins/rescale.h"

#include <math.h>
#include <stddef.h>

/* ---- fixed point ---- */

int32_t oct_high_product(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    const int64_t product = (int64_t)a * b, half = product >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30);
    return (int32_t)((product + half) / (INT64_C(1) << 31));
}

int32_t oct_divide_power(int32_t x, int n)
{
    if (n <= 0)
        return x;
    if (n > 31)
        n = 31;
    const int64_t mask = (INT64_C(1) << n) - 1, rest = x & mask, half = (mask >> 1) + (x < 0);
    return (int32_t)((x >> n) + (rest > half));
}

int32_t oct_shift_left(int32_t x, int n)
{
    return n > 31 ? 0 : n > 0 ? (int32_t)((uint32_t)x << n) : x;
}

oct_rescale oct_rescale_fixed(double real)
{
    int shift = 0;
    if (!(real > 0) || !isfinite(real))
        return (oct_rescale){ 0 };
    int64_t q = (int64_t)round(frexp(real, &shift) * 2147483648.0);
    if (q == INT64_C(1) << 31) {
        q /= 2;
        shift++;
    }
    if (shift < -31)
        return (oct_rescale){ real, 0, 0 };
    return (oct_rescale){ real, (int32_t)q, shift > 30 ? 30 : shift };
}

int32_t oct_rescale_twice(const oct_rescale *r, int32_t x)
{
    const int left = r->shift > 0 ? r->shift : 0, right = r->shift > 0 ? 0 : -r->shift;
    return oct_divide_power(oct_high_product(oct_shift_left(x, left), r->multiplier), right);
}

int32_t oct_rescale_once(const oct_rescale *r, int32_t x)
{
    const int total = 31 - r->shift;
    return (int32_t)(((int64_t)x * r->multiplier + (INT64_C(1) << (total - 1))) >> total);
}

int64_t oct_sum_bounded(int64_t x)
{
    const int64_t most = INT64_C(1) << 47;
    return x < -most ? -most : x >= most ? most - 1 : x;
}

static int32_t sum_once(const oct_rescale *r, int64_t sum)
{
    const int64_t x = oct_sum_bounded(sum);
    const int total = 31 - r->shift;
    if (total < 16 || total > 62)
        return 0;
    /* in two parts, as the product has up to 79 bits */
    const int64_t rest = ((x & 0xffff) * r->multiplier + (INT64_C(1) << (total - 1))) >> 16;
    return oct_twin_clamp(((x >> 16) * r->multiplier + rest) >> (total - 16), INT32_MIN, INT32_MAX);
}

/* In float64. */
static int32_t sum_exact(const oct_rescale *r, int64_t sum)
{
    return (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, floor((double)sum * r->real + 0.5)));
}

/* By a multiplier of 15 bits. */
static int32_t sum_reduced(const oct_rescale *r, int64_t sum)
{
    const int64_t x = oct_sum_bounded(sum);
    const int64_t multiplier = r->multiplier < 0x7fff0000 ? (r->multiplier + (1 << 15)) >> 16 : 0x7fff;
    const int total = 15 - r->shift;
    if (total < 1 || total > 62)
        return 0;
    return oct_twin_clamp((x * multiplier + (INT64_C(1) << (total - 1))) >> total, INT32_MIN, INT32_MAX);
}

static oct_rescale fixed_of(float in, float weights, float out)
{
    return oct_rescale_fixed((double)in * (double)weights / (double)out);
}

static oct_rescale fixed_in_float(float in, float weights, float out)
{
    return oct_rescale_fixed((double)(in * weights / out));
}

static int32_t to_twice(const oct_rescale *r, int32_t x, int32_t zero, int32_t lo, int32_t hi)
{
    return oct_twin_clamp((int64_t)oct_rescale_twice(r, x) + zero, lo, hi);
}

static int32_t to_once(const oct_rescale *r, int32_t x, int32_t zero, int32_t lo, int32_t hi)
{
    return oct_twin_clamp((int64_t)oct_rescale_once(r, x) + zero, lo, hi);
}

/* Half of the divisor is added, and where that is beyond 2^31 also half of 2^31, away from zero. */
static int32_t to_tosa(const oct_rescale *r, int32_t x, int32_t zero, int32_t lo, int32_t hi)
{
    int shift = 31 - r->shift;
    int32_t multiplier = r->multiplier;
    if (shift > 62) {
        multiplier >>= shift - 62 < 31 ? shift - 62 : 31;
        shift = 62;
    }
    int64_t half = INT64_C(1) << (shift - 1);
    if (shift > 31)
        half += x >= 0 ? INT64_C(1) << 30 : -(INT64_C(1) << 30);
    return oct_twin_clamp((int64_t)(int32_t)(((int64_t)x * multiplier + half) >> shift) + zero, lo, hi);
}

static int32_t bound_away(float bound, float scale, int32_t zero)
{
    return oct_twin_clamp((int64_t)fmaxf(-1e6f, fminf(1e6f, roundf(bound / scale))) + zero, -128, 127);
}

/* ---- float ---- */

static oct_rescale float_of(float in, float weights, float out)
{
    return (oct_rescale){ .real = (double)(in * weights / out) };
}

static int32_t to_float(const oct_rescale *r, int32_t x, int32_t zero, int32_t lo, int32_t hi)
{
    const float y = (float)x * (float)r->real;
    const float most = (float)(hi - zero), least = (float)(lo - zero);
    return (int32_t)rintf(y > most ? most : y > least ? y : least) + zero;
}

static int32_t bound_even(float bound, float scale, int32_t zero)
{
    return oct_twin_clamp((int64_t)fmaxf(-1e6f, fminf(1e6f, rintf(bound / scale))) + zero, -128, 127);
}

const oct_rescaling oct_rescaling_float = { float_of, to_float, bound_even, NULL };
const oct_rescaling oct_rescaling_single = { fixed_of, to_once, bound_away, sum_once };
const oct_rescaling oct_rescaling_exact = { fixed_of, to_once, bound_away, sum_exact };
const oct_rescaling oct_rescaling_double_in_float = { fixed_in_float, to_twice, bound_away, NULL };
const oct_rescaling oct_rescaling_tosa = { fixed_of, to_tosa, bound_away, NULL };
const oct_rescaling oct_rescaling_tosa_in_float = { fixed_in_float, to_tosa, bound_away, NULL };
const oct_rescaling oct_rescaling_double = { fixed_of, to_twice, bound_away, sum_reduced };
