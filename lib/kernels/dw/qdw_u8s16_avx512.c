/* lib/kernels/dw/qdw_u8s16_avx512.c -- depthwise convolution on bytes: 4 pixels share the weights of 16 channels and
 * two taps. The arithmetic of the AVX2 kernel, all 16 channels in one register. */
#include "kernels/dw/dw_int.h"
#include "kernels/simd.h"

typedef struct args {
    size_t taps, step;
    const uint8_t *const *x;
    __m128i flip;
    const int16_t *w;
    int32_t *acc;
} args;

OCT_INLINE __m128i load(const args *g, const uint8_t *x, __mmask16 k)
{
    return _mm_xor_si128(_mm_maskz_loadu_epi8(k, x), g->flip);
}

/* Word pairs of the channels in order. */
OCT_INLINE __m512i pairs(__m128i a, __m128i b)
{
    return _mm512_cvtepu8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)));
}

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* The channels in k of the 16 from j, of px pixels from p; px is a constant once inlined. */
OCT_INLINE void block(const size_t px, const args *g, size_t p, size_t j, __mmask16 k)
{
    const size_t taps = g->taps;
    const uint8_t *const *x = g->x + p * taps;
#define PIXEL(i) __m512i v##i = _mm512_setzero_si512();
    PIXELS
#undef PIXEL
    for (size_t t = 0; t < taps; t += 2) {
        const __m512i w = _mm512_loadu_si512(g->w + (t / 2 * g->step + j) * 2);
        /* A missing last tap weighs zero: any bytes do. */
        const size_t next = t + 1 < taps ? t + 1 : t;
#define PIXEL(i)                                                                                      \
    if (px > i) {                                                                                     \
        const __m512i a = pairs(load(g, x[i * taps + t] + j, k), load(g, x[i * taps + next] + j, k)); \
        v##i = _mm512_add_epi32(v##i, _mm512_madd_epi16(a, w));                                       \
    }
        PIXELS
#undef PIXEL
    }
    int32_t *acc = g->acc + p * g->step + j;
#define PIXEL(i) \
    if (px > i)  \
        _mm512_storeu_si512(acc + i * g->step, v##i);
    PIXELS
#undef PIXEL
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 16 <= c; j += 16)
        block(px, g, p, j, 0xffff);
    if (j < c)
        block(px, g, p, j, (__mmask16)((1u << (c - j)) - 1));
}

void oct_qdw_u8s16__avx512(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w,
                           int32_t *acc)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, _mm_set1_epi8((char)flip), w, acc };
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, &g, c, p);
    for (; p < px; p++)
        pixels(1, &g, c, p);
}
