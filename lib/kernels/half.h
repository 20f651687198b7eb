/* lib/kernels/half.h -- 16-bit floats over arrays. t is OCT_F16 (IEEE half) or OCT_BF16 (the upper half of a
 * float32). */
#ifndef OCT_KERNELS_HALF_H
#define OCT_KERNELS_HALF_H

#include "base/dtype.h"
#include "base/pool.h"

static inline bool oct_is_half(oct_dtype t)
{
    return t == OCT_F16 || t == OCT_BF16;
}

/* y[i] = x[i], exact; x u16[n]. Signalling NaNs of OCT_F16 become quiet. */
void oct_widen(oct_pool *pool, oct_dtype t, const void *x, size_t n, float *y);
/* y[i] = x[i] rounded half to even, denormals included; beyond the largest value to infinity. A NaN stays a NaN. y
 * u16[n]. */
void oct_narrow(oct_pool *pool, oct_dtype t, const float *x, size_t n, void *y);
/* The same, kept in float32. */
void oct_round_half(oct_pool *pool, oct_dtype t, const float *x, size_t n, float *y);

#endif
