/* lib/kernels/qgemm/qgemm_u8s8_8x32c4_avx512.c -- 8 rows by 32 columns, vpmaddwd on bytes widened to 16 bits: the
 * AVX2 kernel's arithmetic in 512-bit registers, for CPUs without VNNI. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

typedef struct pair {
    __m512i lo, hi;
} pair;

OCT_INLINE pair step(pair v, uint32_t four, uint8_t flip, __m512i b0, __m512i b1, __m512i b2, __m512i b3)
{
    const __m512i all = _mm512_set1_epi32((int)four),
                  a = flip ? _mm512_xor_si512(all, _mm512_set1_epi8((char)flip)) : all;
    const __m512i even = _mm512_and_si512(a, _mm512_set1_epi32(0x00ff00ff)), odd = _mm512_srli_epi16(a, 8);
    v.lo = _mm512_add_epi32(v.lo, _mm512_madd_epi16(even, b0));
    v.hi = _mm512_add_epi32(v.hi, _mm512_madd_epi16(even, b1));
    v.lo = _mm512_add_epi32(v.lo, _mm512_madd_epi16(odd, b2));
    v.hi = _mm512_add_epi32(v.hi, _mm512_madd_epi16(odd, b3));
    return v;
}

OCT_INLINE __m512i widen(const int8_t *b)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)b));
}

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)

OCT_INLINE void tile(const size_t m, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a,
                     const int8_t *b, int32_t *c)
{
#define ROW(i) pair v##i = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    ROWS
#undef ROW
        for (size_t t = 0; t < taps; t++, a += 8)
    {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 4 <= kc; k += 4, b += 128) {
            const __m512i b0 = widen(b), b1 = widen(b + 32), b2 = widen(b + 64), b3 = widen(b + 96);
#define ROW(i) \
    if (m > i) \
        v##i = step(v##i, oct_quad(a##i + k), flip, b0, b1, b2, b3);
            ROWS
#undef ROW
        }
        if (k < kc) {
            const __m512i b0 = widen(b), b1 = widen(b + 32), b2 = widen(b + 64), b3 = widen(b + 96);
#define ROW(i) \
    if (m > i) \
        v##i = step(v##i, oct_quad_part(a##i + k, kc - k), flip, b0, b1, b2, b3);
            ROWS
#undef ROW
                b += 128;
        }
    }
#define ROW(i)                                         \
    if (m > i) {                                       \
        _mm512_storeu_si512(c + i * 32, v##i.lo);      \
        _mm512_storeu_si512(c + i * 32 + 16, v##i.hi); \
    }
    ROWS
#undef ROW
}

/* Heights 3, 5 and 7 run as the next even one: the walk gives valid rows up to mr. */
#define CASE(m) \
    case m: flip ? tile(m, 0x80, taps, kc, a, b, c) : tile(m, 0, taps, kc, a, b, c); break;

void oct_qgemm_u8s8_8x32c4__avx512(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                   const int8_t *b, int32_t *c)
{
    switch (m > 1 ? (m + 1) / 2 * 2 : 1) {
        CASE(1) CASE(2) CASE(4) CASE(6) CASE(8)
    }
}
