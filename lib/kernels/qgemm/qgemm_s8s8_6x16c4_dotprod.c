/* lib/kernels/qgemm/qgemm_s8s8_6x16c4_dotprod.c -- 6 rows by 16 columns, sdot: four products and their sum in 32 bits,
 * exact. The instruction takes both operands signed, and so this kernel takes A. */
#include "kernels/neon.h"
#include "kernels/qgemm/qgemm_int.h"

/* Sixteen columns of a row. */
typedef struct sums {
    int32x4_t c0, c1, c2, c3;
} sums;

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

/* Lane p, four k, of the sixteen in x0, x1, ...; four columns q. */
#define COLUMNS(p, q)                                     \
    {                                                     \
        const int8x16_t w = vld1q_s8(b);                  \
        b += 16;                                          \
        s0.c##q = vdotq_laneq_s32(s0.c##q, w, x0, p);     \
        if (m > 1)                                        \
            s1.c##q = vdotq_laneq_s32(s1.c##q, w, x1, p); \
        if (m > 2)                                        \
            s2.c##q = vdotq_laneq_s32(s2.c##q, w, x2, p); \
        if (m > 3)                                        \
            s3.c##q = vdotq_laneq_s32(s3.c##q, w, x3, p); \
        if (m > 4)                                        \
            s4.c##q = vdotq_laneq_s32(s4.c##q, w, x4, p); \
        if (m > 5)                                        \
            s5.c##q = vdotq_laneq_s32(s5.c##q, w, x5, p); \
    }
#define QUAD(p) { COLUMNS(p, 0) COLUMNS(p, 1) COLUMNS(p, 2) COLUMNS(p, 3) }

OCT_INLINE int8x16_t bytes(uint8x16_t a, uint8x16_t flip)
{
    return vreinterpretq_s8_u8(veorq_u8(a, flip));
}

/* The first n of 16 bytes. */
OCT_INLINE uint8x16_t part(const uint8_t *a, size_t n)
{
    return n < 8 ? vcombine_u8(oct_neon_part(a, n), vdup_n_u8(0))
                 : vcombine_u8(vld1_u8(a), oct_neon_part(a + 8, n - 8));
}

OCT_INLINE void store(sums s, int32_t *c)
{
    vst1q_s32(c, s.c0);
    vst1q_s32(c + 4, s.c1);
    vst1q_s32(c + 8, s.c2);
    vst1q_s32(c + 12, s.c3);
}

OCT_INLINE void tile(const size_t m, uint8x16_t flip, size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b,
                     int32_t *c)
{
    const int32x4_t z = vdupq_n_s32(0);
    const sums zero = { z, z, z, z };
    sums s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero;
    for (size_t t = 0; t < taps; t++, a += 6) {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 16 <= kc; k += 16) {
#define ROW(i) const int8x16_t x##i = bytes(vld1q_u8(a##i + k), flip);
            ROWS
#undef ROW
                QUAD(0) QUAD(1) QUAD(2) QUAD(3)
        }
        const size_t left = kc - k;
        if (left) {
            /* What stands beside weights of zero may be anything. */
#define ROW(i) const int8x16_t x##i = bytes(part(a##i + k, left), flip);
            ROWS
#undef ROW
                QUAD(0) if (left > 4) QUAD(1) if (left > 8) QUAD(2) if (left > 12) QUAD(3)
        }
    }
#define ROW(i) \
    if (m > i) \
        store(s##i, c + i * 16);
    ROWS
#undef ROW
}

void oct_qgemm_s8s8_6x16c4__dotprod(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                    const int8_t *b, int32_t *c)
{
    const uint8x16_t f = vdupq_n_u8(flip);
    switch (m) {
    case 1: tile(1, f, taps, kc, a, b, c); break;
    case 2: tile(2, f, taps, kc, a, b, c); break;
    case 3: tile(3, f, taps, kc, a, b, c); break;
    case 4: tile(4, f, taps, kc, a, b, c); break;
    case 5: tile(5, f, taps, kc, a, b, c); break;
    default: tile(6, f, taps, kc, a, b, c); break;
    }
}
