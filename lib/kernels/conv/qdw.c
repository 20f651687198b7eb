/* lib/kernels/conv/qdw.c -- 8-bit depthwise convolution: plan, packing, run. */
#include "kernels/conv/algorithm.h"

#include "base/mem.h"
#include "kernels/dw/qdw_columns.h"
#include "kernels/qgemm/qgemm_int.h"

#include <assert.h>
#include <string.h>

/* Sums and pixels that go through the kernel together, at most: by a table of taps, and by lines. NEAR: bytes of the
 * image. */
enum { SUMS = 4096, PIXELS = 32, LINE_SUMS = 32768, LINE_PIXELS = 128, NEAR = 24 << 10 };

static size_t row_of(const oct_conv_geom *g)
{
    const size_t row = oct_round_up((size_t)g->c, OCT_DW_CHANNELS);
    assert(row > 0); /* no dimension of a geometry is 0 */
    return row;
}

enum { MOST_LANES = 64 };

/* Pixels of few channels: as many as fill registers, where their taps and outputs stand side by side. Returns how
 * many; *lanes is the convolution as the kernel then sees it, over the copy. */
static size_t join(const oct_conv_geom *g, oct_conv_geom *lanes, oct_padded *padded)
{
    size_t joined = 1;
    *lanes = *g;
    *padded = (oct_padded){ 0 };
    if (g->c >= OCT_DW_CHANNELS || g->sw != 1 || g->dw != 1 || g->ldy != g->c || !oct_padded_plan(g, 1, padded))
        return 1;
    for (int64_t n = MOST_LANES / g->c; n > 1 && joined == 1; n--)
        if (n * g->c % OCT_DW_CHANNELS == 0 && g->ow % n == 0)
            joined = (size_t)n;
    if (joined == 1) {
        *padded = (oct_padded){ 0 };
        return 1;
    }
    lanes->h = padded->h;
    lanes->w = padded->w;
    lanes->ldx = g->c;
    lanes->ph = lanes->pw = 0;
    lanes->sw = (int64_t)joined;
    lanes->ow /= (int64_t)joined;
    lanes->c = lanes->oc = lanes->groups = lanes->ldy = g->c * (int64_t)joined;
    return joined;
}

static oct_choice cost(const oct_conv_geom *g, oct_isa have)
{
    oct_conv_geom lanes;
    oct_padded padded;
    join(g, &lanes, &padded);
    return oct_qdw_choose(have, &lanes);
}

/* Multiples of 8, 8 at least. */
static size_t fit(size_t sums, size_t most, const oct_conv_geom *g)
{
    const size_t n = sums / row_of(g) / 8 * 8;
    return n < 8 ? 8 : n > most ? most : n;
}

/* Pixels that go through the kernel together: a line, or even parts of it; or of a table of taps. */
static size_t pixels_of(const oct_qconv *p)
{
    if (!p->dw->columns)
        return fit(SUMS, PIXELS, &p->lanes);
    const size_t ow = (size_t)p->lanes.ow, most = fit(LINE_SUMS, LINE_PIXELS, &p->lanes),
                 parts = (ow + most - 1) / most;
    return (ow + parts - 1) / parts;
}

/* A work item: whole lines where the kernel takes them, as many as leave their part of the image (a line of the cache a
 * pixel, of which each unit of channels takes some) in the first-level cache. */
static size_t block_of(const oct_qconv *p)
{
    const size_t block = oct_dw_block((size_t)p->lanes.c), ow = (size_t)p->lanes.ow;
    if (!p->dw->columns)
        return block;
    const size_t near = NEAR / ((size_t)p->lanes.w * 64), most = near > 3 ? (near - 3) / (size_t)p->lanes.sh + 1 : 1,
                 lines = (block + ow - 1) / ow;
    return (lines < most ? lines : most) * ow;
}

/* Pointers: those of a whole item, or of a part of a line. */
static size_t table_bytes(const oct_qconv *p)
{
    const size_t whole = oct_conv_taps(&p->lanes) * p->block, part = oct_conv_taps(&p->lanes) * pixels_of(p);
    return oct_round_up((p->dw->columns && pixels_of(p) < (size_t)p->lanes.ow ? part : whole) * sizeof(void *), 64);
}

