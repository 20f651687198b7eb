/* lib/kernels/dw/sdw_f32_neon.c -- depthwise convolution in float: 4 pixels share the weights of 8 channels. */
#include "kernels/dw/dw_int.h"
#include "kernels/neon.h"
#include "kernels/sgemm/sout.h"

#include <math.h>

typedef struct args {
    size_t taps, step;
    const float *const *x;
    const float *w;
    float *y;
    size_t ldy;
    const oct_sout *out;
} args;

OCT_INLINE float32x4_t finish(float32x4_t v, const oct_sout *o, size_t i, size_t j)
{
    if (o->residual)
        v = vaddq_f32(v, vld1q_f32(o->residual + i * o->ldr + j));
    if (o->clamp)
        v = oct_neon_clamp(v, o->lo, o->hi);
    return oct_neon_one_nan(v);
}

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* Channels j to j + 7 (wide) or j + 3 of px pixels from p; px and wide are constants once inlined. */
OCT_INLINE void block(const size_t px, const bool wide, const args *g, size_t p, size_t j)
{
    const size_t taps = g->taps;
    const float *const *x = g->x + p * taps;
    const float *bias = g->out->bias;
    const float32x4_t start_v = bias ? vld1q_f32(bias + j) : vdupq_n_f32(0);
    const float32x4_t start_u = bias && wide ? vld1q_f32(bias + j + 4) : vdupq_n_f32(0);
#define PIXEL(i) float32x4_t v##i = start_v, u##i = start_u;
    PIXELS
#undef PIXEL
    for (size_t t = 0; t < taps; t++) {
        const float *w = g->w + t * g->step + j;
        const float32x4_t w0 = vld1q_f32(w), w1 = wide ? vld1q_f32(w + 4) : w0;
#define PIXEL(i)                                           \
    if (px > i) {                                          \
        const float *at = x[i * taps + t] + j;             \
        v##i = vfmaq_f32(v##i, vld1q_f32(at), w0);         \
        if (wide)                                          \
            u##i = vfmaq_f32(u##i, vld1q_f32(at + 4), w1); \
    }
        PIXELS
#undef PIXEL
    }
    float *y = g->y + p * g->ldy + j;
#define PIXEL(i)                                                               \
    if (px > i) {                                                              \
        vst1q_f32(y + i * g->ldy, finish(v##i, g->out, p + i, j));             \
        if (wide)                                                              \
            vst1q_f32(y + i * g->ldy + 4, finish(u##i, g->out, p + i, j + 4)); \
    }
    PIXELS
#undef PIXEL
}

/* One channel of one pixel. */
static void edge(const args *g, size_t p, size_t j)
{
    const oct_sout *o = g->out;
    float v = oct_sout_start(o, j);
    for (size_t t = 0; t < g->taps; t++)
        v = fmaf(g->x[p * g->taps + t][j], g->w[t * g->step + j], v);
    g->y[p * g->ldy + j] = oct_sout_apply(v, o, o->residual ? o->residual + p * o->ldr : NULL, j);
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 8 <= c; j += 8)
        block(px, true, g, p, j);
    if (j + 4 <= c) {
        block(px, false, g, p, j);
        j += 4;
    }
    for (; j < c; j++)
        for (size_t i = 0; i < px; i++)
            edge(g, p + i, j);
}

void oct_sdw_f32__neon(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y, size_t ldy,
                       const oct_sout *out)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, w, y, ldy, out };
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, &g, c, p);
    for (; p < px; p++)
        pixels(1, &g, c, p);
}
