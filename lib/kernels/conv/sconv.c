/* lib/kernels/conv/sconv.c -- float convolution: plan, packing, run. */
#include "kernels/conv/conv.h"

#include "base/mem.h"
#include "kernels/bgemm/bgemm.h"
#include "kernels/conv/dw_int.h"
#include "kernels/sgemm/sgemm_int.h"

enum { LEAST_FOLDED = 3 }; /* floats of a line of taps: with fewer, pointers to them take longer than copies */

/* Scratch: the padding row, the copy, then a part for each thread. */
static size_t pad_bytes(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->c * sizeof(float), 64);
}

static size_t kernel_taps(const oct_sconv *p)
{
    return p->path == OCT_CONV_GATHER ? 1 : p->path == OCT_CONV_FOLDED ? (size_t)p->g.kh : oct_conv_taps(&p->g);
}

static size_t kernel_depth(const oct_sconv *p)
{
    return oct_conv_taps(&p->g) / kernel_taps(p) * (size_t)(p->g.c / p->g.groups);
}

/* Whether the taps of a line are neighbours in x, or in a copy of it with its padding. */
static bool fold(oct_sconv *p)
{
    const oct_conv_geom *g = &p->g;
    if (g->groups != 1 || g->dw != 1 || g->kw * g->c < LEAST_FOLDED || !oct_padded_plan(g, sizeof(float), &p->padded))
        return false;
    p->folded = *g;
    p->folded.h = p->padded.h;
    p->folded.w = p->padded.w;
    p->folded.ldx = g->c;
    p->folded.kw = 1;
    p->folded.ph = p->folded.pw = 0;
    return true;
}

/* Items of lines are whole ones. A thread has pointers of one line, or of an item. */
static bool sizes_depthwise(oct_sconv *p, size_t *thread)
{
    const size_t taps = oct_conv_taps(&p->g), row = oct_round_up((size_t)p->g.c, OCT_DW_CHANNELS) * sizeof(float);
    const size_t block = oct_dw_block((size_t)p->g.c), ow = (size_t)p->g.ow;
    const bool lines = p->dw->lines != NULL;
    p->block = lines ? (block + ow - 1) / ow * ow : block;
    return oct_mul_size(taps, row, &p->packed_size) &&
           oct_mul_size(taps, (lines ? ow : block) * sizeof(void *), thread);
}

static bool sizes_product(oct_sconv *p, size_t *thread)
{
    const size_t taps = kernel_taps(p), depth = kernel_depth(p), groups = (size_t)p->g.groups;
    const bool gather = p->path == OCT_CONV_GATHER;
    size_t floats;
    p->block = oct_rows_block(depth * sizeof(float), gather);
    if (!oct_spack_size(p->kernel, taps, depth, (size_t)p->g.oc / groups, &floats) ||
        !oct_mul_size(floats, groups * sizeof(float), &p->packed_size))
        return false;
    return oct_stiles_scratch(p->kernel, p->block, taps, depth, gather, false, thread);
}

oct_status oct_sconv_prepare(oct_sconv *p, const oct_conv_geom *g, bool bf16, int threads, oct_err *err)
{
    *p = (oct_sconv){ .g = *g, .threads = threads < 1 ? 1 : threads };
    OCT_TRY(oct_conv_geom_check(g, err));
    p->g.ldx = g->ldx ? g->ldx : g->c;
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    p->path = oct_conv_choose(&p->g);
    if (p->path == OCT_CONV_GATHER && !bf16 && fold(p))
        p->path = OCT_CONV_FOLDED;
    const oct_extent e = { oct_conv_pixels(g), (size_t)(g->oc / g->groups),
                           oct_conv_taps(g) * (size_t)(g->c / g->groups) };
    p->kernel = (bf16 ? oct_bgemm_choose : oct_sgemm_choose)(oct_isa_active(), &e).record;
    p->dw = oct_sdw_select(oct_isa_active(), g);
    size_t thread, all;
    if (!(p->path == OCT_CONV_DEPTHWISE ? sizes_depthwise(p, &thread) : sizes_product(p, &thread)) ||
        !oct_mul_size(oct_round_up(thread, 64), (size_t)p->threads, &all) || !oct_add_size(all, pad_bytes(g), &all) ||
        p->padded.bytes > SIZE_MAX - 64 || !oct_add_size(all, oct_round_up(p->padded.bytes, 64), &p->scratch_size))
        return oct_fail(err, OCT_ENOMEM, "convolution: weights or scratch memory are too large");
    return OCT_OK;
}

/* Lines of a depthwise convolution may be cut so that pixels are computed twice. Sums of bf16 are kept in y. */
bool oct_sconv_in_place(const oct_sconv *p)
{
    return p->path != OCT_CONV_DEPTHWISE && p->kernel->panel == OCT_SPANEL_F32 &&
           oct_stiles_whole(p->kernel, kernel_taps(p), kernel_depth(p));
}

static void pack_depthwise(const oct_sconv *p, const float *w, float *packed)
{
    const size_t taps = oct_conv_taps(&p->g), c = (size_t)p->g.c, step = oct_round_up(c, OCT_DW_CHANNELS);
    for (size_t t = 0; t < taps; t++)
        for (size_t i = 0; i < step; i++)
            packed[t * step + i] = i < c ? w[i * taps + t] : 0.0f;
}