static size_t thread_bytes(const oct_qconv *p)
{
    return table_bytes(p) + pixels_of(p) * row_of(&p->lanes) * sizeof(int32_t);
}

/* Weights: s32 sums of channels, then s16 pairs of taps, or what qdw_columns.h says, with the zero point taken off. */
static bool sizes(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    p->dw = kernel;
    p->joined = join(&p->g, &p->lanes, &p->padded);
    const size_t taps = oct_round_up(oct_conv_taps(&p->lanes), 2), row = row_of(&p->lanes);
    p->block = block_of(p);
    assert(p->block > 0);
    size_t values, shared;
    if (!oct_mul_size(taps, row, &values) || values > SIZE_MAX / 16 || taps > SIZE_MAX / 16 / p->block ||
        p->padded.bytes > SIZE_MAX / 2 || !oct_qtiles_shared((size_t)p->g.c, &shared))
        return false;
    s->packed =
        row * sizeof(int32_t) + (p->dw->columns ? oct_qdw_columns_size((size_t)p->lanes.c) : values * sizeof(int16_t));
    s->shared = oct_round_up(p->padded.bytes, 64) + shared;
    s->thread = thread_bytes(p);
    return true;
}

static void pack_taps(const oct_dw_weights *w, size_t c, int16_t *to)
{
    const size_t row = oct_round_up(c, OCT_DW_CHANNELS);
    for (size_t i = 0; i < c; i++)
        for (size_t t = 0; t < w->taps; t++)
            to[(t / 2 * row + i) * 2 + t % 2] = (int16_t)oct_dw_weight(w, i, t);
}

static bool pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    const oct_dw_weights from = { w, p->w_type == OCT_S8, (size_t)p->g.c, oct_conv_taps(&p->g), zw, zw_step };
    const size_t c = (size_t)p->lanes.c, row = row_of(&p->lanes);
    int32_t *sums = packed;
    memset(packed, 0, p->packed_size);
    for (size_t i = 0; i < c; i++)
        for (size_t t = 0; t < from.taps; t++)
            sums[i] += oct_dw_weight(&from, i, t);
    if (p->dw->columns)
        oct_qdw_columns_pack(&from, c, p->dw->exact, sums + row);
    else
        pack_taps(&from, c, (int16_t *)(void *)(sums + row));
    return true;
}

typedef struct job {
    const oct_qconv *p;
    const oct_rows *rows;
    uint8_t flip;
    const void *w;
    const int32_t *add;
    const oct_qout *out;
    bool plain; /* the kernel finishes its pixels */
    uint8_t *y, *scratch;
    size_t thread_bytes;
} job;

/* Where a thread keeps pointers and sums. */
static int32_t *carve(const job *w, size_t thread, const void ***table)
{
    uint8_t *part = w->scratch + thread * w->thread_bytes;
    *table = (const void **)(void *)part;
    return (int32_t *)(void *)(part + table_bytes(w->p));
}

static void finish(const job *w, size_t begin, size_t px, const int32_t *acc)
{
    const oct_conv_geom *g = &w->p->g;
    const size_t ldy = (size_t)g->ldy, joined = w->p->joined;
    w->p->qout->fn(px * joined, (size_t)g->c, acc, row_of(&w->p->lanes) / joined, w->add, NULL, NULL, w->out,
                   w->y + begin * joined * ldy * oct_qout_size(w->out->kind), ldy);
}

/* Lines of one kernel call, into the table: as many as there are where the kernel finishes them and takes whole
 * ones. */
static void point_lines(const job *w, size_t begin, size_t end, const void **table, oct_qdw_lines *l)
{
    const size_t ow = (size_t)w->p->lanes.ow, most = pixels_of(w->p);
    l->px = oct_rows_slide(w->rows, begin, end - begin < most ? end - begin : most, table);
    l->pitch = ((l->px - 1) * l->advance + 3) * 3;
    l->lines = w->plain && l->px == ow ? (end - begin) / ow : 1;
    for (size_t i = 1; i < l->lines; i++)
        oct_rows_slide(w->rows, begin + i * ow, ow, table + i * l->pitch);
}

