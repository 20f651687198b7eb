/* lib/kernels/conv/qconv.c -- 8-bit convolution: plan, packing, run. */
#include "kernels/conv/conv.h"

#include "base/mem.h"
#include "kernels/conv/qdw_columns.h"
#include "kernels/conv/qwinograd.h"
#include "kernels/qgemm/qchain.h"

#include <string.h>

/* Scratch: the padding row, a number a column, then a part for each thread. */
static size_t pad_bytes(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->c, 64);
}

static size_t kernel_taps(const oct_qconv *p)
{
    return p->path == OCT_CONV_GATHER ? 1 : oct_conv_taps(&p->g);
}

static size_t kernel_depth(const oct_qconv *p)
{
    const size_t ic = (size_t)(p->g.c / p->g.groups);
    return p->path == OCT_CONV_GATHER ? oct_conv_taps(&p->g) * ic : ic;
}

static size_t dw_row(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->c, OCT_DW_CHANNELS);
}

/* Pixels finished together: 8, more where their sums stay within 16 KB. */
static size_t dw_pixels(const oct_conv_geom *g)
{
    const size_t fit = 4096 / dw_row(g) / 8 * 8;
    return fit < 8 ? 8 : fit > OCT_DW_PIXELS ? OCT_DW_PIXELS : fit;
}

static size_t dw_thread_bytes(const oct_qconv *p)
{
    return oct_round_up(oct_conv_taps(&p->g) * p->block * sizeof(void *), 64) + dw_pixels(&p->g) * dw_row(&p->g) * sizeof(int32_t);
}

/* 3x3 kernels slide along the rows of the image, where the machine has a kernel that does. */
static bool by_columns(const oct_qconv *p)
{
    return p->dw->columns && p->g.kh == 3 && p->g.kw == 3 && p->g.kd == 1 && p->g.c >= 16;
}

/* Depthwise weights: s32 sums of channels, then s16 pairs of taps, or what qdw_columns.h says, with the zero point taken off. */
static bool sizes_depthwise(oct_qconv *p, size_t *thread)
{
    const size_t taps = oct_round_up(oct_conv_taps(&p->g), 2), row = dw_row(&p->g);
    p->block = oct_dw_block((size_t)p->g.c);
    size_t values;
    if (!oct_mul_size(taps, row, &values) || values > SIZE_MAX / 16 || taps > SIZE_MAX / 16 / p->block)
        return false;
    p->packed_size = row * sizeof(int32_t) + (by_columns(p) ? oct_qdw_columns_size((size_t)p->g.c) : values * sizeof(int16_t));
    *thread = dw_thread_bytes(p);
    return true;
}

static bool sizes_product(oct_qconv *p, size_t *thread)
{
    const size_t taps = kernel_taps(p), depth = kernel_depth(p), groups = (size_t)p->g.groups;
    const bool gather = p->path == OCT_CONV_GATHER;
    p->block = oct_qtiles_block(p->kernel, taps * depth, gather);
    return oct_qpack_size(p->kernel, taps, depth, (size_t)p->g.oc / groups, groups, &p->packed_size) &&
           oct_qtiles_scratch(p->kernel, p->block, taps, depth, gather, thread);
}

/* Where Winograd's way is tried, packed weights begin with whether it is taken. */
typedef struct qconv_head {
    uint32_t winograd;
    uint32_t unused[15];
} qconv_head;

static bool sizes_winograd(oct_qconv *p, size_t *thread)
{
    size_t packed, part;
    if (!oct_qwinograd_sizes(&p->g, &packed, &part) || p->packed_size > SIZE_MAX / 2 || packed > SIZE_MAX / 2)
        return false;
    p->packed_size = sizeof(qconv_head) + (packed > p->packed_size ? packed : p->packed_size);
    *thread = part > *thread ? part : *thread;
    return true;
}

