/* lib/kernels/qgemm/qgemm_s8s8_4x16c2_neon.c -- 4 rows by 16 columns, smull and sadalp: products in 16 bits, where each
 * fits, and pairs of them added to 32 bits. Exact.
 *
 * Two bytes of A are repeated to a register; beside them lie the two k of eight columns. */
#include "kernels/neon.h"
#include "kernels/qgemm/qgemm_int.h"

/* Sixteen columns of a row. */
typedef struct sums {
    int32x4_t c0, c1, c2, c3;
} sums;

/* x: two k of a row, four times; b0, b1: the same k of columns 0 to 7 and 8 to 15. */
OCT_INLINE sums add(sums s, int8x16_t x, int8x16_t b0, int8x16_t b1)
{
    s.c0 = vpadalq_s16(s.c0, vmull_s8(vget_low_s8(x), vget_low_s8(b0)));
    s.c1 = vpadalq_s16(s.c1, vmull_high_s8(x, b0));
    s.c2 = vpadalq_s16(s.c2, vmull_s8(vget_low_s8(x), vget_low_s8(b1)));
    s.c3 = vpadalq_s16(s.c3, vmull_high_s8(x, b1));
    return s;
}

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3)

/* k 2p and 2p + 1 of the eight in x0, x1, ... */
#define PAIR(p)                                                                \
    {                                                                          \
        const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);               \
        b += 32;                                                               \
        s0 = add(s0, vreinterpretq_s8_s16(vdupq_lane_s16(x0, p)), b0, b1);     \
        if (m > 1)                                                             \
            s1 = add(s1, vreinterpretq_s8_s16(vdupq_lane_s16(x1, p)), b0, b1); \
        if (m > 2)                                                             \
            s2 = add(s2, vreinterpretq_s8_s16(vdupq_lane_s16(x2, p)), b0, b1); \
        if (m > 3)                                                             \
            s3 = add(s3, vreinterpretq_s8_s16(vdupq_lane_s16(x3, p)), b0, b1); \
    }

OCT_INLINE int16x4_t words(uint8x8_t a, uint8x8_t flip)
{
    return vreinterpret_s16_u8(veor_u8(a, flip));
}

OCT_INLINE void store(sums s, int32_t *c)
{
    vst1q_s32(c, s.c0);
    vst1q_s32(c + 4, s.c1);
    vst1q_s32(c + 8, s.c2);
    vst1q_s32(c + 12, s.c3);
}

OCT_INLINE void tile(const size_t m, uint8x8_t flip, size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b,
                     int32_t *c)
{
    const int32x4_t z = vdupq_n_s32(0);
    const sums zero = { z, z, z, z };
    sums s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    for (size_t t = 0; t < taps; t++, a += 4) {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 8 <= kc; k += 8) {
#define ROW(i) const int16x4_t x##i = words(vld1_u8(a##i + k), flip);
            ROWS
#undef ROW
                PAIR(0) PAIR(1) PAIR(2) PAIR(3)
        }
        const size_t left = kc - k;
        if (left) {
            /* What stands beside weights of zero may be anything. */
#define ROW(i) const int16x4_t x##i = words(oct_neon_part(a##i + k, left), flip);
            ROWS
#undef ROW
                PAIR(0) if (left > 2) PAIR(1) if (left > 4) PAIR(2) if (left > 6) PAIR(3)
        }
    }
#define ROW(i) \
    if (m > i) \
        store(s##i, c + i * 16);
    ROWS
#undef ROW
}

void oct_qgemm_s8s8_4x16c2__neon(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                 const int8_t *b, int32_t *c)
{
    const uint8x8_t f = vdup_n_u8(flip);
    switch (m) {
    case 1: tile(1, f, taps, kc, a, b, c); break;
    case 2: tile(2, f, taps, kc, a, b, c); break;
    case 3: tile(3, f, taps, kc, a, b, c); break;
    default: tile(4, f, taps, kc, a, b, c); break;
    }
}