static void run_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = &w->p->lanes;
    const void **table;
    int32_t *acc = carve(w, thread, &table);
    oct_qdw_lines l = { .c = (size_t)g->c,
                        .advance = oct_rows_advance(g),
                        .x = (const uint8_t *const *)table,
                        .flip = w->flip,
                        .w = w->w,
                        .acc = w->plain ? NULL : acc,
                        .add = w->add,
                        .out = w->out,
                        .ldy = (size_t)g->ldy };
    for (size_t i = begin; i < end; i += l.lines * l.px) {
        point_lines(w, i, end, table, &l);
        l.y = w->y + i * l.ldy;
        w->p->dw->columns(&l);
        if (!w->plain)
            finish(w, i, l.px, acc);
    }
}

static void run_pixels(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const size_t taps = oct_conv_taps(&w->p->lanes), most = pixels_of(w->p);
    const void **table;
    int32_t *acc = carve(w, thread, &table);
    oct_rows_point(w->rows, begin, end - begin, 1, table);
    for (size_t i = begin; i < end; i += most) {
        const size_t px = end - i < most ? end - i : most;
        w->p->dw->fn(px, (size_t)w->p->lanes.c, taps, (const uint8_t *const *)table + (i - begin) * taps, w->flip, w->w,
                     acc);
        finish(w, i, px, acc);
    }
}

/* What the kernel reads: the image, or what is joined of it or of its copy. */
static oct_rows rows_of(const oct_qconv_job *j)
{
    const oct_qconv *p = j->p;
    const oct_conv_geom *g = &p->g;
    if (p->padded.bytes)
        oct_padded_copy(&p->padded, g, j->pool, 1, (uint8_t)j->zx, j->x, j->shared);
    return (oct_rows){ .x = p->padded.bytes ? j->shared : j->x,
                       .step = (size_t)(p->joined > 1 ? g->c : g->ldx),
                       .run = p->joined > 1 ? (size_t)p->lanes.c : 1,
                       .g = &p->lanes,
                       .pad = j->pad,
                       .count = oct_conv_pixels(g) / p->joined };
}

static void run(const oct_qconv_job *j)
{
    const oct_qconv *p = j->p;
    const size_t c = (size_t)p->g.c;
    const int32_t *sums = j->packed;
    const oct_rows rows = rows_of(j);
    const int32_t za = oct_qzero(j->zx, p->x_type, OCT_U8);
    const uint8_t flip = oct_qflip(p->x_type, OCT_U8);
    int32_t *add = (int32_t *)(void *)(j->shared + oct_round_up(p->padded.bytes, 64));
    for (size_t i = 0; i < c; i++)
        add[i] = (int32_t)((j->bias ? (uint32_t)j->bias[i] : 0) - (uint32_t)za * (uint32_t)sums[i]);
    oct_qout of_lanes = *j->out;
    int32_t lane_add[MOST_LANES];
    float lane_mult[MOST_LANES];
    if (p->joined > 1) {
        for (size_t i = 0; i < (size_t)p->lanes.c; i++) {
            lane_add[i] = add[i % c];
            lane_mult[i] = j->out->mult ? j->out->mult[i % c] : 0;
        }
        add = lane_add;
        of_lanes.mult = j->out->mult ? lane_mult : NULL;
    }
    const job w = { p,
                    &rows,
                    flip,
                    sums + row_of(&p->lanes),
                    add,
                    &of_lanes,
                    !flip && oct_qout_is_plain(j->out, c),
                    j->y,
                    j->threads,
                    oct_round_up(thread_bytes(p), 64) };
    oct_pool_for(j->pool, rows.count, p->block, p->dw->columns ? run_lines : run_pixels, (void *)(uintptr_t)&w);
}

const oct_qconv_algorithm oct_qconv_depthwise = {
    .name = "depthwise",
    .suits = oct_conv_is_depthwise,
    .cost = cost,
    .sizes = sizes,
    .pack = pack,
    .run = run,
};