oct_status oct_qconv_prepare(oct_qconv *p, const oct_conv_geom *g, oct_dtype x_type, oct_dtype w_type, int threads,
                             oct_err *err)
{
    const oct_isa isa = oct_isa_active();
    *p = (oct_qconv){ .g = *g, .x_type = x_type, .w_type = w_type, .kernel = oct_qgemm_select(isa), .dw = oct_qdw_select(isa),
                      .qout = oct_qout_select(isa), .threads = threads < 1 ? 1 : threads };
    if ((x_type != OCT_U8 && x_type != OCT_S8) || (w_type != OCT_U8 && w_type != OCT_S8))
        return oct_fail(err, OCT_EUNSUPPORTED, "integer convolution of %s and %s", oct_dtype_name(x_type),
                        oct_dtype_name(w_type));
    OCT_TRY(oct_conv_geom_check(g, err));
    p->g.ldx = g->ldx ? g->ldx : g->c;
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    p->path = oct_conv_choose(&p->g);
    /* Chains pick from windows of k, which do not cross from tap to tap. */
    if (p->kernel->chain && p->path == OCT_CONV_INDIRECT && oct_conv_taps(&p->g) > 1 && kernel_depth(p) % OCT_QCHAIN_WINDOW)
        p->path = OCT_CONV_GATHER;
    p->one_row = p->path == OCT_CONV_DENSE && p->g.groups == 1 && oct_conv_pixels(&p->g) == 1;
    p->winograd = oct_qwinograd_suits(&p->g) ? oct_qwinograd_select(p->kernel) : NULL;
    size_t thread, shared, row, all;
    if (!(p->path == OCT_CONV_DEPTHWISE ? sizes_depthwise(p, &thread) : sizes_product(p, &thread)) ||
        (p->winograd && !sizes_winograd(p, &thread)) ||
        !oct_qtiles_shared((size_t)g->oc, &shared) || !oct_mul_size(oct_round_up(thread, 64), (size_t)p->threads, &all) ||
        !oct_add_size(all, shared + pad_bytes(g), &p->scratch_size) || !oct_qrow_scratch((size_t)g->c, (size_t)g->oc, &row))
        return oct_fail(err, OCT_ENOMEM, "convolution: weights or scratch memory are too large");
    if (p->one_row && p->scratch_size < row + pad_bytes(g))
        p->scratch_size = row + pad_bytes(g);
    return OCT_OK;
}

static void pack_taps(const oct_dw_weights *w, size_t c, int16_t *to)
{
    const size_t row = oct_round_up(c, OCT_DW_CHANNELS);
    for (size_t i = 0; i < c; i++)
        for (size_t t = 0; t < w->taps; t++)
            to[(t / 2 * row + i) * 2 + t % 2] = (int16_t)oct_dw_weight(w, i, t);
}

static void pack_depthwise(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    const oct_dw_weights from = { w, p->w_type == OCT_S8, oct_conv_taps(&p->g), zw, zw_step };
    const size_t c = (size_t)p->g.c, row = dw_row(&p->g);
    int32_t *sums = packed;
    memset(packed, 0, p->packed_size);
    for (size_t i = 0; i < c; i++)
        for (size_t t = 0; t < from.taps; t++)
            sums[i] += oct_dw_weight(&from, i, t);
    if (by_columns(p))
        oct_qdw_columns_pack(&from, c, sums + row);
    else
        pack_taps(&from, c, (int16_t *)(void *)(sums + row));
}

/* Zero points of weights would need sums of pixels. */
static bool has_zeros(const oct_qconv *p, const int32_t *zw, size_t zw_step)
{
    const int32_t none = p->w_type == OCT_S8 ? 0 : 128;
    bool some = zw == NULL && none != 0;
    for (int64_t i = 0; i < p->g.oc && zw; i++)
        some |= zw[(size_t)i * zw_step] != none;
    return some;
}

void oct_qconv_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    if (p->path == OCT_CONV_DEPTHWISE) {
        pack_depthwise(p, w, zw, zw_step, packed);
        return;
    }
    const oct_conv_geom *g = &p->g;
    if (p->winograd) {
        qconv_head *head = packed;
        *head = (qconv_head){ .winograd = !p->hasty && !has_zeros(p, zw, zw_step) && oct_qwinograd_pack(g, w, p->w_type == OCT_S8, head + 1) };
        if (head->winograd)
            return;
        packed = head + 1;
    }
    const size_t taps = oct_conv_taps(g), ic = (size_t)(g->c / g->groups), oc = (size_t)(g->oc / g->groups);
    oct_qsource s = { .b = w, .is_signed = p->w_type == OCT_S8, .hasty = p->hasty, .one_row = p->one_row, .taps = taps, .kc = ic,
                      .dense = p->path == OCT_CONV_GATHER, .ts = 1, .zb = zw, .zb_step = zw_step };
    s.ks = (ptrdiff_t)(g->transposed ? oc * taps : taps);
    s.ns = (ptrdiff_t)(g->transposed ? taps : ic * taps);
    for (size_t i = 0; i < (size_t)g->groups; i++, s.b += oc * ic * taps)
        oct_qpack(p->kernel, &s, oc, i, (size_t)g->groups, packed);
}

static bool takes_winograd(const oct_qconv *p, const void *packed)
{
    return p->winograd && ((const qconv_head *)packed)->winograd;
}

