/* lib/kernels/conv/sconv.c -- float convolution: the choice of an algorithm, plan, packing, run. */
#include "kernels/conv/algorithm.h"

#include "base/mem.h"
#include "kernels/rows.h"

#include <string.h>

#define OCT_SCONV(name) &oct_sconv_##name,
#define OCT_QCONV(name)
static const oct_sconv_algorithm *const algorithms[] = {
#include "kernels/conv/algorithms.inc"
};

const oct_sconv_algorithm *const *oct_sconv_algorithms(size_t *n)
{
    *n = OCT_COUNT(algorithms);
    return algorithms;
}

const oct_sconv_algorithm *oct_sconv_choose(const oct_conv_geom *g, oct_isa have, bool bf16, oct_choice *kernel)
{
    const oct_sconv_algorithm *best = NULL;
    *kernel = (oct_choice){ 0 };
    for (size_t i = 0; i < OCT_COUNT(algorithms); i++) {
        const oct_sconv_algorithm *a = algorithms[i];
        const oct_choice c = (a->bf16 || !bf16) && a->suits(g) ? a->cost(g, have, bf16) : (oct_choice){ 0 };
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
    return oct_round_up((size_t)g->c * sizeof(float), 64);
}

oct_status oct_sconv_prepare(oct_sconv *p, const oct_conv_geom *g, bool bf16, int threads, oct_err *err)
{
    *p = (oct_sconv){ .g = *g, .threads = threads < 1 ? 1 : threads };
    OCT_TRY(oct_conv_geom_check(g, err));
    p->g.ldx = g->ldx ? g->ldx : g->c;
    p->g.ldy = g->ldy ? g->ldy : g->oc;
    oct_choice kernel;
    p->algorithm = oct_sconv_choose(&p->g, oct_isa_active(), bf16, &kernel);
    p->kernel_name = kernel.name;
    oct_conv_sizes s = { 0 };
    size_t all;
    if (!p->algorithm->sizes(p, kernel.record, &s) || s.thread > SIZE_MAX - 64 ||
        !oct_mul_size(oct_round_up(s.thread, 64), (size_t)p->threads, &all) || !oct_add_size(all, pad_bytes(g), &all) ||
        !oct_add_size(all, s.shared, &p->scratch_size))
        return oct_fail(err, OCT_ENOMEM, "convolution: weights or scratch memory are too large");
    p->packed_size = s.packed;
    p->shared = s.shared;
    return OCT_OK;
}

const char *oct_sconv_algorithm_name(const oct_sconv *p)
{
    return p->algorithm->name;
}

const char *oct_sconv_kernel_name(const oct_sconv *p)
{
    return p->kernel_name;
}

bool oct_sconv_in_place(const oct_sconv *p)
{
    return p->algorithm->in_place && p->algorithm->in_place(p);
}

void oct_sconv_pack(const oct_sconv *p, const float *w, void *packed)
{
    p->algorithm->pack(p, w, packed);
}

void oct_sconv_run(const oct_sconv *p, oct_pool *pool, const float *x, const void *packed, float *y,
                   const oct_sout *out, void *scratch)
{
    const size_t pad = pad_bytes(&p->g);
    uint8_t *shared = (uint8_t *)scratch + pad;
    memset(scratch, 0, pad);
    const oct_sconv_job j = { .p = p,
                              .pool = oct_pool_threads(pool) > p->threads ? NULL : pool,
                              .x = x,
                              .packed = packed,
                              .y = y,
                              .out = out ? *out : (oct_sout){ 0 },
                              .pad = scratch,
                              .shared = shared,
                              .threads = shared + p->shared };
    p->algorithm->run(&j);
}
