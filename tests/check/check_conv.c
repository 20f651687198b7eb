/* tests/check/check_conv.c -- convolutions against loops over the formula of the ONNX operator. */
#include "check.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/phases.h"
#include "kernels/dw/dw_int.h"
#include "kernels/dw/qdw_columns.h"
#include "kernels/conv/qflat.h"
#include "kernels/conv/qwinograd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pads, output sizes and the rest of a random shape; small, every path reached. */
static void random_axis(oct_check *t, int64_t *in, int64_t *out, int64_t *k, int64_t *s, int64_t *d, int64_t *p,
                        bool transposed, int64_t most)
{
    *in = 1 + (int64_t)oct_check_below(t, (size_t)most);
    *k = 1 + (int64_t)oct_check_below(t, 4);
    *s = 1 + (int64_t)oct_check_below(t, 3);
    *d = 1 + (int64_t)oct_check_below(t, 2);
    const int64_t extent = (*k - 1) * *d + 1;
    *p = (int64_t)oct_check_below(t, (size_t)extent + 2); /* beyond the extent: pixels that see padding alone */
    *out = transposed ? (*in - 1) * *s + extent - *p : (*in + *p + (int64_t)oct_check_below(t, 2) - extent) / *s + 1;
    if (*out < 1)
        *out = 1;
}

/* One tap, stride 1: the pixels themselves, or with padding before and after, or some cut off. */
static void pointwise_axis(oct_check *t, int64_t *in, int64_t *out, int64_t *p, bool moved)
{
    *in = *out = 1 + (int64_t)oct_check_below(t, 12);
    if (!moved)
        return;
    *p = (int64_t)oct_check_below(t, 4) - 1;
    *out += (int64_t)oct_check_below(t, 4) - 1;
    *out += *out == 0;
}

static oct_conv_geom random_geom(oct_check *t, size_t round)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.transposed = round % 5 == 4;
    g.n = 1 + (int64_t)oct_check_below(t, 2);
    const int64_t most = round % 3 == 0 ? 14 : 6;
    if (round % 4 != 3) {
        random_axis(t, &g.h, &g.oh, &g.kh, &g.sh, &g.dh, &g.ph, g.transposed, most);
        random_axis(t, &g.w, &g.ow, &g.kw, &g.sw, &g.dw, &g.pw, g.transposed, most);
        if (round % 7 == 6)
            random_axis(t, &g.d, &g.od, &g.kd, &g.sd, &g.dd, &g.pd, g.transposed, 4);
    } else {
        pointwise_axis(t, &g.h, &g.oh, &g.ph, round % 8 == 7);
        pointwise_axis(t, &g.w, &g.ow, &g.pw, round % 8 == 7);
    }
    const int64_t ic = 1 + (int64_t)oct_check_below(t, round % 2 ? 40 : 6), oc = 1 + (int64_t)oct_check_below(t, 45);
    switch (oct_check_below(t, 3)) {
    case 0:
        g.groups = 2 + (int64_t)oct_check_below(t, 60);
        g.c = g.oc = g.groups;
        break;
    case 1:
        g.groups = 1 + (int64_t)oct_check_below(t, 4);
        g.c = ic * g.groups;
        g.oc = oc * g.groups;
        break;
    default: g.c = ic; g.oc = oc;
    }
    if (round % 3 == 1) {
        g.ldx = g.c + (int64_t)oct_check_below(t, 9);
        g.ldy = g.oc + (int64_t)oct_check_below(t, 9);
    }
    return g;
}

/* Depthwise, 3x3, every width of 16 channels and more in turn. */
static oct_conv_geom depthwise_geom(oct_check *t, size_t round)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    random_axis(t, &g.h, &g.oh, &g.kh, &g.sh, &g.dh, &g.ph, false, 6);
    random_axis(t, &g.w, &g.ow, &g.kw, &g.sw, &g.dw, &g.pw, false, 45);
    g.kh = g.kw = 3;
    g.n = 2;
    g.c = g.oc = g.groups = 16 + (int64_t)round % 60;
    g.ldx = round % 3 ? 0 : g.c + 5;
    return g;
}

/* What Winograd's way takes, with tiles that end anywhere. */
static oct_conv_geom winograd_geom(oct_check *t, size_t round)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.kh = g.kw = 3;
    g.ph = (int64_t)oct_check_below(t, 3);
    g.pw = (int64_t)oct_check_below(t, 3);
    g.h = 6 + (int64_t)oct_check_below(t, 12);
    g.w = 6 + (int64_t)oct_check_below(t, round % 8 ? 12 : 60);
    g.oh = g.h + g.ph - 2 + (int64_t)oct_check_below(t, 3);
    g.ow = g.w + g.pw - 2 + (int64_t)oct_check_below(t, 3);
    g.n = 1 + (int64_t)oct_check_below(t, 3);
    g.c = 16 * (1 + (int64_t)oct_check_below(t, 4));
    g.oc = 1 + (int64_t)oct_check_below(t, 70);
    g.ldx = round % 3 ? 0 : g.c + 5;
    g.ldy = round % 2 ? 0 : g.oc + 3;
    return g;
}

