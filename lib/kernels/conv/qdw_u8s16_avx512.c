/* lib/kernels/conv/qdw_u8s16_avx512.c -- depthwise convolution of one pixel on bytes, 32 channels and two taps a step.
 * The arithmetic of the AVX2 kernel; words of two taps are interleaved by one shift and one or. */
#include "kernels/conv/kernels.h"
#include "kernels/simd.h"

/* Lane i of the result: byte i of x0 in its low half, byte i of x1 in its high half. */
OCT_INLINE __m512i pairs(__m128i x0, __m128i x1)
{
    return _mm512_or_si512(_mm512_cvtepu8_epi32(x0), _mm512_slli_epi32(_mm512_cvtepu8_epi32(x1), 16));
}

OCT_INLINE __m512i two_taps(__m512i v, __m128i x0, __m128i x1, const int16_t *w)
{
    return _mm512_add_epi32(v, _mm512_madd_epi16(pairs(x0, x1), _mm512_loadu_si512(w)));
}

/* Columns j to j + 15, of which those in k exist. */
OCT_INLINE __m128i load(const uint8_t *x, __mmask16 k, __m128i flip)
{
    return _mm_xor_si128(_mm_maskz_loadu_epi8(k, x), flip);
}

void oct_qdw_u8s16__avx512(size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w, int32_t *acc)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    const __m128i top = _mm_set1_epi8((char)flip);
    for (size_t j = 0; j < c; j += 32) {
        const __mmask32 k = c - j >= 32 ? 0xffffffffu : (1u << (c - j)) - 1;
        const __mmask16 k0 = (__mmask16)k, k1 = (__mmask16)(k >> 16);
        const size_t second = k1 ? 16 : 0; /* there is no packed second half to read without channels in it */
        __m512i v0 = _mm512_setzero_si512(), v1 = v0;
        for (size_t t = 0; t < taps; t += 2) {
            const int16_t *wt = w + (t / 2 * step + j) * 2;
            const uint8_t *x0 = x[t] + j, *x1 = t + 1 < taps ? x[t + 1] + j : x0; /* the missing tap weighs zero */
            v0 = two_taps(v0, load(x0, k0, top), load(x1, k0, top), wt);
            v1 = two_taps(v1, load(x0 + 16, k1, top), load(x1 + 16, k1, top), wt + second * 2);
        }
        _mm512_storeu_si512(acc + j, v0);
        if (k1)
            _mm512_storeu_si512(acc + j + 16, v1);
    }
}
