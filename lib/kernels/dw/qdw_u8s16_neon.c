/* lib/kernels/dw/qdw_u8s16_neon.c -- depthwise convolution on bytes: 2 pixels share the weights of 8 channels and two
 * taps. Bytes are widened to 16 bits; smlal adds their products, of 25 bits at most, to 32. */
#include "kernels/dw/dw_int.h"
#include "kernels/neon.h"

typedef struct args {
    size_t taps, step;
    const uint8_t *const *x;
    uint8x8_t flip;
    const int16_t *w;
    int32_t *acc;
} args;

typedef struct pair {
    int32x4_t lo, hi;
} pair;

/* The n (8 or fewer) channels at x. */
OCT_INLINE int16x8_t load(const args *g, const uint8_t *x, size_t n)
{
    const uint8x8_t v = n >= 8 ? vld1_u8(x) : oct_neon_part(x, n);
    return vreinterpretq_s16_u16(vmovl_u8(veor_u8(v, g->flip)));
}

OCT_INLINE pair add(pair s, int16x8_t x, int16x8_t w)
{
    return (pair){ vmlal_s16(s.lo, vget_low_s16(x), vget_low_s16(w)), vmlal_high_s16(s.hi, x, w) };
}

OCT_INLINE void store(const args *g, size_t p, size_t j, pair s)
{
    int32_t *to = g->acc + p * g->step + j;
    vst1q_s32(to, s.lo);
    vst1q_s32(to + 4, s.hi);
}

/* The n (8 or fewer) channels from j of px pixels from p; px is a constant once inlined. */
OCT_INLINE void block(const size_t px, const args *g, size_t p, size_t j, size_t n)
{
    const uint8_t *const *x = g->x + p * g->taps, *const *y = x + g->taps;
    pair s = { vdupq_n_s32(0), vdupq_n_s32(0) }, r = s;
    for (size_t t = 0; t < g->taps; t += 2) {
        const int16x8x2_t w = vld2q_s16(g->w + (t / 2 * g->step + j) * 2);
        /* A missing last tap weighs zero: any bytes do. */
        const size_t next = t + 1 < g->taps ? t + 1 : t;
        s = add(add(s, load(g, x[t] + j, n), w.val[0]), load(g, x[next] + j, n), w.val[1]);
        if (px > 1)
            r = add(add(r, load(g, y[t] + j, n), w.val[0]), load(g, y[next] + j, n), w.val[1]);
    }
    store(g, p, j, s);
    if (px > 1)
        store(g, p + 1, j, r);
}

OCT_INLINE void pixels(const size_t px, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 8 <= c; j += 8)
        block(px, g, p, j, 8);
    if (j < c)
        block(px, g, p, j, c - j);
}

void oct_qdw_u8s16__neon(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w,
                         int32_t *acc)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, vdup_n_u8(flip), w, acc };
    size_t p = 0;
    for (; p + 2 <= px; p += 2)
        pixels(2, &g, c, p);
    if (p < px)
        pixels(1, &g, c, p);
}
