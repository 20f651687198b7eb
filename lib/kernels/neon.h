/* lib/kernels/neon.h -- what NEON kernels share. Internal. */
#ifndef OCT_KERNELS_NEON_H
#define OCT_KERNELS_NEON_H

#if defined(__aarch64__)
#include "kernels/simd.h"

#include <stddef.h>

/* The first n of 8 bytes; nothing beyond them is read. */
OCT_INLINE uint8x8_t oct_neon_part(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n && i < 8; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return vcreate_u8(v);
}

/* v where it is not below lo (a NaN is not), then the same with hi from above. */
OCT_INLINE float32x4_t oct_neon_clamp(float32x4_t v, float lo, float hi)
{
    const float32x4_t l = vdupq_n_f32(lo), h = vdupq_n_f32(hi);
    v = vbslq_f32(vcgtq_f32(l, v), l, v);
    return vbslq_f32(vcltq_f32(h, v), h, v);
}

/* One NaN for all. */
OCT_INLINE float32x4_t oct_neon_one_nan(float32x4_t v)
{
    return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000)));
}
#endif

#endif
