/* lib/kernels/conv/qconv.c -- 8-bit convolution: the choice of an algorithm, plan, packing, run. */
#include "kernels/conv/algorithm.h"

#include "base/mem.h"
#include "kernels/rows.h"

#include <string.h>

#define OCT_SCONV(name)
#define OCT_QCONV(name) &oct_qconv_##name,
static const oct_qconv_algorithm *const algorithms[] = {
#include "kernels/conv/algorithms.inc"
};

const oct_qconv_algorithm *const *oct_qconv_algorithms(size_t *n)
{
    *n = OCT_COUNT(algorithms);
    return algorithms;
}

const oct_qconv_algorithm *oct_qconv_choose(const oct_conv_geom *g, oct_isa have, const oct_qconv_algorithm *without,
                                            oct_choice *kernel)
{
    const oct_qconv_algorithm *best = NULL;
    *kernel = (oct_choice){ 0 };
    for (size_t i = 0; i < OCT_COUNT(algorithms); i++) {
        const oct_qconv_algorithm *a = algorithms[i];
        const oct_choice c = a != without && a->suits(g) ? a->cost(g, have) : (oct_choice){ 0 };
        if (c.record && oct_choice_is_better(&c, kernel)) {
            *kernel = c;
            best = a;
        }
    }
    return best;
}

/* Scratch: a pixel of padding, what the threads share, then a part for each. */
static size_t pad_bytes(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->c, 64);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Takes the cheapest algorithm but that one; memory is what either needs. */
static bool take(oct_qconv *p, const oct_qconv_algorithm *without, oct_qconv_way *way, oct_conv_sizes *most)
{
    oct_choice kernel;
    oct_conv_sizes s = { 0 };
    way->algorithm = oct_qconv_choose(&p->g, oct_isa_active(), without, &kernel);
    way->kernel_name = kernel.name;
    if (!way->algorithm->sizes(p, kernel.record, &s))
        return false;
    *most = (oct_conv_sizes){ larger(most->packed, s.packed), larger(most->shared, s.shared),
                              larger(most->thread, s.thread) };
    return true;
}

oct_status oct_qconv_prepare(oct_qconv *p, const oct_conv_geom *g, oct_dtype x_type, oct_dtype w_type, int threads,
                             oct_err *err)
{
    *p = (oct_qconv){ .g = *g,
                      .x_type = x_type,
                      .w_type = w_type,
                      .qout = oct_qout_select(oct_isa_active()),
                      .threads = threads < 1 ? 1 : threads };
    if ((x_type != OCT_U8 && x_type != OCT_S8) || (w_type != OCT_U8 && w_type != OCT_S8))
        return oct_fail(err, OCT_EUNSUPPORTED, "integer convolution of %s and %s", oct_dtype_name(x_type),
                        oct_dtype_name(w_type));
    OCT_TRY(oct_conv_geom_check(g, err));
    p->g.ldx = g->ldx ? g->ldx : g->c;
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    oct_conv_sizes s = { 0 };
    size_t all;
    if (!take(p, NULL, &p->way, &s) || (p->way.algorithm->picky && !take(p, p->way.algorithm, &p->otherwise, &s)) ||
        s.thread > SIZE_MAX - 64 || !oct_mul_size(oct_round_up(s.thread, 64), (size_t)p->threads, &all) ||
        !oct_add_size(all, pad_bytes(g), &all) || !oct_add_size(all, s.shared, &p->scratch_size))
        return oct_fail(err, OCT_ENOMEM, "convolution: weights or scratch memory are too large");
    p->packed_size = s.packed;
    p->shared = s.shared;
    return OCT_OK;
}

void oct_qconv_pack(oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    if (p->way.algorithm->pack(p, w, zw, zw_step, packed))
        return;
    p->way = p->otherwise;
    p->way.algorithm->pack(p, w, zw, zw_step, packed);
}

const char *oct_qconv_algorithm_name(const oct_qconv *p)
{
    return p->way.algorithm->name;
}

const char *oct_qconv_kernel_name(const oct_qconv *p)
{
    return p->way.kernel_name;
}

void oct_qconv_run(const oct_qconv *p, oct_pool *pool, const void *x, int32_t zx, const void *packed,
                   const int32_t *bias, const oct_qout *out, void *y, void *scratch)
{
    const size_t pad = pad_bytes(&p->g);
    uint8_t *shared = (uint8_t *)scratch + pad;
    memset(scratch, (uint8_t)zx, pad);
    const oct_qconv_job j = { .p = p,
                              .pool = oct_pool_threads(pool) > p->threads ? NULL : pool,
                              .x = x,
                              .zx = zx,
                              .packed = packed,
                              .bias = bias,
                              .out = out,
                              .y = y,
                              .pad = scratch,
                              .shared = shared,
                              .threads = shared + p->shared };
    p->way.algorithm->run(&j);
}
