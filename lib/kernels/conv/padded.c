/* lib/kernels/conv/padded.c -- a copy of an image with its padding. */
#include "kernels/conv/padded.h"

#include <string.h>

/* What taps reach of an image with wide padding and strides may be any size. */
enum { MOST_TIMES = 2, SMALL = 1 << 20 };

bool oct_padded_plan(const oct_conv_geom *g, size_t size, oct_padded *p)
{
    if (g->transposed || g->kd != 1 || g->d != 1 || g->od != 1 || g->pd != 0)
        return false;
    const double reach_h = (double)(g->oh - 1) * (double)g->sh + (double)(g->kh - 1) * (double)g->dh + 1;
    const double reach_w = (double)(g->ow - 1) * (double)g->sw + (double)(g->kw - 1) * (double)g->dw + 1;
    const double pixel = (double)(g->n ? g->n : 1) * (double)g->c * (double)size;
    if (pixel * reach_h * reach_w > MOST_TIMES * pixel * (double)g->h * (double)g->w + SMALL)
        return false;
    const int64_t h = (int64_t)reach_h, w = (int64_t)reach_w;
    const bool lies = g->ldx == g->c && g->ph == 0 && g->pw == 0 && h <= g->h && w <= g->w;
    *p = lies ? (oct_padded){ g->h, g->w, 0 }
              : (oct_padded){ h, w, (size_t)g->n * (size_t)h * (size_t)w * (size_t)g->c * size };
    return true;
}

typedef struct job {
    const oct_padded *p;
    const oct_conv_geom *g;
    size_t pixel, step; /* bytes of a pixel, and to the next one of x */
    uint8_t pad;
    const uint8_t *x;
    uint8_t *to;
} job;

/* The pixels [from, until) of a line of the copy are those of a line of x from `first` on. */
static void copy_line(const job *w, const uint8_t *first, size_t from, size_t until, uint8_t *to)
{
    const size_t pixel = w->pixel;
    memset(to, w->pad, from * pixel);
    if (w->step == pixel)
        memcpy(to + from * pixel, first, (until - from) * pixel);
    for (size_t i = from; w->step != pixel && i < until; i++)
        memcpy(to + i * pixel, first + (i - from) * w->step, pixel);
    memset(to + until * pixel, w->pad, ((size_t)w->p->w - until) * pixel);
}

static int64_t within(int64_t v, int64_t least, int64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static void copy_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = w->g;
    const int64_t from = within(g->pw, 0, w->p->w), until = within(g->pw + g->w, from, w->p->w);
    for (size_t i = begin; i < end; i++) {
        const int64_t image = (int64_t)i / w->p->h, y = (int64_t)i % w->p->h - g->ph;
        uint8_t *to = w->to + i * (size_t)w->p->w * w->pixel;
        if (y < 0 || y >= g->h || from == until)
            memset(to, w->pad, (size_t)w->p->w * w->pixel);
        else
            copy_line(w, w->x + (size_t)((image * g->h + y) * g->w + from - g->pw) * w->step, (size_t)from,
                      (size_t)until, to);
    }
}

void oct_padded_copy(const oct_padded *p, const oct_conv_geom *g, oct_pool *pool, size_t size, uint8_t pad,
                     const void *x, void *to)
{
    enum { LINES = 16 };
    const job w = { p, g, (size_t)g->c * size, (size_t)g->ldx * size, pad, x, to };
    oct_pool_for(pool, (size_t)(g->n * p->h), LINES, copy_lines, (void *)(uintptr_t)&w);
}
