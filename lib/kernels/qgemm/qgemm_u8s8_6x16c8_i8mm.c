/* lib/kernels/qgemm/qgemm_u8s8_6x16c8_i8mm.c -- 6 rows by 16 columns, usmmla: two rows by two columns, eight products
 * and their sum in 32 bits each, exact.
 *
 * A register holds eight k of two rows of A, another the same k of two columns; a register of sums holds
 * row 0 (two columns), row 1. */
#include "kernels/neon.h"
#include "kernels/qgemm/qgemm_int.h"

/* Sums of two rows. */
typedef struct sums {
    int32x4_t c0, c1, c2, c3, c4, c5, c6, c7;
} sums;

/* Eight k of two columns q; x0, x1, x2 are pairs of rows, of which m / 2 exist. */
#define COLUMNS(q)                                  \
    {                                               \
        const int8x16_t w = vld1q_s8(b);            \
        b += 16;                                    \
        s0.c##q = vusmmlaq_s32(s0.c##q, x0, w);     \
        if (m > 2)                                  \
            s1.c##q = vusmmlaq_s32(s1.c##q, x1, w); \
        if (m > 4)                                  \
            s2.c##q = vusmmlaq_s32(s2.c##q, x2, w); \
    }
#define STEP { COLUMNS(0) COLUMNS(1) COLUMNS(2) COLUMNS(3) COLUMNS(4) COLUMNS(5) COLUMNS(6) COLUMNS(7) }

/* Four columns from two times two, of both rows. */
OCT_INLINE void store_columns(int32x4_t l, int32x4_t h, int32_t *c)
{
    const int64x2_t a = vreinterpretq_s64_s32(l), b = vreinterpretq_s64_s32(h);
    vst1q_s32(c, vreinterpretq_s32_s64(vzip1q_s64(a, b)));
    vst1q_s32(c + 16, vreinterpretq_s32_s64(vzip2q_s64(a, b)));
}

OCT_INLINE void store(sums s, int32_t *c)
{
    store_columns(s.c0, s.c1, c);
    store_columns(s.c2, s.c3, c + 4);
    store_columns(s.c4, s.c5, c + 8);
    store_columns(s.c6, s.c7, c + 12);
}

OCT_INLINE uint8x16_t whole(const uint8_t *a, const uint8_t *b, uint8x16_t flip)
{
    return veorq_u8(vcombine_u8(vld1_u8(a), vld1_u8(b)), flip);
}

/* What stands beside weights of zero may be anything. */
OCT_INLINE uint8x16_t part(const uint8_t *a, const uint8_t *b, size_t n, uint8x16_t flip)
{
    return veorq_u8(vcombine_u8(oct_neon_part(a, n), oct_neon_part(b, n)), flip);
}

/* m: 2, 4 or 6. Rows that the product does not have repeat others: the walk gives valid ones up to mr. */
OCT_INLINE void tile(const size_t m, uint8x16_t flip, size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b,
                     int32_t *c)
{
    const int32x4_t z = vdupq_n_s32(0);
    const sums zero = { z, z, z, z, z, z, z, z };
    sums s0 = zero, s1 = zero, s2 = zero;
    for (size_t t = 0; t < taps; t++, a += 6) {
        size_t k = 0;
        for (; k + 8 <= kc; k += 8) {
            const uint8x16_t x0 = whole(a[0] + k, a[1] + k, flip);
            const uint8x16_t x1 = m > 2 ? whole(a[2] + k, a[3] + k, flip) : x0;
            const uint8x16_t x2 = m > 4 ? whole(a[4] + k, a[5] + k, flip) : x0;
            STEP
        }
        if (k < kc) {
            const uint8x16_t x0 = part(a[0] + k, a[1] + k, kc - k, flip);
            const uint8x16_t x1 = m > 2 ? part(a[2] + k, a[3] + k, kc - k, flip) : x0;
            const uint8x16_t x2 = m > 4 ? part(a[4] + k, a[5] + k, kc - k, flip) : x0;
            STEP
        }
    }
    store(s0, c);
    if (m > 2)
        store(s1, c + 32);
    if (m > 4)
        store(s2, c + 64);
}

void oct_qgemm_u8s8_6x16c8__i8mm(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                 const int8_t *b, int32_t *c)
{
    const uint8x16_t f = vdupq_n_u8(flip);
    if (m <= 2)
        tile(2, f, taps, kc, a, b, c);
    else if (m <= 4)
        tile(4, f, taps, kc, a, b, c);
    else
        tile(6, f, taps, kc, a, b, c);
}