const char *oct_qconv_path_name(const oct_qconv *p, const void *packed)
{
    return takes_winograd(p, packed) ? "winograd" : oct_conv_path_name(p->path);
}

typedef struct dw_job {
    const oct_qconv *p;
    oct_rows rows;
    uint8_t flip;
    const void *w;
    const int32_t *add;
    const oct_qout *out;
    uint8_t *y, *scratch;
    size_t thread_bytes;
} dw_job;

static void run_dw_item(void *arg, size_t begin, size_t end, size_t thread)
{
    const dw_job *w = arg;
    const oct_qconv *p = w->p;
    const size_t taps = oct_conv_taps(&p->g), c = (size_t)p->g.c, row = dw_row(&p->g);
    const size_t most = dw_pixels(&p->g), ldy = (size_t)p->g.ldy, elem = oct_qout_size(w->out->kind);
    uint8_t *part = w->scratch + thread * w->thread_bytes;
    int32_t *acc = (int32_t *)(void *)part;
    const uint8_t **table = (const uint8_t **)(void *)(part + most * row * sizeof *acc);
    oct_rows_point(&w->rows, begin, end - begin, 1, (const void **)table);
    for (size_t i = begin; i < end; i += most) {
        const size_t m = end - i < most ? end - i : most;
        if (by_columns(p))
            p->dw->columns(m, c, table + (i - begin) * taps, w->flip, w->w, acc);
        else
            p->dw->fn(m, c, taps, table + (i - begin) * taps, w->flip, w->w, acc);
        p->qout->fn(m, c, acc, row, w->add, NULL, NULL, w->out, w->y + i * ldy * elem, ldy);
    }
}

void oct_qconv_run(const oct_qconv *p, oct_pool *pool, const void *x, int32_t zx, const void *packed, const int32_t *bias,
                   const oct_qout *out, void *y, void *scratch)
{
    const oct_conv_geom *g = &p->g;
    const size_t pad = pad_bytes(g), pixels = oct_conv_pixels(g);
    const oct_dtype as = p->path == OCT_CONV_DEPTHWISE ? OCT_U8 : p->kernel->a;
    const oct_rows rows = { .x = x, .step = (size_t)g->ldx, .run = (size_t)(g->c / g->groups),
                            .g = p->path == OCT_CONV_DENSE ? NULL : g, .pad = scratch, .count = pixels };
    const uint8_t flip = oct_qflip(p->x_type, as);
    const int32_t za = oct_qzero(zx, p->x_type, as);
    uint8_t *rest = (uint8_t *)scratch + pad;
    memset(scratch, (uint8_t)zx, pad);
    if (oct_pool_threads(pool) > p->threads)
        pool = NULL;
    if (p->path == OCT_CONV_DEPTHWISE) {
        const int32_t *sums = packed;
        int32_t *add = (int32_t *)(void *)rest;
        size_t shared = 0;
        oct_qtiles_shared((size_t)g->oc, &shared);
        for (size_t i = 0; i < (size_t)g->oc; i++)
            add[i] = (int32_t)((bias ? (uint32_t)bias[i] : 0) - (uint32_t)za * (uint32_t)sums[i]);
        dw_job w = { p, rows, flip, sums + dw_row(g), add, out, y, rest + shared,
                     oct_round_up(dw_thread_bytes(p), 64) };
        oct_pool_for(pool, pixels, p->block, run_dw_item, &w);
        return;
    }
    if (takes_winograd(p, packed)) {
        const oct_qwinograd_job j = { .g = g, .kernel = p->winograd, .qout = p->qout, .x = x, .pad = scratch, .flip = oct_qflip(p->x_type, OCT_S8),
                                      .zx = oct_qzero(zx, p->x_type, OCT_S8), .packed = (const qconv_head *)packed + 1, .bias = bias, .out = out,
                                      .y = y, .shared = (int32_t *)(void *)rest, .scratch = rest + oct_round_up((size_t)g->oc * sizeof(int32_t), 64) };
        oct_qwinograd_run(&j, pool);
        return;
    }
    if (p->winograd)
        packed = (const qconv_head *)packed + 1;
    const oct_qtiles t = { .kernel = p->kernel, .qout = p->qout, .rows = rows, .gather = p->path == OCT_CONV_GATHER,
                           .taps = kernel_taps(p), .kc = kernel_depth(p), .n = (size_t)(g->oc / g->groups),
                           .groups = (size_t)g->groups, .flip = flip, .za = za, .packed = packed, .bias = bias, .out = out,
                           .c = y, .ldc = (size_t)g->ldy, .block = p->block, .one_row = p->one_row, .scratch = rest };
    oct_qtiles_run(&t, pool);
}
