/* lib/kernels/qgemm/qchain_best_avx2.c -- which quad suits a chain best, 32 loads at a time. */
#include "kernels/qgemm/qchain.h"
#include "kernels/simd.h"

enum { LOADS = OCT_QCHAIN_LOADS };

/* The terms of 32 lanes, those of even and of odd lanes in 16 bits each; twice: 2 room - 64. */
static inline __m256i terms(__m256i load, __m256i twice_even, __m256i twice_odd)
{
    const __m256i even = _mm256_and_si256(load, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(load, 8),
                  a = _mm256_mullo_epi16(even, _mm256_sub_epi16(twice_even, even)),
                  b = _mm256_mullo_epi16(odd, _mm256_sub_epi16(twice_odd, odd));
    return _mm256_add_epi16(_mm256_srai_epi16(a, 4), _mm256_srai_epi16(b, 4));
}

static inline __m256i twice(__m256i room)
{
    return _mm256_sub_epi16(_mm256_slli_epi16(room, 1), _mm256_set1_epi16(64));
}

static inline int16_t sum(__m256i v)
{
    const __m256i pairs = _mm256_madd_epi16(v, _mm256_set1_epi16(1));
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return (int16_t)_mm_cvtsi128_si32(s);
}

size_t oct_qchain_best__avx2(const uint8_t loads[][LOADS], const uint8_t room[LOADS], uint16_t *quads, size_t *n)
{
    const __m256i even = _mm256_set1_epi16(255), r0 = _mm256_loadu_si256((const __m256i *)(const void *)room),
                  r1 = _mm256_loadu_si256((const __m256i *)(const void *)(room + 32)),
                  even0 = twice(_mm256_and_si256(r0, even)), odd0 = twice(_mm256_srli_epi16(r0, 8)),
                  even1 = twice(_mm256_and_si256(r1, even)), odd1 = twice(_mm256_srli_epi16(r1, 8));
    const size_t all = *n;
    size_t best = 0, kept = 0;
    int32_t most = INT32_MIN;
    for (size_t i = 0; i < all; i++) {
        const uint8_t *load = loads[quads[i]];
        const __m256i l0 = _mm256_loadu_si256((const __m256i *)(const void *)load),
                      l1 = _mm256_loadu_si256((const __m256i *)(const void *)(load + 32)),
                      over = _mm256_or_si256(_mm256_subs_epu8(l0, r0), _mm256_subs_epu8(l1, r1));
        if (!_mm256_testz_si256(over, over))
            continue;
        const int32_t v = sum(_mm256_add_epi16(terms(l0, even0, odd0), terms(l1, even1, odd1)));
        best = v > most ? kept : best;
        most = v > most ? v : most;
        quads[kept++] = quads[i];
    }
    *n = kept;
    return best;
}
