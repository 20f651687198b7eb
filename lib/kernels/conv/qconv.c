/* lib/kernels/conv/qconv.c -- 8-bit convolution: plan, packing, run. */
#include "kernels/conv/conv.h"

#include "base/mem.h"
#include "kernels/conv/qdw.h"
#include "kernels/conv/qflat.h"
#include "kernels/conv/qwinograd.h"
#include "kernels/qgemm/qchain.h"

#include <string.h>

/* Scratch: the padding row, a copy of an image, a number a column, then a part for each thread. */
static size_t pad_bytes(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->c, 64);
}

/* Taps that the kernel sees as one. */
static size_t folded(const oct_qconv *p)
{
    oct_qflat_plan flat;
    if (p->path == OCT_CONV_FLAT && oct_qflat_plan_of(&p->g, &flat))
        return flat.fold;
    return p->path == OCT_CONV_GATHER ? oct_conv_taps(&p->g) : 1;
}

static size_t kernel_taps(const oct_qconv *p)
{
    return oct_conv_taps(&p->g) / folded(p);
}

static size_t kernel_depth(const oct_qconv *p)
{
    return folded(p) * (size_t)(p->g.c / p->g.groups);
}

/* Scratch of the copy of an image. */
static size_t copy_bytes(const oct_qconv *p)
{
    oct_qflat_plan flat;
    return p->path == OCT_CONV_FLAT && oct_qflat_plan_of(&p->g, &flat) ? oct_qflat_scratch(&flat)
                                                                       : oct_round_up(p->padded.bytes, 64);
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

/* Picoseconds for gathering the rows of a group, as measured on a Xeon of the class avx512vnni: a line of taps, a
 * byte. */
static double gathering(const oct_conv_geom *g)
{
    enum { LINE = 1000, BYTE = 45 };
    return (double)oct_conv_pixels(g) * (double)(g->kd * g->kh) * (LINE + BYTE * (double)(g->kw * (g->c / g->groups)));
}

oct_status oct_qconv_prepare(oct_qconv *p, const oct_conv_geom *g, oct_dtype x_type, oct_dtype w_type, int threads,
                             oct_err *err)
{
    const oct_isa isa = oct_isa_active();
    *p = (oct_qconv){
        .g = *g, .x_type = x_type, .w_type = w_type, .qout = oct_qout_select(isa), .threads = threads < 1 ? 1 : threads
    };
    if ((x_type != OCT_U8 && x_type != OCT_S8) || (w_type != OCT_U8 && w_type != OCT_S8))
        return oct_fail(err, OCT_EUNSUPPORTED, "integer convolution of %s and %s", oct_dtype_name(x_type),
                        oct_dtype_name(w_type));
    OCT_TRY(oct_conv_geom_check(g, err));
    p->g.ldx = g->ldx ? g->ldx : g->c;
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    p->path = oct_conv_choose(&p->g);
    const oct_extent e = { oct_conv_pixels(g), (size_t)(g->oc / g->groups),
                           oct_conv_taps(g) * (size_t)(g->c / g->groups),
                           p->path == OCT_CONV_INDIRECT ? gathering(g) : 0 };
    /* Sorting pays where values lie around their zero point; those of convolutions, mostly rectified, do not. */
    oct_choice pick = oct_qgemm_choose(isa, &e, p->path == OCT_CONV_DENSE && e.rows == 1);
    p->kernel = pick.record;
    pick.cost += p->path == OCT_CONV_GATHER && pick.cost > 0 ? gathering(g) : 0; /* by every kernel */
    if (p->path == OCT_CONV_DEPTHWISE) {
        oct_qdw_join(p);
        p->dw = oct_qdw_select(isa, &p->lanes);
    }
    if ((p->path == OCT_CONV_INDIRECT || p->path == OCT_CONV_GATHER) && oct_qflat_select(isa, &p->g, &pick)) {
        p->kernel = pick.record;
        p->path = OCT_CONV_FLAT;
    }
    /* Chains pick from chunks of k, which do not cross from tap to tap; kernels of blocks take rows that lie equally
     * far from each other. */
    const bool crossing = p->kernel->chain && oct_conv_taps(&p->g) > 1 && kernel_depth(p) % OCT_QCHAIN_CHUNK;
    if (p->path == OCT_CONV_INDIRECT && (crossing || p->kernel->block))
        p->path = OCT_CONV_GATHER;
    p->winograd = oct_qwinograd_select(isa, &p->g, pick);
    size_t thread, shared, row, all;
    if (!(p->path == OCT_CONV_DEPTHWISE ? oct_qdw_sizes(p, &thread) : sizes_product(p, &thread)) ||
        (p->winograd && !sizes_winograd(p, &thread)) || !oct_qtiles_shared((size_t)g->oc, &shared) ||
        !oct_mul_size(oct_round_up(thread, 64), (size_t)p->threads, &all) ||
        !oct_add_size(all, shared + pad_bytes(g), &p->scratch_size) ||
        !oct_add_size(p->scratch_size, copy_bytes(p), &p->scratch_size) ||
        !oct_qrow_scratch((size_t)g->c, (size_t)g->oc, &row))
        return oct_fail(err, OCT_ENOMEM, "convolution: weights or scratch memory are too large");
    if (p->kernel->row && p->scratch_size < row + pad_bytes(g))
        p->scratch_size = row + pad_bytes(g);
    return OCT_OK;
}

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
        oct_qdw_pack(p, w, zw, zw_step, packed);
        return;
    }
    const oct_conv_geom *g = &p->g;
    if (p->winograd) {
        qconv_head *head = packed;
        *head = (qconv_head){ .winograd = !p->fast_pack && !has_zeros(p, zw, zw_step) &&
                                          oct_qwinograd_pack(g, w, p->w_type == OCT_S8, head + 1) };
        if (head->winograd)
            return;
        packed = head + 1;
    }
    const size_t taps = oct_conv_taps(g), ic = (size_t)(g->c / g->groups), oc = (size_t)(g->oc / g->groups);
    oct_qsource s = { .b = w,
                      .is_signed = p->w_type == OCT_S8,
                      .fast_pack = p->fast_pack,
                      .taps = taps,
                      .kc = ic,
                      .fold = folded(p),
                      .ts = 1,
                      .zb = zw,
                      .zb_step = zw_step };
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

