/* lib/kernels/conv/qdw_u8s16_avx2.c -- depthwise convolution on bytes: 2 pixels share the weights of 16 channels and
 * two taps.
 *
 * The bytes of two taps are interleaved, so that a channel's pair sits in one 32-bit lane as vpmaddwd wants it;
 * |pair| <= 2 * 255 * 255, exact. */
#include "kernels/conv/kernels.h"
#include "kernels/simd.h"

#include <string.h>

typedef struct args {
    size_t taps, step;
    const uint8_t *const *x;
    __m128i flip;
    const int16_t *w;
    int32_t *acc;
} args;

OCT_INLINE __m128i load(const args *g, const uint8_t *x, size_t n)
{
    __m128i v = _mm_setzero_si128();
    if (n >= 16)
        v = _mm_loadu_si128((const __m128i *)(const void *)x);
    else
        memcpy(&v, x, n);
    return _mm_xor_si128(v, g->flip);
}

OCT_INLINE __m256i weights(const int16_t *w)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)w);
}

/* The n (16 or fewer) channels from j of px pixels from p; px is a constant once inlined. */
OCT_INLINE void block(const size_t px, const args *g, size_t p, size_t j, size_t n)
{
    const uint8_t *const *x = g->x + p * g->taps;
    __m256i v0 = _mm256_setzero_si256(), v1 = v0, u0 = v0, u1 = v0;
    for (size_t t = 0; t < g->taps; t += 2) {
        const int16_t *w = g->w + (t / 2 * g->step + j) * 2;
        const __m256i w0 = weights(w), w1 = weights(w + 16);
        /* A missing last tap weighs zero: any bytes do. */
        const size_t next = t + 1 < g->taps ? t + 1 : t;
        const __m128i a = load(g, x[t] + j, n), b = load(g, x[next] + j, n);
        v0 = _mm256_add_epi32(v0, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), w0));
        v1 = _mm256_add_epi32(v1, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), w1));
        if (px > 1) {
            const __m128i c = load(g, x[g->taps + t] + j, n), d = load(g, x[g->taps + next] + j, n);
            u0 = _mm256_add_epi32(u0, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(c, d)), w0));
            u1 = _mm256_add_epi32(u1, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(c, d)), w1));
        }
    }
    __m256i *to = (__m256i *)(void *)(g->acc + p * g->step + j);
    _mm256_storeu_si256(to, v0);
    _mm256_storeu_si256(to + 1, v1);
    if (px > 1) {
        to = (__m256i *)(void *)(g->acc + (p + 1) * g->step + j);
        _mm256_storeu_si256(to, u0);
        _mm256_storeu_si256(to + 1, u1);
    }
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 16 <= c; j += 16)
        block(px, g, p, j, 16);
    if (j < c)
        block(px, g, p, j, c - j);
}

void oct_qdw_u8s16__avx2(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w, int32_t *acc)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, _mm_set1_epi8((char)flip), w, acc };
    size_t p = 0;
    for (; p + 2 <= px; p += 2)
        pixels(2, &g, c, p);
    if (p < px)
        pixels(1, &g, c, p);
}
