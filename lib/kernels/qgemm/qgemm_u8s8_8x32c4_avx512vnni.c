/* lib/kernels/qgemm/qgemm_u8s8_8x32c4_avx512vnni.c -- 8 rows by 32 columns, vpdpbusd: four products and their sum in 32
 * bits, exact. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)

/* Four k of row i; `four` holds its bytes. */
#define STEP(i, four)                                                                       \
    if (m > i) {                                                                            \
        const __m512i all = _mm512_set1_epi32((int)(four));                                 \
        const __m512i x = flip ? _mm512_xor_si512(all, _mm512_set1_epi8((char)flip)) : all; \
        v##i = _mm512_dpbusd_epi32(v##i, x, b0);                                            \
        if (wide)                                                                           \
            w##i = _mm512_dpbusd_epi32(w##i, x, b1);                                        \
    }

OCT_INLINE void tile(const size_t m, const bool wide, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a,
                     const int8_t *b, int32_t *c)
{
#define ROW(i) __m512i v##i = _mm512_setzero_si512(), w##i = _mm512_setzero_si512();
    ROWS
#undef ROW
    for (size_t t = 0; t < taps; t++, a += 8) {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
        size_t k = 0;
        for (; k + 4 <= kc; k += 4, b += 128) {
            const __m512i b0 = _mm512_loadu_si512(b), b1 = wide ? _mm512_loadu_si512(b + 64) : b0;
#define ROW(i) STEP(i, oct_quad(a##i + k))
            ROWS
#undef ROW
        }
        if (k < kc) {
            const __m512i b0 = _mm512_loadu_si512(b), b1 = wide ? _mm512_loadu_si512(b + 64) : b0;
#define ROW(i) STEP(i, oct_quad_part(a##i + k, kc - k))
            ROWS
#undef ROW
            b += 128;
        }
    }
#define ROW(i)                                      \
    if (m > i) {                                    \
        _mm512_storeu_si512(c + i * 32, v##i);      \
        if (wide)                                   \
            _mm512_storeu_si512(c + i * 32 + 16, w##i); \
    }
    ROWS
#undef ROW
}

/* Heights 3, 5 and 7 run as the next even one: the walk gives valid rows up to mr. */
#define CASE(m)                                                                                         \
    case m:                                                                                             \
        if (flip)                                                                                       \
            wide ? tile(m, true, 0x80, taps, kc, a, b, c) : tile(m, false, 0x80, taps, kc, a, b, c);    \
        else                                                                                            \
            wide ? tile(m, true, 0, taps, kc, a, b, c) : tile(m, false, 0, taps, kc, a, b, c);          \
        break;

void oct_qgemm_u8s8_8x32c4__avx512vnni(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                       const int8_t *b, int32_t *c)
{
    const bool wide = n > 16;
    switch (m > 1 ? (m + 1) / 2 * 2 : 1) {
        CASE(1) CASE(2) CASE(4) CASE(6) CASE(8)
    }
}
