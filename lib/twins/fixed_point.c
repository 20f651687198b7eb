#include "twins/fixed_point.h"

#include "twins/rescale.h"

static int32_t most(int width)
{
    return width == 16 ? INT16_MAX : INT32_MAX;
}

static int32_t saturated(int width, int64_t x)
{
    return oct_twin_clamp(x, -(int64_t)most(width) - 1, most(width));
}

static int32_t up(int width, int32_t x, int bits)
{
    return saturated(width, (int64_t)x * (INT64_C(1) << bits));
}

/* The high half of 2ab. */
static int32_t high(int width, int32_t a, int32_t b)
{
    if (width == 32)
        return oct_high_product(a, b);
    const int32_t product = a * b;
    return saturated(width, (product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

/* A number of 32 bits. */
static int32_t constant(int width, int32_t x)
{
    return oct_divide_power(x, 32 - width);
}

/* exp of -1/4 <= x < 0: the Taylor series around -1/8, of which four terms are taken. */
static int32_t exp_quarter(int width, int32_t x)
{
    const int32_t middle = constant(width, 1895147668), third = constant(width, 715827883); /* exp(-1/8), 1/3 */
    const int32_t d = x + (1 << (width - 4)), d2 = high(width, d, d), d3 = high(width, d2, d), d4 = high(width, d2, d2);
    const int32_t rest = oct_divide_power(high(width, oct_divide_power(d4, 2) + d3, third) + d2, 1);
    return saturated(width, (int64_t)middle + high(width, middle, d + rest));
}

int32_t oct_fixed_exp(int width, int32_t x, int integer_bits)
{
    static const int32_t power[] = {
        1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242
    }; /* exp(-2^k), k = -2, ... */
    const int fraction = width - 1 - integer_bits;
    const int32_t quarter = 1 << (fraction - 2), low = (x & (quarter - 1)) - quarter, rest = low - x;
    if (x == 0)
        return most(width);
    if (integer_bits > 5 && x < -(32 << fraction))
        return 0;
    int32_t y = exp_quarter(width, up(width, low, integer_bits));
    for (int k = 0; k < 7 && k - 2 < integer_bits; k++)
        if (rest >> (fraction + k - 2) & 1)
            y = high(width, y, constant(width, power[k]));
    return y;
}

/* Newton's method on 1 / d, d = (1 + x) / 2; with 2 integer bits. */
static int32_t half_reciprocal(int width, int32_t x)
{
    const int32_t first = constant(width, 1515870810), slope = constant(width, -1010580540); /* 48/17, -32/17 */
    const int64_t sum = (int64_t)x + most(width);
    const int32_t d = (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
    int32_t y = first + high(width, d, slope);
    for (int i = 0; i < 3; i++)
        y += up(width, high(width, y, (1 << (width - 3)) - high(width, d, y)), 2);
    return y;
}

int32_t oct_fixed_reciprocal(int32_t x)
{
    return up(32, half_reciprocal(32, x), 1);
}

int32_t oct_fixed_logistic(int width, int32_t x, int integer_bits)
{
    if (x == 0)
        return 1 << (width - 2);
    const int32_t y = up(width, half_reciprocal(width, oct_fixed_exp(width, x > 0 ? -x : x, integer_bits)), 1);
    return x > 0 ? y : most(width) - y;
}

int32_t oct_fixed_tanh(int width, int32_t x, int integer_bits)
{
    if (x == 0)
        return 0;
    const int32_t e = oct_fixed_exp(width, x < 0 ? x : -x, integer_bits + 1);
    const int32_t y = up(width, half_reciprocal(width, e) - (1 << (width - 3)), 2);
    return x < 0 ? -y : y;
}
