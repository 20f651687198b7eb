/* lib/kernels/conv/qflat.c -- 8-bit convolution over a copy of the image by which it becomes a product. */
#include "kernels/conv/qflat.h"

#include "base/mem.h"
#include "kernels/conv/qproduct.h"

#include <string.h>

static size_t most(int64_t a, int64_t b)
{
    return (size_t)(a > b ? a : b);
}

/* Small enough for products of three. */
static bool is_small(const oct_conv_geom *g)
{
    enum { SMALL = 1 << 20 };
    const int64_t sizes[] = { g->h, g->w, g->c, g->oh, g->ow, g->kh, g->kw, g->sh, g->sw, g->dh, g->dw, g->ph, g->pw };
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        if (sizes[i] > SMALL || sizes[i] < -SMALL)
            return false;
    return true;
}

/* Convolutions of one group in the plane. False also where sizes overflow. */
static bool plan_of(const oct_conv_geom *g, oct_qflat_plan *p)
{
    enum { ROOM = OCT_QBLOCK_STEP };
    if (g->transposed || g->groups != 1 || g->kd != 1 || g->d != 1 || g->od != 1 || g->pd != 0 || !is_small(g))
        return false;
    const int64_t advance = g->kw > 1 ? g->sw : 1, under = (g->ow - 1) * advance + (g->kw - 1) * g->dw + 1;
    const int64_t left = g->kw > 1 && g->pw > 0 ? g->pw : 0, ends = under < g->pw + g->w ? under : g->pw + g->w;
    p->advance = (size_t)advance;
    p->columns =
        oct_round_up(g->kw > 1 ? most(most(under - left, ends), (g->ow - 1) * advance + 1) : (size_t)g->ow, p->advance);
    p->parts = g->kh > 1 ? (size_t)g->sh : 1;
    p->lines = (size_t)(g->oh + (g->kh - 1) * g->dh / g->sh);
    p->fold = g->dw == 1 ? (size_t)g->kw : 1;
    p->taps = (size_t)(g->kh * g->kw) / p->fold;
    p->positions = (size_t)(g->oh - 1) * (p->columns / p->advance) + (size_t)g->ow;
    size_t line, all;
    if (!oct_mul_size(p->columns, (size_t)g->c, &line) || !oct_mul_size(line, p->lines * p->parts, &all) ||
        all > SIZE_MAX / 8 || p->lines > SIZE_MAX / 8 / p->parts)
        return false;
    /* Behind the last line: its padding on the right, and what loads of whole steps reach. */
    p->bytes = oct_round_up(all + ((size_t)left + (size_t)(g->kw * g->dw)) * (size_t)g->c + ROOM, 64);
    return true;
}

/* Pixels that are rows as they lie need no copy. */
static bool suits(const oct_conv_geom *g)
{
    oct_qflat_plan p;
    return !oct_conv_is_dense(g) && !oct_conv_is_depthwise(g) && plan_of(g, &p);
}

/* By a kernel of blocks. */
static oct_choice cost(const oct_conv_geom *g, oct_isa have)
{
    oct_choice c = { 0 };
    size_t n;
    const oct_qgemm_kernel *k = oct_qgemm_kernels(&n);
    oct_qflat_plan p;
    for (size_t i = 0; i < n; i++)
        if (k[i].block && (k[i].isa & ~have) == 0 && plan_of(g, &p)) {
            const oct_extent e = { p.positions * (size_t)g->n, (size_t)g->oc,
                                   p.taps * oct_round_up(p.fold * (size_t)g->c, k[i].kr), 0 };
            oct_choice_offer(&c, &k[i], OCT_QFLAT_NAME, &e,
                             (oct_cost_tile){ .mr = k[i].mr, .nr = k[i].nr, .unit = k[i].nr / 2, .kr = k[i].kr });
        }
    return c;
}

/* The copy, then where taps begin in it. */
static size_t copy_bytes(const oct_qflat_plan *p)
{
    return p->bytes + oct_round_up(p->taps * sizeof(size_t), 64);
}

static bool sizes(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    oct_qflat_plan flat;
    return plan_of(&p->g, &flat) && oct_qproduct_sizes(p, kernel, flat.fold, false, s) &&
           oct_add_size(s->shared, copy_bytes(&flat), &s->shared);
}

