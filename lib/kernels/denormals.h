/* lib/kernels/denormals.h -- float32 as products of bf16 compute it: denormal numbers are zeros of their sign before
 * and after each operation. A result is one when it is below 2^-126 once rounded to 24 bits, as if exponents had no
 * bound (x86's FTZ and DAZ). Internal. */
#ifndef OCT_KERNELS_DENORMALS_H
#define OCT_KERNELS_DENORMALS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float oct_flushed(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!(bits & 0x7f800000u))
        bits &= 0x80000000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sums near 2^-126 are exact. */
static inline float oct_flushed_add(float x, float y)
{
    return oct_flushed(oct_flushed(x) + oct_flushed(y));
}

/* x and y of bf16. fmaf rounds up to 2^-126 what lies less than 2^-150 below it, though half of that is nearer to
 * 2^-126 - 2^-150: the same times 2^64 tells. */
static inline float oct_flushed_fma(float x, float y, float c)
{
    x = oct_flushed(x);
    y = oct_flushed(y);
    c = oct_flushed(c);
    const float r = fmaf(x, y, c);
    if (fabsf(r) == 0x1p-126f && fabsf(fmaf(x * 0x1p64f, y, c * 0x1p64f)) < 0x1p-62f)
        return copysignf(0, r);
    return oct_flushed(r);
}

#endif
