/* lib/kernels/conv/folded.c -- float convolution of few channels through a copy of the image with its padding, in which
 * the taps of a line are one. */
#include "kernels/conv/sproduct.h"

enum { LEAST = 3 }; /* floats of a line of taps: with fewer, pointers to them take longer than copies */

static bool suits(const oct_conv_geom *g)
{
    oct_padded padded;
    return !oct_conv_is_depthwise(g) && oct_conv_joins_taps(g) && g->groups == 1 && g->dw == 1 &&
           g->kw * g->c >= LEAST && oct_padded_plan(g, sizeof(float), &padded);
}

static bool sizes(oct_sconv *p, const void *kernel, oct_conv_sizes *s)
{
    const oct_conv_geom *g = &p->g;
    oct_padded_plan(g, sizeof(float), &p->padded);
    p->folded = *g;
    p->folded.h = p->padded.h;
    p->folded.w = p->padded.w;
    p->folded.ldx = g->c;
    p->folded.kw = 1;
    p->folded.ph = p->folded.pw = 0;
    if (p->padded.bytes > SIZE_MAX - 64)
        return false;
    s->shared = oct_round_up(p->padded.bytes, 64);
    return oct_sproduct_sizes(p, kernel, (size_t)g->kw, false, s);
}

static void pack(const oct_sconv *p, const float *w, void *packed)
{
    oct_sproduct_pack(p, w, false, packed);
}

static void run(const oct_sconv_job *j)
{
    const oct_sconv *p = j->p;
    if (p->padded.bytes)
        oct_padded_copy(&p->padded, &p->g, j->pool, sizeof *j->x, 0, j->x, j->shared);
    oct_sproduct_run(j, p->padded.bytes ? (const float *)(void *)j->shared : j->x, &p->folded, false);
}

const oct_sconv_algorithm oct_sconv_folded = {
    .name = "folded",
    .suits = suits,
    .cost = oct_sproduct_cost,
    .sizes = sizes,
    .pack = pack,
    .run = run,
    .in_place = oct_sproduct_in_place,
};
