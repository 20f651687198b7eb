#include "twins/wide/functions.h"

#include <math.h>
#include <stdlib.h>

static const uint16_t logistic_numbers[] = {
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
    return (int32_t)(((uint32_t)logistic_numbers[at] << bits) +
                     rest * (uint32_t)(logistic_numbers[at + 1] - logistic_numbers[at]));
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

/* ---- lines between 513 places ---- */

/* Of float32, where a runtime makes its tables in that. */
static double kept(double x, bool single)
{
    return single ? (double)(float)x : x;
}

static int16_t short_of(double x)
{
    return (int16_t)fmin(INT16_MAX, fmax(INT16_MIN, x));
}

void oct_line_table(double (*of)(double), double from, double to, bool single, int16_t table[OCT_LINES + 1])
{
    const double step = kept((to - from) / OCT_LINES, single), unit = 32768;
    for (int i = 0; i < OCT_LINES; i++) {
        const double at = kept(from + kept(i * step, single), single),
                     behind = kept(from + kept((i + 1) * step, single), single);
        const double here = round(kept(of(at), single) * unit),
                     middle = round(kept(of(kept(at + step / 2, single)), single) * unit);
        const double off = round(kept(kept(of(behind), single) * unit + here, single) / 2) - middle;
        table[i] = short_of(here - round(off / 2));
    }
    table[OCT_LINES] = short_of(round(kept(of(to), single) * unit));
}

int32_t oct_on_lines(int32_t x, const int16_t table[OCT_LINES + 1])
{
    const int at = 256 + (x >> 7), rest = x & 127;
    return (int16_t)(table[at] + (((table[at + 1] - table[at]) * rest + 64) >> 7));
}