typedef struct job {
    const oct_conv_geom *g;
    oct_qflat_plan p;
    const uint8_t *x;
    uint8_t *copy, pad;
} job;

/* Columns of an input line, every `gap`-th from column x on: padding where they are outside. */
static void copy_line(const job *w, const uint8_t *line, int64_t x, int64_t gap, uint8_t *to)
{
    const oct_conv_geom *g = w->g;
    const size_t c = (size_t)g->c, ldx = (size_t)g->ldx;
    const int64_t columns = (int64_t)w->p.columns;
    int64_t from = x < 0 ? (gap - 1 - x) / gap : 0, until = x < g->w ? (g->w - x + gap - 1) / gap : 0;
    from = from < columns ? from : columns;
    until = until < from ? from : until < columns ? until : columns;
    memset(to, w->pad, (size_t)from * c);
    if (gap == 1 && ldx == c)
        memcpy(to + (size_t)from * c, line + (size_t)(x + from) * c, (size_t)(until - from) * c);
    else
        for (int64_t i = from; i < until; i++)
            memcpy(to + (size_t)i * c, line + (size_t)(x + i * gap) * ldx, c);
    memset(to + (size_t)until * c, w->pad, (size_t)(columns - until) * c);
}

static void copy_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = w->g;
    const size_t line = w->p.columns * (size_t)g->c;
    for (size_t i = begin; i < end; i++) {
        const int64_t y = (int64_t)(i % w->p.lines) * g->sh + (int64_t)(i / w->p.lines) - g->ph;
        uint8_t *to = w->copy + i * line;
        if (y < 0 || y >= g->h)
            memset(to, w->pad, line);
        else
            copy_line(w, w->x + (size_t)(y * g->w * g->ldx), -g->pw, g->kw > 1 ? 1 : g->sw, to);
    }
}

/* Where taps begin, from the place of a position on. */
static void place_taps(const job *w, size_t *at)
{
    const oct_conv_geom *g = w->g;
    const size_t c = (size_t)g->c, line = w->p.columns * c, across = w->p.taps / (size_t)g->kh;
    for (size_t ky = 0; ky < (size_t)g->kh; ky++) {
        const size_t down = ky * (size_t)g->dh, part = down % (size_t)g->sh,
                     start = part * w->p.lines + down / (size_t)g->sh;
        for (size_t i = 0; i < across; i++)
            at[ky * across + i] = start * line + i * (size_t)g->dw * c;
    }
}

/* Image by image. */
static void run(const oct_qconv_job *j)
{
    const oct_conv_geom *g = &j->p->g;
    job w = { .g = g, .x = j->x, .copy = j->shared, .pad = (uint8_t)j->zx };
    if (!plan_of(g, &w.p))
        return;
    size_t *at = (size_t *)(void *)(w.copy + w.p.bytes);
    const oct_qflat flat = { .tap = at, .line = w.p.columns / w.p.advance, .width = (size_t)g->ow };
    const size_t all = w.p.lines * w.p.parts, line = w.p.columns * (size_t)g->c, elem = oct_qout_size(j->out->kind);
    oct_qtiles image = oct_qproduct_tiles(j, g, false);
    image.flat = &flat;
    image.rows = (oct_rows){ .x = w.copy, .step = w.p.advance * (size_t)g->c, .run = image.kc, .count = w.p.positions };
    image.scratch = j->shared + copy_bytes(&w.p);
    place_taps(&w, at);
    memset(w.copy + all * line, w.pad, w.p.bytes - all * line);
    for (int64_t i = 0; i < g->n; i++) {
        enum { SMALL = 64 << 10 }; /* waking the threads costs more than copying so much */
        oct_pool_for(all * line < SMALL ? NULL : j->pool, all, 1, copy_lines, &w);
        oct_qtiles_run(&image, j->pool);
        w.x += (size_t)(g->h * g->w * g->ldx);
        image.c = (uint8_t *)image.c + (size_t)(g->oh * g->ow) * image.ldc * elem;
    }
}

const oct_qconv_algorithm oct_qconv_flat = {
    .name = "flat",
    .suits = suits,
    .cost = cost,
    .sizes = sizes,
    .pack = oct_qproduct_pack,
    .run = run,
};
