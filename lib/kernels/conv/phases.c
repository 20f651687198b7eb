/* lib/kernels/conv/phases.c -- a transposed convolution with strides as one without. */
#include "kernels/conv/phases.h"

#include "base/mem.h"
#include "kernels/conv/conv.h"
#include "kernels/rows.h"

#include <string.h>

/* One axis: of g, and what `inner` has of it. */
typedef struct axis {
    int64_t o, k, s, p;     /* output, taps, stride, padding before */
    int64_t taps, first, n; /* of inner: taps; (o + p) / s of the first output, and how many there are */
} axis;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static axis axis_of(int64_t o, int64_t k, int64_t s, int64_t p)
{
    const int64_t first = s == 1 ? p : floor_div(p, s);
    return (axis){ o, k, s, p, (k + s - 1) / s, first, s == 1 ? o : floor_div(o - 1 + p, s) - first + 1 };
}

static void axes_of(const oct_conv_geom *g, axis a[3])
{
    a[0] = axis_of(g->od, g->kd, g->sd, g->pd);
    a[1] = axis_of(g->oh, g->kh, g->sh, g->ph);
    a[2] = axis_of(g->ow, g->kw, g->sw, g->pw);
}

static bool steps(int64_t s, int64_t d, int64_t k)
{
    return s == 1 || d == 1 || k == 1;
}

bool oct_phases_plan(const oct_conv_geom *g, oct_phases *p)
{
    int64_t count, channels, weights, image;
    const int64_t strides[] = { g->sd, g->sh, g->sw };
    if (!g->transposed || !steps(g->sd, g->dd, g->kd) || !steps(g->sh, g->dh, g->kh) || !steps(g->sw, g->dw, g->kw) ||
        !oct_count(strides, 3, &count) || count == 1 || __builtin_mul_overflow(count, g->oc, &channels))
        return false;
    axis a[3];
    axes_of(g, a);
    oct_conv_geom *i = &p->inner;
    *p = (oct_phases){ .g = *g, .inner = *g, .count = (size_t)count, .runs = g->groups == 1 ? 1 : (size_t)count };
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    i->oc = p->runs == 1 ? channels : g->oc;
    i->ldy = 0;
    i->sd = i->sh = i->sw = 1;
    i->od = a[0].n, i->oh = a[1].n, i->ow = a[2].n;
    i->kd = a[0].taps, i->kh = a[1].taps, i->kw = a[2].taps;
    i->pd = a[0].first, i->ph = a[1].first, i->pw = a[2].first;
    const int64_t w[] = { i->c / i->groups, channels, i->kd, i->kh, i->kw },
                  y[] = { i->n, i->od, i->oh, i->ow, channels };
    if (oct_conv_geom_check(i, NULL) || !oct_count(w, 5, &weights) || !oct_count(y, 5, &image))
        return false;
    p->weights = (size_t)weights;
    p->image = (size_t)image;
    return true;
}

/* The tap of g that tap t of phase `phase` is; -1: the phase has none. */
static int64_t tap_of(const axis a[3], int64_t phase, int64_t t)
{
    int64_t tap = 0, scale = 1;
    for (int i = 2; i >= 0; i--) {
        const int64_t k = phase % a[i].s + t % a[i].taps * a[i].s;
        if (k >= a[i].k)
            return -1;
        tap += k * scale;
        scale *= a[i].k;
        phase /= a[i].s;
        t /= a[i].taps;
    }
    return tap;
}

/* Weights of input channel c that are of one phase. */
static void phase_weights(const oct_phases *p, const axis a[3], size_t c, size_t phase, const uint8_t *w, size_t size,
                          const int32_t *zero, size_t step, uint8_t *to)
{
    const size_t all = oct_conv_taps(&p->g), taps = oct_conv_taps(&p->inner), oc = (size_t)(p->g.oc / p->g.groups),
                 first = c / (size_t)(p->g.c / p->g.groups) * oc;
    for (size_t t = 0; t < taps; t++) {
        const int64_t tap = tap_of(a, (int64_t)phase, (int64_t)t);
        for (size_t o = 0; o < oc; o++)
            if (tap >= 0)
                memcpy(to + (o * taps + t) * size, w + ((c * oc + o) * all + (size_t)tap) * size, size);
            else
                memset(to + (o * taps + t) * size, zero ? zero[(first + o) * step] : 0, size);
    }
}

