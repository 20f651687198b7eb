#include "twins/wide/functions.h"

#include <stdlib.h>

static const uint16_t table[] = {
#include "twins/wide/logistic_table.inc"
};

enum { LAST = 255 };

static int32_t scaled(int32_t x, int32_t multiplier, int shift)
{
    if (multiplier == 0)
        return (int32_t)((uint32_t)x * (UINT32_C(3) << shift));
    return (int32_t)(((int64_t)x * multiplier + (shift > 0 ? INT64_C(1) << (shift - 1) : 0)) >> shift);
}

/* 2^(16 + bits) logistic(|x| / 24 / 2^bits); `most` where the table has no two numbers for it. */
static int32_t between(int32_t x, int bits, int32_t most)
{
    const uint32_t size = (uint32_t)llabs((long long)x), at = size >> bits, rest = size & ((1u << bits) - 1);
    if (at >= LAST)
        return most;
    return (int32_t)(((uint32_t)table[at] << bits) + rest * (uint32_t)(table[at + 1] - table[at]));
}

int32_t oct_wide_logistic(int32_t x, int32_t multiplier, int shift)
{
    const int32_t v = scaled(x, multiplier, shift), y = between(v, 9, 0x7fff << 10);
    return (v >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1) >> 10;
}

int32_t oct_wide_tanh(int32_t x, int32_t multiplier, int shift)
{
    const int32_t v = scaled(x, multiplier, shift), y = between(v, 8, 0xffff << 8);
    return (v >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1) >> 8;
}
