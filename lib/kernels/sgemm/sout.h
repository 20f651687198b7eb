/* lib/kernels/sgemm/sout.h -- the start and the output pipeline of one float chain: the definition. Internal. */
#ifndef OCT_KERNELS_SOUT_H
#define OCT_KERNELS_SOUT_H

#include "kernels/sgemm/sgemm.h"

#include <string.h>

/* Which NaN an fma returns depends on the order of its operands, which compilers choose. So one NaN. */
static inline float oct_one_nan(float v)
{
    const uint32_t bits = 0x7fc00000;
    if (v != v)
        memcpy(&v, &bits, sizeof v);
    return v;
}

/* Where the chain of column j starts. */
static inline float oct_sout_start(const oct_sout *o, size_t j)
{
    return o->bias ? o->bias[j] : 0.0f;
}

/* Column j of a row whose residual (if any) starts at r. */
static inline float oct_sout_apply(float v, const oct_sout *o, const float *r, size_t j)
{
    if (o->residual)
        v += r[j];
    if (o->clamp) {
        v = o->lo > v ? o->lo : v;
        v = o->hi < v ? o->hi : v;
    }
    return oct_one_nan(v);
}

#endif
