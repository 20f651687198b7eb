/* lib/kernels/conv/sproduct.c -- float convolutions as products of rows. */
#include "kernels/conv/sproduct.h"

#include "base/mem.h"
#include "kernels/bgemm/bgemm.h"

/* Taps and depth as the kernel sees them. */
static size_t kernel_taps(const oct_sconv *p)
{
    return oct_conv_taps(&p->g) / p->fold;
}

static size_t kernel_depth(const oct_sconv *p)
{
    return p->fold * (size_t)(p->g.c / p->g.groups);
}

oct_choice oct_sproduct_cost(const oct_conv_geom *g, oct_isa have, bool bf16)
{
    const oct_extent e = oct_conv_extent(g);
    return (bf16 ? oct_bgemm_choose : oct_sgemm_choose)(have, &e);
}

bool oct_sproduct_sizes(oct_sconv *p, const void *kernel, size_t fold, bool gather, oct_conv_sizes *s)
{
    p->kernel = kernel;
    p->fold = fold;
    const size_t taps = kernel_taps(p), depth = kernel_depth(p), groups = (size_t)p->g.groups;
    size_t floats;
    p->block = oct_rows_block(depth * sizeof(float), gather);
    return oct_spack_size(p->kernel, taps, depth, (size_t)p->g.oc / groups, &floats) &&
           oct_mul_size(floats, groups * sizeof(float), &s->packed) &&
           oct_stiles_scratch(p->kernel, p->block, taps, depth, gather, false, &s->thread);
}

void oct_sproduct_pack(const oct_sconv *p, const float *w, bool gather, void *packed)
{
    const oct_conv_geom *g = &p->g;
    const size_t taps = oct_conv_taps(g), ic = (size_t)(g->c / g->groups), oc = (size_t)(g->oc / g->groups);
    /* [oc][ic][taps], or [ic][oc][taps] transposed. */
    const ptrdiff_t ks = (ptrdiff_t)(g->transposed ? oc * taps : taps),
                    ns = (ptrdiff_t)(g->transposed ? taps : ic * taps);
    size_t floats = 0;
    oct_spack_size(p->kernel, kernel_taps(p), kernel_depth(p), oc, &floats);
    for (size_t i = 0; i < (size_t)g->groups; i++)
        oct_spack(p->kernel, w + i * oc * ic * taps, taps, ic, oc, 1, ks, ns, gather, (float *)packed + i * floats);
}

/* Sums of bf16 are kept in y. */
bool oct_sproduct_in_place(const oct_sconv *p)
{
    return p->kernel->panel == OCT_SPANEL_F32 && oct_stiles_whole(p->kernel, kernel_taps(p), kernel_depth(p));
}

void oct_sproduct_run(const oct_sconv_job *j, const float *x, const oct_conv_geom *g, bool gather)
{
    const oct_sconv *p = j->p;
    const bool folded = g && g != &p->g;
    const oct_stiles t = {
        .kernel = p->kernel,
        .rows = { .x = (const uint8_t *)x,
                  .step = (size_t)(g ? g : &p->g)->ldx * sizeof *x,
                  .run = (folded ? kernel_depth(p) : (size_t)(p->g.c / p->g.groups)) * sizeof *x,
                  .g = g,
                  .pad = j->pad,
                  .count = oct_conv_pixels(&p->g) },
        .gather = gather,
        .taps = kernel_taps(p),
        .kc = kernel_depth(p),
        .n = (size_t)(p->g.oc / p->g.groups),
        .groups = (size_t)p->g.groups,
        .packed = j->packed,
        .c = j->y,
        .ldc = (size_t)p->g.ldy,
        .out = j->out,
        .block = p->block,
        .scratch = j->threads,
    };
    oct_stiles_run(&t, j->pool);
}
