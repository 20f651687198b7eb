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

/* One row, which waits for its sums and its weights: four sums an output, each of every fourth quad, and weights fetched ahead. */
OCT_INLINE void row(const bool wide, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b, int32_t *c)
{
    enum { AHEAD = 2048 };
    const size_t m = 1;
    const __m512i zero = _mm512_setzero_si512();
    __m512i v0 = zero, v1 = zero, v2 = zero, v3 = zero, w0 = zero, w1 = zero, w2 = zero, w3 = zero;
    for (size_t t = 0; t < taps; t++, a += 8) {
        size_t k = 0;
        for (; k + 16 <= kc; k += 16, b += 512) {
            for (size_t i = 0; i < 512; i += 64)
                _mm_prefetch((const char *)b + AHEAD + i, _MM_HINT_T0);
#define QUAD(i)                                                                                                                                 {                                                                                                                                               const __m512i all = _mm512_set1_epi32((int)oct_quad(a[0] + k + 4 * i)), x = flip ? _mm512_xor_si512(all, _mm512_set1_epi8((char)flip)) : all;         v##i = _mm512_dpbusd_epi32(v##i, x, _mm512_loadu_si512(b + 128 * i));                                                                       if (wide)                                                                                                                                       w##i = _mm512_dpbusd_epi32(w##i, x, _mm512_loadu_si512(b + 128 * i + 64));                                                          }
            QUAD(0) QUAD(1) QUAD(2) QUAD(3)
#undef QUAD
        }
        for (; k < kc; k += 4, b += 128) {
            const __m512i b0 = _mm512_loadu_si512(b), b1 = wide ? _mm512_loadu_si512(b + 64) : b0;
            STEP(0, kc - k >= 4 ? oct_quad(a[0] + k) : oct_quad_part(a[0] + k, kc - k))
        }
    }
    _mm512_storeu_si512(c, _mm512_add_epi32(_mm512_add_epi32(v0, v1), _mm512_add_epi32(v2, v3)));
    if (wide)
        _mm512_storeu_si512(c + 16, _mm512_add_epi32(_mm512_add_epi32(w0, w1), _mm512_add_epi32(w2, w3)));
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
    if (m == 1) {
        if (flip)
            wide ? row(true, 0x80, taps, kc, a, b, c) : row(false, 0x80, taps, kc, a, b, c);
        else
            wide ? row(true, 0, taps, kc, a, b, c) : row(false, 0, taps, kc, a, b, c);
        return;
    }
    switch ((m + 1) / 2 * 2) {
        CASE(2) CASE(4) CASE(6) CASE(8)
    }
}
