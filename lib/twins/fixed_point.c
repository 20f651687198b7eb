#include "twins/fixed_point.h"

#include "twins/rescale.h"

static int32_t saturated(int64_t x)
{
    return oct_twin_clamp(x, INT32_MIN, INT32_MAX);
}

static int32_t up(int32_t x, int bits)
{
    return saturated((int64_t)x * (INT64_C(1) << bits));
}

/* exp of -1/4 <= x < 0: the Taylor series around -1/8, of which four terms are taken. */
static int32_t exp_quarter(int32_t x)
{
    static const int32_t middle = 1895147668, third = 715827883; /* exp(-1/8), 1/3 */
    const int32_t d = x + (1 << 28), d2 = oct_high_product(d, d), d3 = oct_high_product(d2, d),
                  d4 = oct_high_product(d2, d2);
    const int32_t rest = oct_divide_power(oct_high_product(oct_divide_power(d4, 2) + d3, third) + d2, 1);
    return saturated((int64_t)middle + oct_high_product(middle, d + rest));
}

int32_t oct_fixed_exp(int32_t x, int integer_bits)
{
    static const int32_t power[] = {
        1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242
    }; /* exp(-2^k), k = -2, ... */
    const int fraction = 31 - integer_bits;
    const int32_t quarter = 1 << (fraction - 2), low = (x & (quarter - 1)) - quarter, rest = low - x;
    if (x == 0)
        return INT32_MAX;
    int32_t y = exp_quarter(up(low, integer_bits));
    for (int k = 0; k < 7 && k - 2 < integer_bits; k++)
        if (rest >> (fraction + k - 2) & 1)
            y = oct_high_product(y, power[k]);
    return y;
}

/* Newton's method on 1 / d, d = (1 + x) / 2; with 2 integer bits. */
static int32_t half_reciprocal(int32_t x)
{
    static const int32_t first = 1515870810, slope = -1010580540; /* 48/17, -32/17 */
    const int32_t d = (int32_t)(((int64_t)x + INT32_MAX + ((int64_t)x + INT32_MAX >= 0 ? 1 : -1)) / 2);
    int32_t y = first + oct_high_product(d, slope);
    for (int i = 0; i < 3; i++)
        y += up(oct_high_product(y, (1 << 29) - oct_high_product(d, y)), 2);
    return y;
}

int32_t oct_fixed_reciprocal(int32_t x)
{
    return up(half_reciprocal(x), 1);
}

int32_t oct_fixed_logistic(int32_t x, int integer_bits)
{
    if (x == 0)
        return 1 << 30;
    const int32_t y = oct_fixed_reciprocal(oct_fixed_exp(x > 0 ? -x : x, integer_bits));
    return x > 0 ? y : INT32_MAX - y;
}

int32_t oct_fixed_tanh(int32_t x, int integer_bits)
{
    if (x == 0)
        return 0;
    const int32_t y = up(half_reciprocal(oct_fixed_exp(x < 0 ? x : -x, integer_bits + 1)) - (1 << 29), 2);
    return x < 0 ? -y : y;
}
