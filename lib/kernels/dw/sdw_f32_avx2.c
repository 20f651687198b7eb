/* lib/kernels/dw/sdw_f32_avx2.c -- depthwise convolution in float: 4 pixels share the weights of 16 channels. */
#include "kernels/dw/dw_int.h"
#include "kernels/sgemm/sout.h"
#include "kernels/simd.h"

#include <math.h>

/* What finishes a chain. */
typedef struct ending {
    __m256 lo, hi;
    const float *residual; /* of the block, or NULL */
    size_t ldr;
} ending;

OCT_INLINE ending ending_of(const oct_sout *o)
{
    const float lo = o->clamp ? o->lo : -INFINITY, hi = o->clamp ? o->hi : INFINITY;
    return (ending){ _mm256_set1_ps(lo), _mm256_set1_ps(hi), o->residual, o->ldr };
}

OCT_INLINE __m256 ended(__m256 v, const ending *e, size_t i, size_t j)
{
    if (e->residual)
        v = _mm256_add_ps(v, _mm256_loadu_ps(e->residual + i * e->ldr + j));
    v = _mm256_min_ps(e->hi, _mm256_max_ps(e->lo, v));
    return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

typedef struct args {
    size_t taps, step;
    const float *const *x;
    const float *w;
    float *y;
    size_t ldy;
    const oct_sout *out;
    ending end;
} args;

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* Channels j to j + 15 (wide) or j + 7 of px pixels from p; px and wide are constants once inlined. */
OCT_INLINE void block(const size_t px, const bool wide, const args *g, size_t p, size_t j)
{
    const size_t taps = g->taps;
    const float *const *x = g->x + p * taps;
    const float *bias = g->out->bias;
    const __m256 start_v = bias ? _mm256_loadu_ps(bias + j) : _mm256_setzero_ps();
    const __m256 start_u = bias && wide ? _mm256_loadu_ps(bias + j + 8) : _mm256_setzero_ps();
#define PIXEL(i) __m256 v##i = start_v, u##i = start_u;
    PIXELS
#undef PIXEL
    for (size_t t = 0; t < taps; t++) {
        const float *w = g->w + t * g->step + j;
        const __m256 w0 = _mm256_loadu_ps(w), w1 = wide ? _mm256_loadu_ps(w + 8) : w0;
#define PIXEL(i)                                                       \
    if (px > i) {                                                      \
        const float *at = x[i * taps + t] + j;                         \
        v##i = _mm256_fmadd_ps(_mm256_loadu_ps(at), w0, v##i);         \
        if (wide)                                                      \
            u##i = _mm256_fmadd_ps(_mm256_loadu_ps(at + 8), w1, u##i); \
    }
        PIXELS
#undef PIXEL
    }
    float *y = g->y + p * g->ldy + j;
#define PIXEL(i)                                                                      \
    if (px > i) {                                                                     \
        _mm256_storeu_ps(y + i * g->ldy, ended(v##i, &g->end, p + i, j));             \
        if (wide)                                                                     \
            _mm256_storeu_ps(y + i * g->ldy + 8, ended(u##i, &g->end, p + i, j + 8)); \
    }
    PIXELS
#undef PIXEL
}

/* The last 1 to 7 channels of one pixel, from masked loads; the same chain. */
static void edge(const args *g, size_t p, size_t j, size_t n)
{
    static const int32_t ones[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(const void *)(ones + 8 - n));
    const oct_sout *o = g->out;
    __m256 v = o->bias ? _mm256_maskload_ps(o->bias + j, mask) : _mm256_setzero_ps();
    for (size_t t = 0; t < g->taps; t++)
        v = _mm256_fmadd_ps(_mm256_maskload_ps(g->x[p * g->taps + t] + j, mask),
                            _mm256_loadu_ps(g->w + t * g->step + j), v);
    float lane[8];
    _mm256_storeu_ps(lane, v);
    for (size_t i = 0; i < n; i++)
        g->y[p * g->ldy + j + i] = oct_sout_apply(lane[i], o, o->residual ? o->residual + p * o->ldr : NULL, j + i);
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 16 <= c; j += 16)
        block(px, true, g, p, j);
    if (j + 8 <= c) {
        block(px, false, g, p, j);
        j += 8;
    }
    for (size_t i = 0; i < px && j < c; i++)
        edge(g, p + i, j, c - j);
}

void oct_sdw_f32__avx2(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y, size_t ldy,
                       const oct_sout *out)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, w, y, ldy, out, ending_of(out) };
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, &g, c, p);
    for (; p < px; p++)
        pixels(1, &g, c, p);
}

/* ---- kernels of 3 taps along the line: neighbouring pixels read the same columns ---- */

/* Four pixels from p: eight chains in the order of the definition, which hide each other's latency; columns are read in
 * place. */
OCT_INLINE void line_block(const size_t advance, const bool wide, const oct_sdw_lines *l, const ending *e, size_t p,
                           size_t j)
{
    const size_t step = oct_round_up(l->c, OCT_DW_CHANNELS), rows = l->rows;
    const float *const *x = l->x + p * advance * rows, *w = l->w + j, *bias = l->out->bias;
    const __m256 start_v = bias ? _mm256_loadu_ps(bias + j) : _mm256_setzero_ps();
    const __m256 start_u = bias && wide ? _mm256_loadu_ps(bias + j + 8) : _mm256_setzero_ps();
#define PIXEL(i) __m256 v##i = start_v, u##i = start_u;
    PIXELS
#undef PIXEL
    for (size_t ky = 0; ky < rows; ky++, x++)
        for (size_t kx = 0; kx < 3; kx++, w += step) {
            const __m256 w0 = _mm256_loadu_ps(w), w1 = wide ? _mm256_loadu_ps(w + 8) : w0;
#define PIXEL(i)                                                       \
    {                                                                  \
        const float *at = x[(i * advance + kx) * rows] + j;            \
        v##i = _mm256_fmadd_ps(_mm256_loadu_ps(at), w0, v##i);         \
        if (wide)                                                      \
            u##i = _mm256_fmadd_ps(_mm256_loadu_ps(at + 8), w1, u##i); \
    }
            PIXELS
#undef PIXEL
        }
    float *y = l->y + p * l->ldy + j;
#define PIXEL(i)                                                \
    _mm256_storeu_ps(y + i * l->ldy, ended(v##i, e, p + i, j)); \
    if (wide)                                                   \
        _mm256_storeu_ps(y + i * l->ldy + 8, ended(u##i, e, p + i, j + 8));
    PIXELS
#undef PIXEL
}

/* The last block ends with the line, and may repeat some pixels. */
OCT_INLINE void line_blocks(const size_t advance, const bool wide, const oct_sdw_lines *l, const ending *e, size_t j)
{
    for (size_t p = 0; p + 4 <= l->px; p += 4)
        line_block(advance, wide, l, e, p, j);
    if (l->px % 4)
        line_block(advance, wide, l, e, l->px - 4, j);
}

OCT_INLINE void line(const size_t advance, const oct_sdw_lines *l)
{
    const ending e = ending_of(l->out);
    size_t j = 0;
    for (; j + 16 <= l->c; j += 16)
        line_blocks(advance, true, l, &e, j);
    if (j < l->c)
        line_blocks(advance, false, l, &e, j);
}

void oct_sdw_lines_f32__avx2(const oct_sdw_lines *l)
{
    if (l->advance == 1)
        line(1, l);
    else
        line(2, l);
}
