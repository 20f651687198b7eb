/* lib/kernels/conv/qdw_u8s16_avx2.c -- depthwise convolution of one pixel on bytes, 16 channels and two taps a step.
 *
 * The bytes of two taps are interleaved, so that a channel's pair sits in one 32-bit lane as vpmaddwd wants it;
 * |pair| <= 2 * 255 * 255, exact. */
#include "kernels/conv/kernels.h"
#include "kernels/simd.h"

#include <string.h>

typedef struct pair {
    __m256i lo, hi;
} pair;

/* 16 channels: v.lo holds 0 to 7. */
OCT_INLINE pair two_taps(pair v, __m128i x0, __m128i x1, const int16_t *w)
{
    const __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)w);
    const __m256i w1 = _mm256_loadu_si256((const __m256i *)(const void *)(w + 16));
    v.lo = _mm256_add_epi32(v.lo, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x0, x1)), w0));
    v.hi = _mm256_add_epi32(v.hi, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x0, x1)), w1));
    return v;
}

OCT_INLINE __m128i load(const uint8_t *x, size_t n, __m128i flip)
{
    __m128i v = _mm_setzero_si128();
    if (n >= 16)
        v = _mm_loadu_si128((const __m128i *)(const void *)x);
    else
        memcpy(&v, x, n);
    return _mm_xor_si128(v, flip);
}

OCT_INLINE void block(size_t n, size_t j, size_t taps, size_t step, const uint8_t *const *x, __m128i flip, const int16_t *w,
                      int32_t *acc)
{
    pair v = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    size_t t = 0;
    for (; t + 2 <= taps; t += 2)
        v = two_taps(v, load(x[t] + j, n, flip), load(x[t + 1] + j, n, flip), w + (t / 2 * step + j) * 2);
    if (t < taps) /* the weights of the missing tap are zero */
        v = two_taps(v, load(x[t] + j, n, flip), _mm_setzero_si128(), w + (t / 2 * step + j) * 2);
    _mm256_storeu_si256((__m256i *)(void *)(acc + j), v.lo);
    _mm256_storeu_si256((__m256i *)(void *)(acc + j + 8), v.hi);
}

void oct_qdw_u8s16__avx2(size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w, int32_t *acc)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    const __m128i top = _mm_set1_epi8((char)flip);
    size_t j = 0;
    for (; j + 16 <= c; j += 16)
        block(16, j, taps, step, x, top, w, acc);
    if (j < c)
        block(c - j, j, taps, step, x, top, w, acc);
}
