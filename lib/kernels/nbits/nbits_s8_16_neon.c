/* lib/kernels/nbits/nbits_s8_16_neon.c -- panels of 16 columns, 2 rows, smull and sadalp: products in 16 bits,
 * exact. */
#include "kernels/neon.h"

OCT_INLINE int32x4_t dot(int32x4_t sum, int8x16_t w, int8x16_t x)
{
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x))),
                    high = vpaddlq_s16(vmull_high_s8(w, x));
    return vaddq_s32(sum, vpaddq_s32(low, high));
}

#define MR 2
#define NAME oct_nbits_s8_16__neon
#define DOT dot

#include "kernels/nbits/nbits_neon_bytes.inc"
