/* Denormal numbers of a float model. Many CPUs take a hundred times as long for them. A quantized model has none. */
#include "eval/run/denormal.h"
#include "eval/run/eval_int.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum { PAIRS = 9 };

static uint64_t count(const float *v, int64_t n)
{
    uint64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += fpclassify(v[i]) == FP_SUBNORMAL;
    return found;
}

uint64_t oct_denormal_weights(const oct_graph *g)
{
    uint64_t found = 0;
    for (size_t i = 0; i < g->n_value; i++) {
        const oct_tensor *t = g->value[i].dead ? NULL : g->value[i].constant;
        if (t && t->dtype == OCT_F32 && t->data)
            found += count(t->data, t->count);
    }
    return found;
}

/* ---- what nodes compute ---- */

static oct_status count_value(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    uint64_t *found = arg;
    float *v = oct_calloc((size_t)t->count + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    if (t->dtype == OCT_F32 && oct_operand_to_f32(t, v, NULL) == OCT_OK)
        *found += count(v, t->count);
    oct_free(v);
    return OCT_OK;
}

static oct_status count_values(const oct_graph *g, const oct_array *sample, uint64_t *found, oct_err *err)
{
    const char **tap = oct_calloc(g->n_value + 1, sizeof *tap);
    oct_plan_opts opts = { .taps = tap, .fast_pack = true };
    oct_runner *r = NULL;
    oct_plan *p;
    if (!tap)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_value; i++) {
        const oct_value *v = &g->value[i];
        if (!v->dead && v->producer >= 0 && !v->constant && v->dtype == OCT_F32)
            tap[opts.n_taps++] = v->name;
    }
    oct_status s = oct_runner_create(g, &opts, NULL, 0, &r, err);
    if (s == OCT_OK) {
        oct_runner_set_tap(r, count_value, found);
        s = oct_runner_run(r, sample, &p, err);
    }
    oct_runner_destroy(r);
    oct_free(tap);
    return s;
}

/* ---- what they cost ---- */

bool oct_flush_denormals(bool on)
{
#if defined(__SSE2__)
    enum { RESULTS = 0x8000, OPERANDS = 0x0040 }; /* FTZ and DAZ of MXCSR */
    _mm_setcsr((_mm_getcsr() & ~(unsigned)(RESULTS | OPERANDS)) | (on ? RESULTS | OPERANDS : 0));
    return true;
#else
    return false;
#endif
}

static oct_status time_pairs(const oct_graph *g, const oct_array *sample, oct_eval_speed *speed, oct_err *err)
{
    double ratio[PAIRS];
    oct_runner *r = NULL;
    oct_plan *p;
    oct_status s = oct_runner_create(g, NULL, NULL, 0, &r, err);
    for (int i = -1; i < PAIRS && s == OCT_OK; i++) { /* the first pair only makes the plan */
        double seconds[2];
        for (int flush = 0; flush < 2 && s == OCT_OK; flush++) {
            oct_flush_denormals(flush);
            const double begin = oct_now();
            s = oct_runner_run(r, sample, &p, err);
            seconds[flush] = oct_now() - begin;
            oct_flush_denormals(false);
        }
        if (s == OCT_OK && i >= 0)
            ratio[i] = seconds[0] / seconds[1];
    }
    oct_runner_destroy(r);
    if (s == OCT_OK) {
        const oct_quartiles q = oct_quartiles_of(ratio, PAIRS);
        *speed = (oct_eval_speed){ q.median, q.q1, q.q3, PAIRS };
    }
    return s;
}

oct_status oct_denormals_find(const oct_graph *g, oct_source *src, oct_denormals *d, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    *d = (oct_denormals){ .weights = oct_denormal_weights(g) };
    oct_status s = oct_source_next(src, 1, &b, err);
    const bool any = s == OCT_OK && b.n;
    if (any)
        s = count_values(g, b.tensors, &d->values, err);
    if (any && s == OCT_OK && d->weights + d->values && oct_flush_denormals(false))
        s = time_pairs(g, b.tensors, &d->flushed, err);
    oct_batch_free(&b);
    return s;
}
