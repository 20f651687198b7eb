/* lib/kernels/conv/qproduct.c -- 8-bit convolutions as products of rows. */
#include "kernels/conv/qproduct.h"

#include "base/mem.h"
#include "kernels/qgemm/qchain.h"

/* Taps and depth as the kernel sees them. */
static size_t kernel_taps(const oct_qconv *p)
{
    return oct_conv_taps(&p->g) / p->fold;
}

static size_t kernel_depth(const oct_qconv *p)
{
    return p->fold * (size_t)(p->g.c / p->g.groups);
}

bool oct_qproduct_gathers(const oct_qgemm_kernel *k, const oct_conv_geom *g)
{
    return k->block || (k->chain && oct_conv_taps(g) > 1 && g->c / g->groups % OCT_QCHAIN_CHUNK != 0);
}

bool oct_qproduct_sizes(oct_qconv *p, const void *kernel, size_t fold, bool gather, oct_conv_sizes *s)
{
    p->kernel = kernel;
    p->fold = fold;
    const size_t taps = kernel_taps(p), depth = kernel_depth(p), groups = (size_t)p->g.groups;
    p->block = oct_qtiles_block(p->kernel, taps * depth, gather);
    return oct_qpack_size(p->kernel, taps, depth, (size_t)p->g.oc / groups, groups, &s->packed) &&
           oct_qtiles_scratch(p->kernel, p->block, taps, depth, gather, &s->thread) &&
           oct_qtiles_shared((size_t)p->g.oc, &s->shared);
}

bool oct_qproduct_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    const oct_conv_geom *g = &p->g;
    const size_t taps = oct_conv_taps(g), ic = (size_t)(g->c / g->groups), oc = (size_t)(g->oc / g->groups);
    oct_qsource s = { .b = w,
                      .is_signed = p->w_type == OCT_S8,
                      .fast_pack = p->fast_pack,
                      .taps = taps,
                      .kc = ic,
                      .fold = p->fold,
                      .ts = 1,
                      .zb = zw,
                      .zb_step = zw_step };
    s.ks = (ptrdiff_t)(g->transposed ? oc * taps : taps);
    s.ns = (ptrdiff_t)(g->transposed ? taps : ic * taps);
    for (size_t i = 0; i < (size_t)g->groups; i++, s.b += oc * ic * taps)
        oct_qpack(p->kernel, &s, oc, i, (size_t)g->groups, packed);
    return true;
}

oct_qtiles oct_qproduct_tiles(const oct_qconv_job *j, const oct_conv_geom *g, bool gather)
{
    const oct_qconv *p = j->p;
    const oct_dtype as = oct_qreads(p->kernel, p->x_type);
    return (oct_qtiles){ .kernel = p->kernel,
                         .qout = p->qout,
                         .rows = { .x = j->x,
                                   .step = (size_t)p->g.ldx,
                                   .run = (size_t)(p->g.c / p->g.groups),
                                   .g = g,
                                   .pad = j->pad,
                                   .count = oct_conv_pixels(&p->g) },
                         .gather = gather,
                         .taps = kernel_taps(p),
                         .kc = kernel_depth(p),
                         .n = (size_t)(p->g.oc / p->g.groups),
                         .groups = (size_t)p->g.groups,
                         .is_signed = as == OCT_S8,
                         .flip = oct_qflip(p->x_type, as),
                         .za = oct_qzero(j->zx, p->x_type, as),
                         .packed = j->packed,
                         .bias = j->bias,
                         .out = j->out,
                         .c = j->y,
                         .ldc = (size_t)p->g.ldy,
                         .block = p->block,
                         .scratch = j->shared };
}
