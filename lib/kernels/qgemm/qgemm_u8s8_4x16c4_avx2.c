/* lib/kernels/qgemm/qgemm_u8s8_4x16c4_avx2.c -- 4 rows by 16 columns, vpmaddwd on bytes widened to 16 bits: always
 * exact.
 *
 * Four bytes of A are broadcast to every 32-bit lane; masking leaves (a0, a2) and shifting leaves (a1, a3) as
 * 16-bit pairs, and the panel holds its weights in the same order, for one vpmaddwd each. Even k go over all rows
 * before odd ones and sums are kept in order: grouped otherwise, they do not fit the registers. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

typedef struct pair {
    __m256i lo, hi;
} pair;

OCT_INLINE pair add(pair v, __m256i a, __m256i b0, __m256i b1)
{
    v.lo = _mm256_add_epi32(v.lo, _mm256_madd_epi16(a, b0));
    v.hi = _mm256_add_epi32(v.hi, _mm256_madd_epi16(a, b1));
    OCT_KEEP(v.lo);
    OCT_KEEP(v.hi);
    return v;
}

OCT_INLINE __m256i spread(uint32_t four, uint8_t flip)
{
    const __m256i a = _mm256_set1_epi32((int)four);
    return flip ? _mm256_xor_si256(a, _mm256_set1_epi8((char)flip)) : a;
}

OCT_INLINE __m256i even(__m256i a)
{
    return _mm256_and_si256(a, _mm256_set1_epi32(0x00ff00ff));
}

OCT_INLINE __m256i odd(__m256i a)
{
    return _mm256_srli_epi16(a, 8);
}

OCT_INLINE __m256i widen(const int8_t *b)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)b));
}

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3)

OCT_INLINE void tile(const size_t m, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a,
                     const int8_t *b, int32_t *c)
{
    const pair zero = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    pair v0 = zero, v1 = zero, v2 = zero, v3 = zero;
    for (size_t t = 0; t < taps; t++, a += 4) {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 4 <= kc; k += 4, b += 64) {
            const __m256i b0 = widen(b), b1 = widen(b + 16);
#define ROW(i) \
    if (m > i) \
        v##i = add(v##i, even(spread(oct_quad(a##i + k), flip)), b0, b1);
            ROWS
#undef ROW
                const __m256i b2 = widen(b + 32),
                              b3 = widen(b + 48);
#define ROW(i) \
    if (m > i) \
        v##i = add(v##i, odd(spread(oct_quad(a##i + k), flip)), b2, b3);
            ROWS
#undef ROW
        }
        if (k < kc) {
            const __m256i b0 = widen(b), b1 = widen(b + 16);
#define ROW(i) \
    if (m > i) \
        v##i = add(v##i, even(spread(oct_quad_part(a##i + k, kc - k), flip)), b0, b1);
            ROWS
#undef ROW
                const __m256i b2 = widen(b + 32),
                              b3 = widen(b + 48);
#define ROW(i) \
    if (m > i) \
        v##i = add(v##i, odd(spread(oct_quad_part(a##i + k, kc - k), flip)), b2, b3);
            ROWS
#undef ROW
                b += 64;
        }
    }
#define ROW(i)                                                             \
    if (m > i) {                                                           \
        _mm256_storeu_si256((__m256i *)(void *)(c + i * 16), v##i.lo);     \
        _mm256_storeu_si256((__m256i *)(void *)(c + i * 16 + 8), v##i.hi); \
    }
    ROWS
#undef ROW
}

#define CASE(m) \
    case m: flip ? tile(m, 0x80, taps, kc, a, b, c) : tile(m, 0, taps, kc, a, b, c); break;

void oct_qgemm_u8s8_4x16c4__avx2(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                 const int8_t *b, int32_t *c)
{
    switch (m) {
        CASE(1) CASE(2) CASE(3) CASE(4)
    }
}
