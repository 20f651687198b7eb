/* lib/kernels/conv/sdw_f32_avx512.c -- depthwise convolution of one pixel in float, 64 channels a step, masked at the end. */
#include "kernels/conv/kernels.h"
#include "kernels/sgemm/sout.h"
#include "kernels/simd.h"

OCT_INLINE __m512 finish(__m512 v, const oct_sout *o, size_t j, __mmask16 k)
{
    if (o->bias)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k, o->bias + j));
    if (o->residual)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k, o->residual + j));
    if (o->clamp)
        v = _mm512_min_ps(_mm512_set1_ps(o->hi), _mm512_max_ps(_mm512_set1_ps(o->lo), v));
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

void oct_sdw_f32__avx512(size_t c, size_t taps, const float *const *x, const float *w, float *y, const oct_sout *out)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    size_t j = 0;
    for (; j + 64 <= c; j += 64) {
        __m512 v0 = _mm512_setzero_ps(), v1 = v0, v2 = v0, v3 = v0;
        for (size_t t = 0; t < taps; t++) {
            const float *xt = x[t] + j, *wt = w + t * step + j;
            v0 = _mm512_fmadd_ps(_mm512_loadu_ps(xt), _mm512_loadu_ps(wt), v0);
            v1 = _mm512_fmadd_ps(_mm512_loadu_ps(xt + 16), _mm512_loadu_ps(wt + 16), v1);
            v2 = _mm512_fmadd_ps(_mm512_loadu_ps(xt + 32), _mm512_loadu_ps(wt + 32), v2);
            v3 = _mm512_fmadd_ps(_mm512_loadu_ps(xt + 48), _mm512_loadu_ps(wt + 48), v3);
        }
        _mm512_storeu_ps(y + j, finish(v0, out, j, 0xffff));
        _mm512_storeu_ps(y + j + 16, finish(v1, out, j + 16, 0xffff));
        _mm512_storeu_ps(y + j + 32, finish(v2, out, j + 32, 0xffff));
        _mm512_storeu_ps(y + j + 48, finish(v3, out, j + 48, 0xffff));
    }
    for (; j < c; j += 16) {
        const __mmask16 k = c - j >= 16 ? 0xffff : (__mmask16)((1u << (c - j)) - 1);
        __m512 v = _mm512_setzero_ps();
        for (size_t t = 0; t < taps; t++)
            v = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(k, x[t] + j), _mm512_loadu_ps(w + t * step + j), v);
        _mm512_mask_storeu_ps(y + j, k, finish(v, out, j, k));
    }
}
