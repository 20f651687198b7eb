/* lib/kernels/nbits/nbits_f32_16_neon.c -- panels of 16 columns, vectors of 8 in two registers. */
#include "kernels/simd.h"

#include <stdint.h>

typedef struct floats {
    float32x4_t l, h;
} floats;
typedef struct words {
    uint32x4_t l, h;
} words;

OCT_INLINE floats set(float x)
{
    return (floats){ vdupq_n_f32(x), vdupq_n_f32(x) };
}

OCT_INLINE floats load(const float *p)
{
    return (floats){ vld1q_f32(p), vld1q_f32(p + 4) };
}

OCT_INLINE void store(float *p, floats v)
{
    vst1q_f32(p, v.l);
    vst1q_f32(p + 4, v.h);
}

OCT_INLINE floats bytes(const uint8_t *p)
{
    const uint16x8_t w = vmovl_u8(vld1_u8(p));
    return (floats){ vcvtq_f32_u32(vmovl_u16(vget_low_u16(w))), vcvtq_f32_u32(vmovl_high_u16(w)) };
}

OCT_INLINE words load_words(const uint8_t *p)
{
    return (words){ vreinterpretq_u32_u8(vld1q_u8(p)), vreinterpretq_u32_u8(vld1q_u8(p + 16)) };
}

/* To the right; a shift to the left by a negative number. */
OCT_INLINE words shift(words v, int n)
{
    const int32x4_t by = vdupq_n_s32(-n);
    return (words){ vshlq_u32(v.l, by), vshlq_u32(v.h, by) };
}

/* Where the mask is set the bits of x, elsewhere those of m, which has none there. */
OCT_INLINE floats insert(words x, uint32_t mask, uint32_t m)
{
    const uint32x4_t k = vdupq_n_u32(mask), n = vdupq_n_u32(m);
    return (floats){ vreinterpretq_f32_u32(vbslq_u32(k, x.l, n)), vreinterpretq_f32_u32(vbslq_u32(k, x.h, n)) };
}

#define W 8
#define VF floats
#define VI words
#define NAME(f) oct_nbits_f32_16__neon_##f
#define V_SET set
#define V_LOAD load
#define V_STORE store
#define V_ADD(a, b) ((floats){ vaddq_f32((a).l, (b).l), vaddq_f32((a).h, (b).h) })
#define V_SUB(a, b) ((floats){ vsubq_f32((a).l, (b).l), vsubq_f32((a).h, (b).h) })
#define V_MUL(a, b) ((floats){ vmulq_f32((a).l, (b).l), vmulq_f32((a).h, (b).h) })
#define V_FMA(a, b, c) ((floats){ vfmaq_f32((c).l, (a).l, (b).l), vfmaq_f32((c).h, (a).h, (b).h) })
#define V_WORDS load_words
#define V_BITS(u) ((uint32_t)(u))
#define V_SHIFT shift
#define V_SHIFT_BY shift
#define V_BYTES bytes
#define V_INSERT insert

#include "kernels/nbits/nbits_wide.inc"
