/* lib/kernels/conv/sdw_f32_avx512.c -- depthwise convolution in float: 4 pixels share the weights of 32 channels. */
#include "kernels/conv/dw_int.h"
#include "kernels/sgemm/sout.h"
#include "kernels/simd.h"

typedef struct args {
    size_t taps, step;
    const float *const *x;
    const float *w;
    float *y;
    size_t ldy;
    const oct_sout *out;
} args;

OCT_INLINE __m512 finish(__m512 v, const oct_sout *o, size_t i, size_t j, __mmask16 k)
{
    if (o->residual)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k, o->residual + i * o->ldr + j));
    if (o->clamp)
        v = _mm512_min_ps(_mm512_set1_ps(o->hi), _mm512_max_ps(_mm512_set1_ps(o->lo), v));
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* Channels j to j + 31 (wide), or those of the 16 from j that are in k, of px pixels from p; px and wide are
 * constants once inlined. */
OCT_INLINE void block(const size_t px, const bool wide, const __mmask16 k, const args *g, size_t p, size_t j)
{
    const size_t taps = g->taps;
    const float *const *x = g->x + p * taps;
    const float *bias = g->out->bias;
    const __m512 start_v = bias ? _mm512_maskz_loadu_ps(k, bias + j) : _mm512_setzero_ps();
    const __m512 start_u = bias && wide ? _mm512_loadu_ps(bias + j + 16) : _mm512_setzero_ps();
#define PIXEL(i) __m512 v##i = start_v, u##i = start_u;
    PIXELS
#undef PIXEL
    for (size_t t = 0; t < taps; t++) {
        const float *w = g->w + t * g->step + j;
        const __m512 w0 = _mm512_loadu_ps(w), w1 = wide ? _mm512_loadu_ps(w + 16) : w0;
#define PIXEL(i)                                                          \
    if (px > i) {                                                         \
        const float *at = x[i * taps + t] + j;                            \
        v##i = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(k, at), w0, v##i);   \
        if (wide)                                                         \
            u##i = _mm512_fmadd_ps(_mm512_loadu_ps(at + 16), w1, u##i);   \
    }
        PIXELS
#undef PIXEL
    }
    float *y = g->y + p * g->ldy + j;
#define PIXEL(i)                                                                               \
    if (px > i) {                                                                              \
        _mm512_mask_storeu_ps(y + i * g->ldy, k, finish(v##i, g->out, p + i, j, k));           \
        if (wide)                                                                              \
            _mm512_storeu_ps(y + i * g->ldy + 16, finish(u##i, g->out, p + i, j + 16, 0xffff)); \
    }
    PIXELS
#undef PIXEL
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 32 <= c; j += 32)
        block(px, true, 0xffff, g, p, j);
    for (; j < c; j += 16)
        block(px, false, c - j >= 16 ? 0xffff : (__mmask16)((1u << (c - j)) - 1), g, p, j);
}

void oct_sdw_f32__avx512(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y, size_t ldy,
                         const oct_sout *out)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, w, y, ldy, out };
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, &g, c, p);
    for (; p < px; p++)
        pixels(1, &g, c, p);
}
