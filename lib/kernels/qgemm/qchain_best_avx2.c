/* lib/kernels/qgemm/qchain_best_avx2.c -- which quad suits a chain best, 32 loads at a time. */
#include "kernels/qgemm/qchain.h"
#include "kernels/simd.h"

#include <string.h>

enum { LOADS = OCT_QCHAIN_LOADS };

static inline __m256i half(const uint8_t loads[LOADS], size_t i)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(loads + i * (LOADS / 2)));
}

/* The terms of 32 lanes, in pairs. A load is within its room, so no pair leaves 16 bits, nor do two. */
static inline __m256i terms(__m256i load, __m256i room)
{
    return _mm256_maddubs_epi16(load, _mm256_sub_epi8(room, _mm256_avg_epu8(load, _mm256_setzero_si256())));
}

static inline __m256i eighths(const uint8_t load[LOADS], __m256i room0, __m256i room1)
{
    return _mm256_madd_epi16(_mm256_add_epi16(terms(half(load, 0), room0), terms(half(load, 1), room1)),
                             _mm256_set1_epi16(1));
}

/* Those that fit go to fit; returns how many. No branch depends on it: nobody could predict which. */
static size_t take_fitting(const uint8_t loads[][LOADS], const uint8_t room[LOADS], const uint8_t *list, size_t *at,
                           size_t n, uint8_t *fit)
{
    const __m256i r0 = half(room, 0), r1 = half(room, 1);
    size_t kept = 0, i = *at;
    for (; i < n && kept < OCT_QCHAIN_MOST; i++) {
        const uint8_t *load = loads[list[i]];
        const __m256i over = _mm256_or_si256(_mm256_subs_epu8(half(load, 0), r0), _mm256_subs_epu8(half(load, 1), r1));
        fit[kept] = list[i];
        kept += (size_t)_mm256_testz_si256(over, over);
    }
    *at = i;
    return kept;
}

/* The place of the first one of the best of n, at least one. */
static size_t best_of(const uint8_t loads[][LOADS], const uint8_t room[LOADS], const uint8_t *fit, size_t n)
{
    const __m256i base = _mm256_set1_epi8(32), r0 = _mm256_sub_epi8(half(room, 0), base),
                  r1 = _mm256_sub_epi8(half(room, 1), base);
    __m128i most = _mm_set1_epi32(INT32_MIN), best = _mm_setzero_si128(), at = _mm_setr_epi32(0, 1, 2, 3);
    for (size_t i = 0; i < n; i += 4) {
        const __m256i ab = _mm256_hadd_epi32(eighths(loads[fit[i]], r0, r1), eighths(loads[fit[i + 1]], r0, r1)),
                      cd = _mm256_hadd_epi32(eighths(loads[fit[i + 2]], r0, r1), eighths(loads[fit[i + 3]], r0, r1)),
                      halves = _mm256_hadd_epi32(ab, cd);
        const __m128i v = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)),
                      better = _mm_cmpgt_epi32(v, most);
        most = _mm_max_epi32(v, most);
        best = _mm_blendv_epi8(best, at, better);
        at = _mm_add_epi32(at, _mm_set1_epi32(4));
    }
    int32_t values[4], places[4];
    _mm_storeu_si128((__m128i *)(void *)values, most);
    _mm_storeu_si128((__m128i *)(void *)places, best);
    size_t first = 0;
    for (size_t i = 1; i < 4; i++)
        if (values[i] > values[first] || (values[i] == values[first] && places[i] < places[first]))
            first = i;
    return (size_t)places[first];
}

size_t oct_qchain_best__avx2(const uint8_t loads[][LOADS], const uint8_t room[LOADS], uint8_t *list, size_t *from,
                             size_t n)
{
    uint8_t fit[OCT_QCHAIN_MOST + 3];
    size_t at = *from;
    const size_t kept = take_fitting(loads, room, list, &at, n, fit);
    *from = at - kept;
    if (kept == 0)
        return n;
    memcpy(list + *from, fit, kept);
    memset(fit + kept, fit[0], 3); /* four are compared together, and an equal one is not better */
    return *from + best_of(loads, room, fit, kept);
}