/* One group in the plane, of lines that end anywhere in a block: strides of either axis beyond its taps, dilations,
 * padding that is cut off. */
static oct_conv_geom flat_geom(oct_check *t, size_t round)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    random_axis(t, &g.h, &g.oh, &g.kh, &g.sh, &g.dh, &g.ph, false, 12);
    random_axis(t, &g.w, &g.ow, &g.kw, &g.sw, &g.dw, &g.pw, false, round % 4 ? 20 : 70);
    if (round % 3 == 0)
        g.dh = g.dw = 1;
    if (round % 8 == 7) /* columns and lines that no tap reads */
        g.ph = -(int64_t)oct_check_below(t, (size_t)g.h), g.pw = -(int64_t)oct_check_below(t, (size_t)g.w);
    g.n = 1 + (int64_t)(round % 2);
    g.c = 1 + (int64_t)oct_check_below(t, round % 5 ? 30 : 140);
    g.oc = 1 + (int64_t)oct_check_below(t, 70);
    g.ldx = round % 3 ? 0 : g.c + 5;
    g.ldy = round % 2 ? 0 : g.oc + 3;
    return g;
}

/* Index of the input pixel's element of channel `ch` under a tap, or -1; those of the next channels follow it. */
static int64_t source(const oct_conv_geom *g, int64_t n, const int64_t o[3], const int64_t k[3], int64_t ch)
{
    const int64_t len[] = { g->d, g->h, g->w }, s[] = { g->sd, g->sh, g->sw }, d[] = { g->dd, g->dh, g->dw };
    const int64_t p[] = { g->pd, g->ph, g->pw };
    int64_t at = n;
    for (int i = 0; i < 3; i++) {
        int64_t x = o[i] * s[i] + k[i] * d[i] - p[i];
        if (g->transposed) {
            x = o[i] + p[i] - k[i] * d[i];
            if (x % s[i] != 0)
                return -1;
            x /= s[i];
        }
        if (x < 0 || x >= len[i])
            return -1;
        at = at * len[i] + x;
    }
    return at * (g->ldx ? g->ldx : g->c) + ch;
}

/* Index of the weight of a tap, of a group's first input channel; *step from one input channel to the next. */
static int64_t weight_index(const oct_conv_geom *g, int64_t oc, int64_t tap, int64_t *step)
{
    const int64_t ig = g->c / g->groups, og = g->oc / g->groups, taps = g->kd * g->kh * g->kw, grp = oc / og;
    *step = g->transposed ? og * taps : taps;
    return (g->transposed ? grp * ig * og + oc % og : oc * ig) * taps + tap;
}

/* Calls fn for each output element in memory order. */
typedef void (*each_fn)(void *arg, const oct_conv_geom *g, int64_t n, const int64_t o[3], int64_t oc, size_t pixel);
static void each_output(const oct_conv_geom *g, each_fn fn, void *arg)
{
    size_t pixel = 0;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t z = 0; z < g->od; z++)
            for (int64_t y = 0; y < g->oh; y++)
                for (int64_t x = 0; x < g->ow; x++, pixel++)
                    for (int64_t oc = 0; oc < g->oc; oc++)
                        fn(arg, g, n, (const int64_t[]){ z, y, x }, oc, pixel);
}

typedef struct naive_f32 {
    const float *x, *w;
    float *y;
    const oct_sout *o;
} naive_f32;

static void naive_f32_one(void *arg, const oct_conv_geom *g, int64_t n, const int64_t o[3], int64_t oc, size_t pixel)
{
    const naive_f32 *c = arg;
    const int64_t ig = g->c / g->groups, og = g->oc / g->groups;
    float v = c->o->bias ? c->o->bias[oc] : 0;
    int64_t tap = 0;
    for (int64_t kz = 0; kz < g->kd; kz++)
        for (int64_t ky = 0; ky < g->kh; ky++)
            for (int64_t kx = 0; kx < g->kw; kx++, tap++) {
                int64_t step;
                const int64_t at = source(g, n, o, (const int64_t[]){ kz, ky, kx }, oc / og * ig);
                const float *w = c->w + weight_index(g, oc, tap, &step);
                for (int64_t ic = 0; ic < ig; ic++)
                    v = fmaf(at < 0 ? 0.0f : c->x[at + ic], w[ic * step], v);
            }
    if (c->o->residual)
        v += c->o->residual[pixel * c->o->ldr + (size_t)oc];
    if (c->o->clamp)
        v = v < c->o->lo ? c->o->lo : v > c->o->hi ? c->o->hi : v;
    const uint32_t nan = 0x7fc00000;
    if (isnan(v))
        memcpy(&v, &nan, 4);
    c->y[pixel * (size_t)(g->ldy ? g->ldy : g->oc) + (size_t)oc] = v;
}

static size_t input_size(const oct_conv_geom *g)
{
    return (size_t)(g->n * g->d * g->h * g->w * (g->ldx ? g->ldx : g->c));
}

static size_t output_size(const oct_conv_geom *g)
{
    return oct_conv_pixels(g) * (size_t)(g->ldy ? g->ldy : g->oc);
}