void oct_qconv_run(const oct_qconv *p, oct_pool *pool, const void *x, int32_t zx, const void *packed,
                   const int32_t *bias, const oct_qout *out, void *y, void *scratch)
{
    const oct_conv_geom *g = &p->g;
    const size_t pad = pad_bytes(g), pixels = oct_conv_pixels(g), copy = copy_bytes(p);
    const oct_dtype as = p->path == OCT_CONV_DEPTHWISE ? OCT_U8 : oct_qreads(p->kernel, p->x_type);
    oct_rows rows = { .x = x,
                      .step = (size_t)g->ldx,
                      .run = (size_t)(g->c / g->groups),
                      .g = p->path == OCT_CONV_DENSE ? NULL : g,
                      .pad = scratch,
                      .count = pixels };
    const uint8_t flip = oct_qflip(p->x_type, as);
    const int32_t za = oct_qzero(zx, p->x_type, as);
    uint8_t *rest = (uint8_t *)scratch + pad + copy;
    memset(scratch, (uint8_t)zx, pad);
    if (oct_pool_threads(pool) > p->threads)
        pool = NULL;
    if (p->path == OCT_CONV_DEPTHWISE) {
        if (p->padded.bytes)
            oct_padded_copy(&p->padded, g, pool, 1, (uint8_t)zx, x, (uint8_t *)scratch + pad);
        if (p->joined > 1)
            rows = (oct_rows){ .x = p->padded.bytes ? (uint8_t *)scratch + pad : x,
                               .step = (size_t)g->c,
                               .run = (size_t)p->lanes.c,
                               .g = &p->lanes,
                               .pad = scratch,
                               .count = pixels / p->joined };
        oct_qdw_run(p, pool, &rows, flip, za, packed, bias, out, y, rest);
        return;
    }
    if (takes_winograd(p, packed)) {
        const oct_qwinograd_job j = { .g = g,
                                      .kernel = p->winograd,
                                      .qout = p->qout,
                                      .x = x,
                                      .pad = scratch,
                                      .flip = oct_qflip(p->x_type, OCT_S8),
                                      .zx = oct_qzero(zx, p->x_type, OCT_S8),
                                      .packed = (const qconv_head *)packed + 1,
                                      .bias = bias,
                                      .out = out,
                                      .y = y,
                                      .shared = (int32_t *)(void *)rest,
                                      .scratch = rest + oct_round_up((size_t)g->oc * sizeof(int32_t), 64) };
        oct_qwinograd_run(&j, pool);
        return;
    }
    if (p->winograd)
        packed = (const qconv_head *)packed + 1;
    const oct_qtiles t = { .kernel = p->kernel,
                           .qout = p->qout,
                           .rows = rows,
                           .gather = p->path == OCT_CONV_GATHER,
                           .taps = kernel_taps(p),
                           .kc = kernel_depth(p),
                           .n = (size_t)(g->oc / g->groups),
                           .groups = (size_t)g->groups,
                           .is_signed = as == OCT_S8,
                           .flip = flip,
                           .za = za,
                           .packed = packed,
                           .bias = bias,
                           .out = out,
                           .c = y,
                           .ldc = (size_t)g->ldy,
                           .block = p->block,
                           .scratch = rest };
    if (p->path == OCT_CONV_FLAT)
        oct_qflat_run(g, &t, pool, x, (uint8_t)zx, (uint8_t *)scratch + pad);
    else
        oct_qtiles_run(&t, pool);
}
