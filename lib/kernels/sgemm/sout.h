/* lib/kernels/sgemm/sout.h -- the start and the output pipeline of one float chain: the definition. */
#ifndef OCT_KERNELS_SOUT_H
#define OCT_KERNELS_SOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a chain starts and what happens to its end before it is stored, in this order:
 *   v = bias[n];  v = fma(a[k], b[k], v) for each k;
 *   v = v + residual[m][n];  v = lo > v ? lo : v;  v = hi < v ? hi : v.
 * Zero-initialise it for a plain product. */
typedef struct oct_sout {
    const float *bias;     /* f32[n], or NULL */
    const float *residual; /* f32[m][n] with ldr, or NULL; must not overlap the output (but oct_sconv_in_place) */
    size_t ldr;            /* elements between rows of residual */
    bool clamp;            /* apply lo and hi: Relu is (0, INFINITY), Relu6 is (0, 6) */
    float lo, hi;
} oct_sout;

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
