/* lib/kernels/dw/sdw_f32_avx512.c -- depthwise convolution in float: 4 pixels share the weights of 32 channels. */
#include "kernels/dw/dw_int.h"
#include "kernels/sgemm/sout.h"
#include "kernels/simd.h"

#include <math.h>

/* Tap kx of row ky of pixel i reads x[i * pixel + kx * column + ky]. */
typedef struct args {
    size_t rows, taps; /* of a column, and along the line */
    size_t pixel, column;
    size_t step; /* weights from one tap to the next */
    const float *const *x;
    const float *w;
    float *y;
    size_t ldy;
    const oct_sout *out;
    __m512 lo, hi;
} args;

OCT_INLINE __m512 finish(__m512 v, const args *g, size_t i, size_t j, __mmask16 k)
{
    const float *residual = g->out->residual;
    if (residual)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k, residual + i * g->out->ldr + j));
    v = _mm512_min_ps(g->hi, _mm512_max_ps(g->lo, v));
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* Channels j to j + 31 (wide), or those of the 16 from j that are in k, of px pixels from p; px, wide, rows, taps and
 * the distances are constants once inlined, where they are known. */
OCT_INLINE void block(const size_t px, const bool wide, const __mmask16 k, const args *g, size_t p, size_t j)
{
    const size_t rows = g->rows, taps = g->taps, pixel = g->pixel, column = g->column;
    const float *const *x = g->x + p * pixel;
    const float *bias = g->out->bias, *w = g->w + j;
    const __m512 start_v = bias ? _mm512_maskz_loadu_ps(k, bias + j) : _mm512_setzero_ps();
    const __m512 start_u = bias && wide ? _mm512_loadu_ps(bias + j + 16) : _mm512_setzero_ps();
#define PIXEL(i) __m512 v##i = start_v, u##i = start_u;
    PIXELS
#undef PIXEL
    for (size_t ky = 0; ky < rows; ky++, x++)
        for (size_t kx = 0; kx < taps; kx++, w += g->step) {
            const __m512 w0 = _mm512_loadu_ps(w), w1 = wide ? _mm512_loadu_ps(w + 16) : w0;
#define PIXEL(i)                                                        \
    if (px > i) {                                                       \
        const float *at = x[i * pixel + kx * column] + j;               \
        v##i = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(k, at), w0, v##i); \
        if (wide)                                                       \
            u##i = _mm512_fmadd_ps(_mm512_loadu_ps(at + 16), w1, u##i); \
    }
            PIXELS
#undef PIXEL
        }
    float *y = g->y + p * g->ldy + j;
#define PIXEL(i)                                                                           \
    if (px > i) {                                                                          \
        _mm512_mask_storeu_ps(y + i * g->ldy, k, finish(v##i, g, p + i, j, k));            \
        if (wide)                                                                          \
            _mm512_storeu_ps(y + i * g->ldy + 16, finish(u##i, g, p + i, j + 16, 0xffff)); \
    }
    PIXELS
#undef PIXEL
}

OCT_INLINE __mmask16 lanes(size_t n)
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}

OCT_INLINE args args_of(const oct_sout *o, size_t c, const float *const *x, const float *w, float *y, size_t ldy)
{
    const float lo = o->clamp ? o->lo : -INFINITY, hi = o->clamp ? o->hi : INFINITY;
    return (args){ .rows = 1,
                   .column = 1,
                   .step = oct_round_up(c, OCT_DW_CHANNELS),
                   .x = x,
                   .w = w,
                   .y = y,
                   .ldy = ldy,
                   .out = o,
                   .lo = _mm512_set1_ps(lo),
                   .hi = _mm512_set1_ps(hi) };
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 32 <= c; j += 32)
        block(px, true, 0xffff, g, p, j);
    for (; j < c; j += 16)
        block(px, false, lanes(c - j), g, p, j);
}

void oct_sdw_f32__avx512(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y, size_t ldy,
                         const oct_sout *out)
{
    args g = args_of(out, c, x, w, y, ldy);
    g.taps = g.pixel = taps;
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, &g, c, p);
    for (; p < px; p++)
        pixels(1, &g, c, p);
}

/* The last block ends with the line, and may repeat some pixels. */
OCT_INLINE void line_blocks(const bool wide, const __mmask16 k, const args *g, size_t px, size_t j)
{
    for (size_t p = 0; p + 4 <= px; p += 4)
        block(4, wide, k, g, p, j);
    if (px % 4)
        block(4, wide, k, g, px - 4, j);
}

OCT_INLINE void line(const size_t rows, const size_t advance, const oct_sdw_lines *l)
{
    args g = args_of(l->out, l->c, l->x, l->w, l->y, l->ldy);
    g.rows = g.column = rows;
    g.taps = 3;
    g.pixel = advance * rows;
    size_t j = 0;
    for (; j + 32 <= l->c; j += 32)
        line_blocks(true, 0xffff, &g, l->px, j);
    for (; j < l->c; j += 16)
        line_blocks(false, lanes(l->c - j), &g, l->px, j);
}

void oct_sdw_lines_f32__avx512(const oct_sdw_lines *l)
{
    if (l->rows == 3 && l->advance == 1)
        line(3, 1, l);
    else if (l->rows == 3)
        line(3, 2, l);
    else
        line(l->rows, l->advance, l);
}
