/* lib/kernels/conv/sdw.c -- float depthwise convolution: plan, packing, run. */
#include "kernels/conv/algorithm.h"

#include "base/mem.h"
#include "kernels/dw/dw_int.h"

static oct_choice cost(const oct_conv_geom *g, oct_isa have, bool bf16)
{
    return oct_sdw_choose(have, g);
}

/* Items of lines are whole ones. A thread has pointers of one line, or of an item. */
static bool sizes(oct_sconv *p, const void *kernel, oct_conv_sizes *s)
{
    p->dw = kernel;
    const size_t taps = oct_conv_taps(&p->g), row = oct_round_up((size_t)p->g.c, OCT_DW_CHANNELS) * sizeof(float);
    const size_t block = oct_dw_block((size_t)p->g.c), ow = (size_t)p->g.ow;
    const bool lines = p->dw->lines != NULL;
    p->block = lines ? (block + ow - 1) / ow * ow : block;
    return oct_mul_size(taps, row, &s->packed) && oct_mul_size(taps, (lines ? ow : block) * sizeof(void *), &s->thread);
}

static void pack(const oct_sconv *p, const float *w, void *to)
{
    const size_t taps = oct_conv_taps(&p->g), c = (size_t)p->g.c, step = oct_round_up(c, OCT_DW_CHANNELS);
    float *packed = to;
    for (size_t t = 0; t < taps; t++)
        for (size_t i = 0; i < step; i++)
            packed[t * step + i] = i < c ? w[i * taps + t] : 0.0f;
}

typedef struct job {
    const oct_sconv_job *j;
    oct_rows rows;
    size_t thread_bytes;
} job;

static void run_item(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = &w->j->p->g;
    const float **table = (const float **)(void *)(w->j->threads + thread * w->thread_bytes);
    oct_rows_point(&w->rows, begin, end - begin, 1, (const void **)table);
    oct_sout o = w->j->out;
    if (o.residual)
        o.residual += begin * o.ldr;
    const size_t ldy = (size_t)g->ldy;
    w->j->p->dw->fn(end - begin, (size_t)g->c, oct_conv_taps(g), table, w->j->packed, w->j->y + begin * ldy, ldy, &o);
}

static void run_lines(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_conv_geom *g = &w->j->p->g;
    const size_t ow = (size_t)g->ow;
    const void **table = (const void **)(void *)(w->j->threads + thread * w->thread_bytes);
    const oct_sout *out = &w->j->out;
    oct_sout o = *out;
    oct_sdw_lines l = { .px = ow,
                        .c = (size_t)g->c,
                        .rows = (size_t)g->kh,
                        .advance = oct_rows_advance(g),
                        .x = (const float *const *)table,
                        .w = w->j->packed,
                        .ldy = (size_t)g->ldy,
                        .out = &o };
    for (size_t i = begin; i < end; i += ow) {
        oct_rows_slide(&w->rows, i, ow, table);
        l.y = w->j->y + i * l.ldy;
        o.residual = out->residual ? out->residual + i * o.ldr : NULL;
        w->j->p->dw->lines(&l);
    }
}

static void run(const oct_sconv_job *j)
{
    const oct_conv_geom *g = &j->p->g;
    const bool lines = j->p->dw->lines != NULL;
    const size_t pointers = oct_conv_taps(g) * (lines ? (size_t)g->ow : j->p->block);
    job w = { .j = j,
              .rows = { .x = (const uint8_t *)j->x,
                        .step = (size_t)g->ldx * sizeof *j->x,
                        .run = sizeof *j->x,
                        .g = g,
                        .pad = j->pad,
                        .count = oct_conv_pixels(g) },
              .thread_bytes = oct_round_up(pointers * sizeof(void *), 64) };
    oct_pool_for(j->pool, w.rows.count, j->p->block, lines ? run_lines : run_item, &w);
}

/* In bf16 it is float32 all the same. Lines may be cut so that pixels are computed twice: never in place. */
const oct_sconv_algorithm oct_sconv_depthwise = {
    .name = "depthwise",
    .bf16 = true,
    .suits = oct_conv_is_depthwise,
    .cost = cost,
    .sizes = sizes,
    .pack = pack,
    .run = run,
};