static void describe(const oct_conv_geom *g, const char *path, const char *kernel, char *text, size_t size)
{
    snprintf(text, size, "%s %s n%d %dx%dx%dx%d -> %dx%dx%dx%d k%d.%d.%d s%d.%d.%d d%d.%d.%d p%d.%d.%d g%d%s", kernel,
             path, (int)g->n, (int)g->d, (int)g->h, (int)g->w, (int)g->c, (int)g->od, (int)g->oh, (int)g->ow,
             (int)g->oc, (int)g->kd, (int)g->kh, (int)g->kw, (int)g->sd, (int)g->sh, (int)g->sw, (int)g->dd, (int)g->dh,
             (int)g->dw, (int)g->pd, (int)g->ph, (int)g->pw, (int)g->groups, g->transposed ? " transposed" : "");
}

/* A transposed convolution by its phases, with an output that is wanted. */
static void check_sphases(oct_check *t, const oct_phases *h, const float *x, const float *w, const oct_sout *o,
                          const float *want, oct_pool *pool)
{
    oct_sconv p;
    const size_t ny = output_size(&h->g);
    float *all = oct_check_buffer(t, h->weights * 4), *image = oct_check_buffer(t, h->image * 4),
          *bias = oct_check_buffer(t, (size_t)h->inner.oc * 4), *got = oct_check_buffer(t, ny * 4);
    float *residual = oct_check_buffer(t, h->image * 4);
    oct_sout own = *o;
    if (oct_check_wrong(t, oct_sconv_prepare(&p, &h->inner, false, 2, NULL) != OCT_OK, "sconv of phases"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    const size_t weights = h->weights / h->runs, part = h->image / h->runs;
    oct_phases_weights(h, w, 4, NULL, 0, all);
    if (o->bias) {
        oct_phases_repeat(h, o->bias, 4, bias);
        own.bias = bias;
    }
    if (o->residual) {
        oct_phases_collect(h, pool, o->residual, o->ldr, 4, residual);
        own.residual = residual;
        own.ldr = (size_t)h->inner.oc;
    }
    for (size_t i = 0; i < h->runs; i++) {
        oct_sconv_pack(&p, all + i * weights, packed);
        oct_sconv_run(&p, pool, x, packed, image + i * part, &own, scratch);
        own.residual = own.residual ? own.residual + part : NULL;
    }
    oct_phases_spread(h, pool, image, 4, got);
    char text[300];
    describe(&h->g, "by phases", oct_sconv_kernel_name(&p), text, sizeof text);
    oct_check_same(t, want, got, ny * 4, 4, "%s", text);
}

static void check_sconv_case(oct_check *t, const oct_conv_geom g, size_t round)
{
    const size_t nx = input_size(&g), ny = output_size(&g), nw = (size_t)(g.c / g.groups * g.oc) * oct_conv_taps(&g);
    const size_t ldr = (size_t)g.oc + 2;
    float *x = oct_check_buffer(t, nx * 4), *w = oct_check_buffer(t, nw * 4),
          *bias = oct_check_buffer(t, (size_t)g.oc * 4);
    float *want = oct_check_buffer(t, ny * 4), *got = oct_check_buffer(t, ny * 4);
    float *res = oct_check_buffer(t, oct_conv_pixels(&g) * ldr * 4);
    void (*fill)(oct_check *, float *, size_t) = round % 4 == 0 ? oct_fill_f32_wild : oct_fill_f32;
    fill(t, x, nx);
    fill(t, w, nw);
    oct_fill_f32(t, bias, (size_t)g.oc);
    oct_fill_f32(t, res, oct_conv_pixels(&g) * ldr);
    const uint32_t r = oct_check_random(t);
    const oct_sout o = { .bias = r & 1 ? bias : NULL,
                         .residual = r & 2 ? res : NULL,
                         .ldr = ldr,
                         .clamp = r & 4,
                         .lo = 0,
                         .hi = r & 8 ? INFINITY : 1.5f };
    naive_f32 c = { x, w, want, &o };
    each_output(&g, naive_f32_one, &c);
    oct_sconv p;
    oct_err err = OCT_ERR_INIT;
    oct_check_want_any(t, false);
    const oct_status s = oct_sconv_prepare(&p, &g, false, 2, &err);
    oct_choice_want(NULL, NULL);
    if (oct_check_wrong(t, s != OCT_OK, "sconv: %s", err.text))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_sconv_pack(&p, w, packed);
    oct_sconv_run(&p, r & 16 ? t->pool : NULL, x, packed, got, &o, scratch);
    char text[300];
    describe(&g, oct_sconv_algorithm_name(&p), oct_sconv_kernel_name(&p), text, sizeof text);
    oct_check_same(t, want, got, ny * 4, 4, "%s", text);
    if (o.residual && oct_sconv_in_place(&p)) {
        oct_sout own = o;
        own.residual = got;
        own.ldr = (size_t)p.g.ldy;
        for (size_t i = 0; i < oct_conv_pixels(&g); i++)
            memcpy(got + i * own.ldr, res + i * ldr, (size_t)g.oc * sizeof *got);
        oct_sconv_run(&p, r & 16 ? t->pool : NULL, x, packed, got, &own, scratch);
        oct_check_same(t, want, got, ny * 4, 4, "%s, in place", text);
    }
    /* Not of infinite weights: phases multiply them by no zeros. */
    oct_phases phases;
    if (fill == oct_fill_f32 && oct_phases_plan(&g, &phases))
        check_sphases(t, &phases, x, w, &o, want, r & 16 ? t->pool : NULL);
    oct_check_release(t);
}

typedef struct naive_q {
    const uint8_t *x, *w;
    bool sx, sw;
    int32_t zx;
    const int32_t *zw, *bias;
    size_t zw_step;
    int32_t *acc;
} naive_q;

static void naive_q_one(void *arg, const oct_conv_geom *g, int64_t n, const int64_t o[3], int64_t oc, size_t pixel)
{
    const naive_q *c = arg;
    const int64_t ig = g->c / g->groups, og = g->oc / g->groups;
    const int64_t zw = c->zw ? c->zw[(size_t)oc * c->zw_step] : 0;
    int64_t v = c->bias ? c->bias[oc] : 0, tap = 0;
    for (int64_t kz = 0; kz < g->kd; kz++)
        for (int64_t ky = 0; ky < g->kh; ky++)
            for (int64_t kx = 0; kx < g->kw; kx++, tap++) {
                int64_t step;
                const int64_t at = source(g, n, o, (const int64_t[]){ kz, ky, kx }, oc / og * ig);
                if (at < 0)
                    continue; /* padding is real zero */
                const uint8_t *x = c->x + at, *w = c->w + weight_index(g, oc, tap, &step);
                for (int64_t ic = 0; ic < ig; ic++) {
                    const int64_t xv = c->sx ? (int8_t)x[ic] : x[ic], wv = c->sw ? (int8_t)w[ic * step] : w[ic * step];
                    v += (xv - c->zx) * (wv - zw);
                }
            }
    c->acc[pixel * (size_t)g->oc + (size_t)oc] = (int32_t)(uint32_t)v;
}

/* As check_sphases. o: its mult for each channel. */
static void check_qphases(oct_check *t, const oct_phases *h, const naive_q *c, const oct_qout *o, const void *want,
                          oct_pool *pool)
{
    oct_qconv p;
    const size_t ny = output_size(&h->g), oc = (size_t)h->inner.oc, elem = oct_qout_size(o->kind);
    uint8_t *all = oct_check_buffer(t, h->weights), *image = oct_check_buffer(t, h->image * elem),
            *got = oct_check_buffer(t, ny * elem);
    int32_t *bias = oct_check_buffer(t, oc * 4), *zero = oct_check_buffer(t, oc * 4);
    float *mult = oct_check_buffer(t, oc * 4);
    oct_qout own = *o;
    own.mult = mult;
    if (oct_check_wrong(t,
                        oct_qconv_prepare(&p, &h->inner, c->sx ? OCT_S8 : OCT_U8, c->sw ? OCT_S8 : OCT_U8, 2, NULL) !=
                            OCT_OK,
                        "qconv of phases"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_phases_weights(h, c->w, 1, c->zw, c->zw_step, all);
    oct_phases_repeat(h, o->mult, 4, mult);
    if (c->bias)
        oct_phases_repeat(h, c->bias, 4, bias);
    if (c->zw && c->zw_step)
        oct_phases_repeat(h, c->zw, 4, zero);
    for (size_t i = 0; i < h->runs; i++) {
        oct_qconv_pack(&p, all + i * (h->weights / h->runs), c->zw && c->zw_step ? zero : c->zw, c->zw_step, packed);
        oct_qconv_run(&p, pool, c->x, c->zx, packed, c->bias ? bias : NULL, &own,
                      image + i * (h->image / h->runs) * elem, scratch);
    }
    oct_phases_spread(h, pool, image, elem, got);
    char text[300];
    describe(&h->g, "by phases", oct_qconv_kernel_name(&p), text, sizeof text);
    oct_check_same(t, want, got, ny * elem, elem, "%s", text);
}

/* By the record of that name where it suits, NULL: any. balanced: weights whose zero points are those of s8, 0, and of
 * u8, 128. */
static void check_qconv_case(oct_check *t, const char *record, const oct_conv_geom g, bool balanced)
{
    const size_t nx = input_size(&g), ny = output_size(&g), nw = (size_t)(g.c / g.groups * g.oc) * oct_conv_taps(&g);
    const size_t oc = (size_t)g.oc, pixels = oct_conv_pixels(&g), ldy = (size_t)(g.ldy ? g.ldy : g.oc);
    const uint32_t r = oct_check_random(t);
    naive_q c = { .sx = r & 1, .sw = r & 2, .zw_step = r >> 2 & 1 };
    void (*fill)(oct_check *, void *, size_t) = r & 8 ? oct_fill_bytes : oct_fill_extremes;
    uint8_t *x = oct_check_buffer(t, nx), *w = oct_check_buffer(t, nw);
    int32_t *bias = oct_check_buffer(t, oc * 4), *zw = oct_check_buffer(t, oc * 4);
    float *mult = oct_check_buffer(t, oc * 4);
    fill(t, x, nx);
    fill(t, w, nw);
    for (size_t i = 0; r & 512 && i < nw; i++) /* of few bits, so that chains pay */
        w[i] = (uint8_t)((c.sw ? 0 : 128) + (int)(w[i] % 64) - 32);
    for (size_t i = 0; i < oc; i++) {
        bias[i] = (int32_t)oct_check_random(t) >> 14;
        zw[i] = (balanced ? 128 : (int32_t)oct_check_below(t, 256)) - (c.sw ? 128 : 0);
        mult[i] = (float)(1 + oct_check_below(t, 1000)) * 1e-5f;
    }
    c.x = x, c.w = w, c.bias = r & 16 ? bias : NULL, c.zw = r & 32 ? zw : NULL;
    c.zx = (int32_t)oct_check_below(t, 256) - (c.sx ? 128 : 0);
    c.acc = oct_check_buffer(t, pixels * oc * 4);
    each_output(&g, naive_q_one, &c);
    oct_qout o = { .kind = OCT_QOUT_S32, .mult = mult };
    if (r & 64)
        oct_qout_range(&o, r & 128 ? OCT_QOUT_U8 : OCT_QOUT_S8, r & 128 ? 77 : -3);
    const size_t elem = oct_qout_size(o.kind);
    uint8_t *want = oct_check_buffer(t, ny * elem), *got = oct_check_buffer(t, ny * elem);
    oct_qout__ref(pixels, oc, c.acc, oc, NULL, NULL, NULL, &o, want, ldy);
    oct_qconv p;
    oct_err err = OCT_ERR_INIT;
    if (record)
        oct_choice_want(record, NULL);
    else
        oct_check_want_any(t, true);
    const oct_status s = oct_qconv_prepare(&p, &g, c.sx ? OCT_S8 : OCT_U8, c.sw ? OCT_S8 : OCT_U8, 2, &err);
    oct_choice_want(NULL, NULL);
    if (oct_check_wrong(t, s != OCT_OK, "qconv: %s", err.text))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_qconv_pack(&p, w, c.zw, c.zw_step, packed);
    oct_qconv_run(&p, r & 256 ? t->pool : NULL, x, c.zx, packed, c.bias, &o, got, scratch);
    char text[300];
    describe(&g, oct_qconv_algorithm_name(&p), oct_qconv_kernel_name(&p), text, sizeof text);
    oct_check_same(t, want, got, ny * elem, elem, "%s flags %x", text, r & 1023);
    oct_phases phases;
    if (oct_phases_plan(&g, &phases))
        check_qphases(t, &phases, &c, &o, want, r & 256 ? t->pool : NULL);
    oct_check_release(t);
}

/* Every output sums all taps of all channels, at their extremes: beyond 26 bits the packer declines, and the sum is
 * right either way. 128 * 127 * 9 * 224 is below 2^25, 240 channels are above. */
static void check_winograd_bound(oct_check *t, const char *kernel)
{
    for (int64_t channels = 208; channels <= 240; channels += 16) {
        oct_conv_geom g;
        oct_conv_geom_init(&g);
        g.kh = g.kw = 3;
        g.h = g.w = 18;
        g.oh = g.ow = 16;
        g.c = channels;
        g.oc = 16;
        const size_t nx = input_size(&g), nw = (size_t)(g.c * g.oc * 9), ny = output_size(&g);
        uint8_t *x = oct_check_buffer(t, nx);
        int8_t *w = oct_check_buffer(t, nw);
        int32_t *got = oct_check_buffer(t, ny * 4), *want = oct_check_buffer(t, ny * 4);
        const oct_qout o = { .kind = OCT_QOUT_S32 };
        const int sign = channels % 32 ? 1 : -1;
        memset(x, 0, nx);
        for (size_t i = 0; i < nw; i++)
            w[i] = (int8_t)(sign > 0 ? 127 : -128);
        for (size_t i = 0; i < ny; i++)
            want[i] = -128 * (int32_t)channels * 9 * (sign > 0 ? 127 : -128);
        oct_qconv p;
        oct_err err = OCT_ERR_INIT;
        oct_choice_want(kernel, NULL);
        const oct_status s = oct_qconv_prepare(&p, &g, OCT_U8, OCT_S8, 1, &err);
        oct_choice_want(NULL, NULL);
        if (oct_check_wrong(t, s != OCT_OK, "qconv: %s", err.text))
            return;
        void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
        const bool chosen = strcmp(oct_qconv_algorithm_name(&p), "winograd") == 0,
                   fits = channels * 9 * (sign > 0 ? 127 : 128) < 1 << 18;
        oct_qconv_pack(&p, w, NULL, 0, packed);
        oct_qconv_run(&p, NULL, x, 128, packed, NULL, &o, got, scratch);
        const bool taken = strcmp(oct_qconv_algorithm_name(&p), "winograd") == 0;
        oct_check_wrong(t, taken != (fits && chosen), "%d channels of %d: Winograd %s taken", (int)channels, w[0],
                        taken ? "is" : "is not");
        oct_check_same(t, want, got, ny * 4, 4, "%s, %d channels of %d", oct_qconv_algorithm_name(&p), (int)channels,
                       w[0]);
        oct_check_release(t);
    }
}

/* Few channels a pixel and stride 1 along lines that are multiples of 8: neighbours fill registers together. */
static oct_conv_geom narrow_geom(oct_check *t, size_t round)
{
    static const int64_t channels[] = { 1, 2, 3, 4, 6, 8, 12, 15 };
    oct_conv_geom g = depthwise_geom(t, round);
    g.c = g.oc = g.groups = channels[round % OCT_COUNT(channels)];
    g.kh = 1 + (int64_t)oct_check_below(t, 3);
    g.kw = round % 3 ? 3 : 1 + (int64_t)oct_check_below(t, 5);
    g.sw = g.dw = 1;
    g.ow = 8 * (1 + (int64_t)oct_check_below(t, 6));
    g.ldx = round % 5 ? 0 : g.c + 5;
    g.pw = round % 2 ? (int64_t)oct_check_below(t, 3) : 0;
    g.w = g.ow + g.kw - 1 - g.pw - (int64_t)oct_check_below(t, 2);
    return g;
}

/* Taps that stand 2^30 pixels apart, all but some of them on padding: a copy of what they reach would be as large. */
static oct_conv_geom distant_geom(bool depthwise)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.h = g.w = 8;
    g.oh = g.kh = 3;
    g.ow = 8;
    g.kw = 3;
    g.pw = 1;
    g.sh = g.ph = 1 << 30;
    g.c = 8;
    g.groups = depthwise ? 8 : 1;
    g.oc = depthwise ? 8 : 5;
    return g;
}

void check_sconv(oct_check *t)
{
    for (size_t i = 0; i < 2; i++)
        check_sconv_case(t, distant_geom(i), i);
    oct_conv_geom g;
    for (size_t i = 0; oct_check_shape(i, &g); i++)
        check_sconv_case(t, g, i);
    for (size_t i = 0; i < 400; i++)
        check_sconv_case(t, random_geom(t, i), i);
    for (size_t i = 0; i < 100; i++) {
        g = narrow_geom(t, i); /* and first layers, whose lines of taps are read as one */
        if (i % 2) {
            g.groups = 1;
            g.oc = 1 + (int64_t)oct_check_below(t, 40);
            g.sw = 1 + (int64_t)oct_check_below(t, 3);
        }
        check_sconv_case(t, g, i);
    }
    for (size_t i = 0; i < 80; i++) { /* whole registers of channels and parts of them, any rows of taps: by lines */
        g = depthwise_geom(t, i);
        g.c = g.oc = g.groups = 8 + 8 * (int64_t)(i % 7) + (int64_t)(i % 4 == 3 ? i % 8 : 0);
        g.kh = 1 + (int64_t)i % 4;
        g.ldx = g.ldy = i % 3 ? 0 : g.c + 5;
        check_sconv_case(t, g, i);
    }
}

void check_qconv(oct_check *t)
{
    for (size_t i = 0; i < 2; i++)
        check_qconv_case(t, NULL, distant_geom(i), false);
    oct_conv_geom g;
    for (size_t i = 0; oct_check_shape(i, &g); i++)
        check_qconv_case(t, NULL, g, i % 2);
    for (size_t i = 0; i < 400; i++)
        check_qconv_case(t, NULL, random_geom(t, i), false);
    for (size_t i = 0; i < 120; i++)
        check_qconv_case(t, NULL, depthwise_geom(t, i), false);
    for (size_t i = 0; i < 160; i++)
        check_qconv_case(t, NULL, narrow_geom(t, i), false);
    for (size_t i = 0; i < 120; i++)
        check_qconv_case(t, NULL, winograd_geom(t, i), i % 8 > 0);
    for (size_t i = 0; i < 150; i++)
        check_qconv_case(t, OCT_QFLAT_NAME, flat_geom(t, i), false);
    size_t n;
    const oct_qwinograd_kernel *const *k = oct_qwinograd_kernels(&n);
    for (size_t i = 0; i < n; i++)
        if ((k[i]->isa & ~oct_isa_active()) == 0)
            check_winograd_bound(t, k[i]->name);
}

/* Depthwise kernels on their own, every width, some pixels. */
static void check_dw_width(oct_check *t, size_t px, size_t c, size_t taps)
{
    const size_t row = oct_round_up(c, OCT_DW_CHANNELS), ld = c + 3, rows = px * taps;
    float *xf = oct_check_buffer(t, rows * c * 4), *wf = oct_check_buffer(t, taps * row * 4);
    float *yf = oct_check_buffer(t, px * ld * 4), *want_f = oct_check_buffer(t, px * ld * 4);
    float *bias = oct_check_buffer(t, c * 4), *res = oct_check_buffer(t, px * ld * 4);
    int16_t *wq = oct_check_buffer(t, oct_round_up(taps, 2) * row * 2);
    uint8_t *xq = oct_check_buffer(t, rows * c);
    int32_t *acc = oct_check_buffer(t, px * row * 4), *want_q = oct_check_buffer(t, px * row * 4);
    const float **tf = oct_check_buffer(t, rows * sizeof *tf);
    const uint8_t **tq = oct_check_buffer(t, rows * sizeof *tq);
    oct_fill_f32_wild(t, xf, rows * c);
    oct_fill_f32_wild(t, wf, taps * row);
    oct_fill_f32(t, bias, c);
    oct_fill_f32(t, res, px * ld);
    oct_fill_extremes(t, xq, rows * c);
    memset(wq, 0, oct_round_up(taps, 2) * row * 2);
    for (size_t i = 0; i < rows; i++) {
        tf[i] = xf + i * c;
        tq[i] = xq + i * c;
    }
    for (size_t i = 0; i < taps; i++)
        for (size_t j = 0; j < c; j++)
            wq[(i / 2 * row + j) * 2 + i % 2] = (int16_t)((int)oct_check_below(t, 511) - 255);
    const oct_sout o = {
        .bias = c & 1 ? bias : NULL, .residual = c & 2 ? res : NULL, .ldr = ld, .clamp = c & 4, .lo = 0, .hi = 1
    };
    const uint8_t flip = c & 8 ? 0x80 : 0;
    oct_sdw_f32__ref(px, c, taps, tf, wf, want_f, ld, &o);
    oct_qdw_u8s16__ref(px, c, taps, tq, flip, wq, want_q);
    size_t ns, nq;
    const oct_sdw_kernel *ks = oct_sdw_kernels(&ns);
    const oct_qdw_kernel *kq = oct_qdw_kernels(&nq);
    for (size_t i = 0; i < ns; i++)
        if (ks[i].fn && (ks[i].isa & ~oct_isa_active()) == 0) {
            ks[i].fn(px, c, taps, tf, wf, yf, ld, &o);
            oct_check_same(t, want_f, yf, px * ld * 4, 4, "%s px=%zu c=%zu taps=%zu", ks[i].name, px, c, taps);
        }
    for (size_t i = 0; i < nq; i++)
        if (kq[i].fn && (kq[i].isa & ~oct_isa_active()) == 0) {
            kq[i].fn(px, c, taps, tq, flip, wq, acc);
            for (size_t p = 0; p < px; p++)
                oct_check_same(t, want_q + p * row, acc + p * row, c * 4, 4, "%s pixel %zu c=%zu taps=%zu", kq[i].name,
                               p, c, taps);
        }
    oct_check_release(t);
}

/* Lines of a check by columns: as pointers to columns, some of which lead elsewhere, and to the taps of each pixel. */
static void point_columns(oct_check *t, const oct_qdw_lines *l, const uint8_t *image, size_t width,
                          const uint8_t **columns, const uint8_t **table)
{
    for (size_t i = 0; i < l->lines * width; i++)
        for (size_t ky = 0; ky < 3; ky++) {
            const size_t at = oct_check_below(t, 40) ? ky * width + i % width : oct_check_below(t, 3 * width);
            columns[i * 3 + ky] = image + at * l->c;
        }
    for (size_t p = 0; p < l->lines * l->px; p++)
        for (size_t i = 0; i < 9; i++)
            table[p * 9 + i] = columns[p / l->px * l->pitch + (p % l->px * l->advance + i % 3) * 3 + i / 3];
}

/* Runs a kernel for sums, then for quantized values, and compares with the sums wanted. */
static void compare_columns(oct_check *t, const oct_qdw_kernel *k, oct_qdw_lines *l, const int32_t *want,
                            const char *what)
{
    const size_t row = oct_round_up(l->c, OCT_DW_CHANNELS), ldy = l->c + l->px % 3, px = l->lines * l->px;
    int32_t *acc = oct_check_buffer(t, px * row * 4), *add = oct_check_buffer(t, l->c * 4);
    float *mult = oct_check_buffer(t, l->c * 4);
    uint8_t *qvals = oct_check_buffer(t, px * ldy), *want_qvals = oct_check_buffer(t, px * ldy);
    l->acc = acc;
    k->columns(l);
    for (size_t p = 0; p < px; p++)
        oct_check_same(t, want + p * row, acc + p * row, l->c * 4, 4, "%s columns, pixel %zu of %s", k->name, p, what);
    if (l->flip)
        return;
    oct_qout o = { .mult = mult };
    const bool is_signed = oct_check_below(t, 2);
    oct_qout_range(&o, is_signed ? OCT_QOUT_S8 : OCT_QOUT_U8, (int32_t)oct_check_below(t, 256) - (is_signed ? 128 : 0));
    if (oct_check_below(t, 2))
        oct_qout_narrow(&o, 0.1f, -1, 4);
    for (size_t i = 0; i < l->c; i++) {
        mult[i] = (float)(1 + oct_check_below(t, 1000)) * (oct_check_below(t, 10) ? 1e-5f : 0.99e-3f);
        add[i] = (int32_t)oct_check_random(t) >> (oct_check_below(t, 10) ? 15 : 0);
    }
    l->acc = NULL, l->add = add, l->out = &o, l->y = qvals, l->ldy = ldy;
    oct_qout__ref(px, l->c, want, row, add, NULL, NULL, &o, want_qvals, ldy);
    k->columns(l);
    oct_check_same(t, want_qvals, qvals, px * ldy, 1, "%s columns, quantized values of %s", k->name, what);
}

/* 3x3 kernels by columns: weights that all fit bytes in pairs, some that do not, and beyond bytes. */
static void check_columns(oct_check *t, size_t line, size_t c, size_t round)
{
    const size_t row = oct_round_up(c, OCT_DW_CHANNELS), lines = 1 + round % 2, px = lines * line,
                 advance = 1 + round % 3;
    const size_t width = (line - 1) * advance + 3;
    const oct_dw_weights w = { oct_check_buffer(t, c * 9), round % 4 != 3, c, 9, oct_check_buffer(t, c * 4), 1 };
    uint8_t *bytes = (uint8_t *)(uintptr_t)w.w, *image = oct_check_buffer(t, 3 * width * c), *packed;
    int32_t *zw = (int32_t *)(uintptr_t)w.zw;
    int32_t *want = oct_check_buffer(t, px * row * 4);
    int16_t *taps = oct_check_buffer(t, 10 * row * 2);
    const uint8_t **table = oct_check_buffer(t, px * 9 * sizeof *table),
                  **columns = oct_check_buffer(t, lines * width * 3 * sizeof *table);
    oct_fill_extremes(t, image, 3 * width * c);
    oct_fill_extremes(t, bytes, c * 9);
    memset(taps, 0, 10 * row * 2);
    for (size_t i = 0; i < c; i++) {
        zw[i] = w.is_signed ? 0 : round % 8 == 3 && oct_check_below(t, 40) ? 128 : (int32_t)oct_check_below(t, 256);
        for (size_t k = 0; k < 9; k++) {
            if (round % 4 == 0 || (round % 4 == 1 && oct_check_below(t, 50)))
                bytes[i * 9 + k] = (uint8_t)(int8_t)((int)oct_check_below(t, 129) - 64);
            const int v = w.is_signed ? (int8_t)bytes[i * 9 + k] : bytes[i * 9 + k];
            taps[(k / 2 * row + i) * 2 + k % 2] = (int16_t)(v - zw[i]);
        }
    }
    packed = oct_check_buffer(t, oct_qdw_columns_size(c));
    oct_qdw_lines l = { .lines = lines,
                        .px = line,
                        .c = c,
                        .advance = advance,
                        .x = columns,
                        .pitch = width * 3,
                        .flip = round % 5 < 2 ? 0x80 : 0,
                        .w = packed };
    point_columns(t, &l, image, width, columns, table);
    oct_qdw_u8s16__ref(px, c, 9, table, l.flip, taps, want);
    char what[80];
    snprintf(what, sizeof what, "%zu, c=%zu round %zu", px, c, round);
    size_t n;
    const oct_qdw_kernel *k = oct_qdw_kernels(&n);
    for (size_t i = 0; i < n; i++)
        if (k[i].columns && (k[i].isa & ~oct_isa_active()) == 0) {
            oct_qdw_columns_pack(&w, c, k[i].exact, packed);
            compare_columns(t, &k[i], &l, want, what);
        }
    oct_check_release(t);
}

/* The packer takes the narrow form exactly where both pairs of a column stay within 128 (weights of 64 always do), and
 * for kernels that add four products in 32 bits. */
static void check_columns_narrow(oct_check *t)
{
    int8_t w[16 * 9];
    const oct_dw_weights from = { w, true, 16, 9, NULL, 0 };
    static const struct {
        int8_t column[3];
        uint8_t wide;
    } cases[] = {
        { { 64, 64, 64 }, 0 },     { { -64, -64, -64 }, 0 }, { { 100, 56, 100 }, 0 },  { { 100, 57, 100 }, 1 },
        { { 127, 2, 127 }, 0 },    { { 127, 3, 127 }, 1 },   { { -128, 0, -128 }, 0 }, { { -128, -1, -128 }, 1 },
        { { 127, -128, 127 }, 0 }, { { 1, 127, -128 }, 0 },  { { -128, -128, 3 }, 0 }, { { -100, -57, -100 }, 1 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        uint8_t *packed = oct_check_buffer(t, oct_qdw_columns_size(16));
        memset(w, 0, sizeof w);
        for (size_t y = 0; y < 3; y++)
            w[(i % 16) * 9 + y * 3 + i % 3] = cases[i].column[y];
        oct_qdw_columns_pack(&from, 16, false, packed);
        oct_check_same(t, &cases[i].wide, packed, 1, 1, "form of column weights, case %zu", i);
        oct_qdw_columns_pack(&from, 16, true, packed);
        oct_check_same(t, &(uint8_t){ 0 }, packed, 1, 1, "form of column weights of exact kernels, case %zu", i);
        oct_check_release(t);
    }
}

void check_dw(oct_check *t)
{
    static const size_t taps[] = { 1, 2, 3, 9, 25 };
    for (size_t c = 1; c < 100; c++)
        for (size_t i = 0; i < OCT_COUNT(taps); i++)
            check_dw_width(t, 1 + (c + i) % 6, c, taps[i]);
    for (size_t c = 16; c < 180; c += c < 100 ? 1 : 4)
        for (size_t i = 0; i < 5; i++)
            check_columns(t, 1 + (c + i) % 32, c, c + i * 7);
    check_columns_narrow(t);
}