void oct_phases_weights(const oct_phases *p, const void *w, size_t size, const int32_t *zero, size_t step, void *to)
{
    axis a[3];
    axes_of(&p->g, a);
    const size_t channels = (size_t)p->g.c, part = p->weights / p->count / channels * size;
    for (size_t c = 0; c < channels; c++)
        for (size_t phase = 0; phase < p->count; phase++)
            phase_weights(p, a, c, phase, w, size, zero, step,
                          (uint8_t *)to + (p->runs == 1 ? c * p->count + phase : phase * channels + c) * part);
}

void oct_phases_repeat(const oct_phases *p, const void *v, size_t size, void *to)
{
    const size_t bytes = (size_t)p->g.oc * size;
    for (size_t i = 0; i < p->count / p->runs; i++)
        memcpy((uint8_t *)to + i * bytes, v, bytes);
}

typedef struct job {
    const oct_phases *p;
    axis a[3];
    bool collects;
    size_t oc, pitch;    /* bytes of a pixel's channels, and to the next pixel of y */
    size_t phase, pixel; /* bytes of the image from one phase, or pixel, to the next */
    uint8_t *image, *y;
} job;

/* A line of outputs: for each pixel of a line of inner sw phases, which are one piece where they lie side by side. */
static void move_line(const job *w, uint8_t *image, uint8_t *y)
{
    const axis *x = &w->a[2];
    const bool one = w->pitch == w->oc && w->phase == w->oc;
    for (int64_t i = 0, o = x->first * x->s - x->p; i < x->n; i++, o += x->s, image += w->pixel) {
        const int64_t begin = o < 0 ? -o : 0, end = x->o - o < x->s ? x->o - o : x->s;
        const int64_t step = one ? end - begin : 1;
        for (int64_t r = begin; r < end; r += step) {
            uint8_t *a = image + (size_t)r * w->phase, *b = y + (size_t)(o + r) * w->pitch;
            memcpy(w->collects ? a : b, w->collects ? b : a, (size_t)step * w->oc);
        }
    }
}

static void move_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = &w->p->g, *inner = &w->p->inner;
    for (size_t i = begin; i < end; i++) {
        const int64_t y = (int64_t)i % g->oh + g->ph, z = (int64_t)i / g->oh % g->od + g->pd,
                      n = (int64_t)i / g->oh / g->od;
        const int64_t qy = floor_div(y, g->sh), qz = floor_div(z, g->sd);
        const int64_t phase = ((z - qz * g->sd) * g->sh + y - qy * g->sh) * g->sw;
        const int64_t line = (n * inner->od + qz - w->a[0].first) * inner->oh + qy - w->a[1].first;
        move_line(w, w->image + (size_t)(line * inner->ow) * w->pixel + (size_t)phase * w->phase,
                  w->y + i * (size_t)g->ow * w->pitch);
    }
}

static void move(const oct_phases *p, oct_pool *pool, void *image, size_t size, void *y, size_t ld, bool collects)
{
    enum { LINES = 16 };
    const size_t oc = (size_t)p->g.oc * size;
    job w = { .p = p, .collects = collects, .oc = oc, .pitch = ld * size, .image = image, .y = y };
    w.phase = p->runs == 1 ? oc : p->image / p->count * size;
    w.pixel = p->runs == 1 ? oc * p->count : oc;
    axes_of(&p->g, w.a);
    oct_pool_for(pool, (size_t)(p->g.n * p->g.od * p->g.oh), LINES, move_lines, &w);
}

void oct_phases_spread(const oct_phases *p, oct_pool *pool, const void *image, size_t size, void *y)
{
    move(p, pool, (void *)(uintptr_t)image, size, y, (size_t)p->g.ldy, false);
}

void oct_phases_collect(const oct_phases *p, oct_pool *pool, const void *y, size_t ld, size_t size, void *image)
{
    memset(image, 0, p->image * size);
    move(p, pool, image, size, (void *)(uintptr_t)y, ld, true);
}