void oct_sconv_pack(const oct_sconv *p, const float *w, void *packed)
{
    if (p->path == OCT_CONV_DEPTHWISE) {
        pack_depthwise(p, w, packed);
        return;
    }
    const oct_conv_geom *g = &p->g;
    const size_t taps = oct_conv_taps(g), ic = (size_t)(g->c / g->groups), oc = (size_t)(g->oc / g->groups);
    /* [oc][ic][taps], or [ic][oc][taps] transposed. */
    const ptrdiff_t ks = (ptrdiff_t)(g->transposed ? oc * taps : taps),
                    ns = (ptrdiff_t)(g->transposed ? taps : ic * taps);
    size_t floats = 0;
    oct_spack_size(p->kernel, kernel_taps(p), kernel_depth(p), oc, &floats);
    for (size_t i = 0; i < (size_t)g->groups; i++)
        oct_spack(p->kernel, w + i * oc * ic * taps, taps, ic, oc, 1, ks, ns, p->path == OCT_CONV_GATHER,
                  (float *)packed + i * floats);
}

typedef struct dw_job {
    const oct_sconv *p;
    oct_rows rows;
    const float *packed;
    float *y;
    oct_sout out;
    uint8_t *scratch;
    size_t thread_bytes;
} dw_job;

static void run_dw_item(void *arg, size_t begin, size_t end, size_t thread)
{
    const dw_job *w = arg;
    const oct_sconv *p = w->p;
    const size_t taps = oct_conv_taps(&p->g);
    const float **table = (const float **)(void *)(w->scratch + thread * w->thread_bytes);
    oct_rows_point(&w->rows, begin, end - begin, 1, (const void **)table);
    oct_sout o = w->out;
    if (o.residual)
        o.residual += begin * o.ldr;
    const size_t ldy = (size_t)p->g.ldy;
    p->dw->fn(end - begin, (size_t)p->g.c, taps, table, w->packed, w->y + begin * ldy, ldy, &o);
}

static void run_dw_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const dw_job *w = arg;
    const oct_conv_geom *g = &w->p->g;
    const size_t ow = (size_t)g->ow;
    const void **table = (const void **)(void *)(w->scratch + thread * w->thread_bytes);
    oct_sout o = w->out;
    oct_sdw_lines l = { .px = ow,
                        .c = (size_t)g->c,
                        .rows = (size_t)g->kh,
                        .advance = oct_rows_advance(g),
                        .x = (const float *const *)table,
                        .w = w->packed,
                        .ldy = (size_t)g->ldy,
                        .out = &o };
    for (size_t i = begin; i < end; i += ow) {
        oct_rows_slide(&w->rows, i, ow, table);
        l.y = w->y + i * l.ldy;
        o.residual = w->out.residual ? w->out.residual + i * o.ldr : NULL;
        w->p->dw->lines(&l);
    }
}

void oct_sconv_run(const oct_sconv *p, oct_pool *pool, const float *x, const void *packed, float *y,
                   const oct_sout *out, void *scratch)
{
    const oct_conv_geom *g = &p->g;
    const size_t pad = pad_bytes(g), pixels = oct_conv_pixels(g);
    const bool folded = p->path == OCT_CONV_FOLDED;
    const oct_sout o = out ? *out : (oct_sout){ 0 };
    float *copy = (float *)(void *)((uint8_t *)scratch + pad);
    uint8_t *parts = (uint8_t *)scratch + pad + oct_round_up(p->padded.bytes, 64);
    memset(scratch, 0, pad);
    if (oct_pool_threads(pool) > p->threads)
        pool = NULL;
    if (p->padded.bytes) {
        oct_padded_copy(&p->padded, g, pool, sizeof *x, 0, x, copy);
        x = copy;
    }
    const oct_rows rows = { .x = (const uint8_t *)x,
                            .step = (size_t)(folded ? p->folded.ldx : g->ldx) * sizeof *x,
                            .run = (folded ? kernel_depth(p) : (size_t)(g->c / g->groups)) * sizeof *x,
                            .g = p->path == OCT_CONV_DENSE ? NULL
                                 : folded                  ? &p->folded
                                                           : g,
                            .pad = scratch,
                            .count = pixels };
    if (p->path == OCT_CONV_DEPTHWISE) {
        const bool lines = p->dw->lines != NULL;
        dw_job w = { p,
                     rows,
                     packed,
                     y,
                     o,
                     parts,
                     oct_round_up(oct_conv_taps(g) * (lines ? (size_t)g->ow : p->block) * sizeof(void *), 64) };
        oct_pool_for(pool, pixels, p->block, lines ? run_dw_lines : run_dw_item, &w);
        return;
    }
    const oct_stiles t = { .kernel = p->kernel,
                           .rows = rows,
                           .gather = p->path == OCT_CONV_GATHER,
                           .taps = kernel_taps(p),
                           .kc = kernel_depth(p),
                           .n = (size_t)(g->oc / g->groups),
                           .groups = (size_t)g->groups,
                           .packed = packed,
                           .c = y,
                           .ldc = (size_t)g->ldy,
                           .out = o,
                           .block = p->block,
                           .scratch = parts };
    oct_stiles_run(&t, pool);
}
