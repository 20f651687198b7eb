/* lib/kernels/conv/sdw_f32_avx2.c -- depthwise convolution of one pixel in float, 16 channels a step. */
#include "kernels/conv/kernels.h"
#include "kernels/sgemm/sout.h"
#include "kernels/simd.h"

OCT_INLINE __m256 finish(__m256 v, const oct_sout *o, size_t j)
{
    if (o->bias)
        v = _mm256_add_ps(v, _mm256_loadu_ps(o->bias + j));
    if (o->residual)
        v = _mm256_add_ps(v, _mm256_loadu_ps(o->residual + j));
    if (o->clamp)
        v = _mm256_min_ps(_mm256_set1_ps(o->hi), _mm256_max_ps(_mm256_set1_ps(o->lo), v));
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* The last channels one by one, with the same chain. */
static void tail(size_t j, size_t c, size_t taps, const float *const *x, const float *w, size_t step, float *y,
                 const oct_sout *out)
{
    for (; j < c; j++) {
        __m128 v = _mm_setzero_ps();
        for (size_t t = 0; t < taps; t++)
            v = _mm_fmadd_ss(_mm_load_ss(x[t] + j), _mm_load_ss(w + t * step + j), v);
        y[j] = oct_sout_apply(_mm_cvtss_f32(v), out, out->residual, j);
    }
}

void oct_sdw_f32__avx2(size_t c, size_t taps, const float *const *x, const float *w, float *y, const oct_sout *out)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    size_t j = 0;
    for (; j + 32 <= c; j += 32) {
        __m256 v0 = _mm256_setzero_ps(), v1 = v0, v2 = v0, v3 = v0;
        for (size_t t = 0; t < taps; t++) {
            const float *xt = x[t] + j, *wt = w + t * step + j;
            v0 = _mm256_fmadd_ps(_mm256_loadu_ps(xt), _mm256_loadu_ps(wt), v0);
            v1 = _mm256_fmadd_ps(_mm256_loadu_ps(xt + 8), _mm256_loadu_ps(wt + 8), v1);
            v2 = _mm256_fmadd_ps(_mm256_loadu_ps(xt + 16), _mm256_loadu_ps(wt + 16), v2);
            v3 = _mm256_fmadd_ps(_mm256_loadu_ps(xt + 24), _mm256_loadu_ps(wt + 24), v3);
        }
        _mm256_storeu_ps(y + j, finish(v0, out, j));
        _mm256_storeu_ps(y + j + 8, finish(v1, out, j + 8));
        _mm256_storeu_ps(y + j + 16, finish(v2, out, j + 16));
        _mm256_storeu_ps(y + j + 24, finish(v3, out, j + 24));
    }
    for (; j + 8 <= c; j += 8) {
        __m256 v = _mm256_setzero_ps();
        for (size_t t = 0; t < taps; t++)
            v = _mm256_fmadd_ps(_mm256_loadu_ps(x[t] + j), _mm256_loadu_ps(w + t * step + j), v);
        _mm256_storeu_ps(y + j, finish(v, out, j));
    }
    tail(j, c, taps, x, w, step, y, out);
}
