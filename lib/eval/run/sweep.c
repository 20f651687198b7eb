/* Latency by threads and batch size. Each cell has its own plans and its own pool. */
#include "eval/run/sweep.h"

#include "eval/run/eval_int.h"

#include <stdlib.h>

enum { MOST_BATCHES = 3 };
static const size_t BATCHES[MOST_BATCHES] = { 1, 4, 16 };
static const double CELL_SECONDS = 0.3;

typedef struct sweep {
    const oct_eval_model *models;
    size_t n_models;
    oct_input_desc *inputs;
    size_t n_inputs;
    oct_eval_result *r;
    size_t cap;
} sweep;

static oct_status time_cell(sweep *w, oct_pool *pool, const oct_batch *b, int64_t rows, oct_err *err)
{
    oct_eval_result *r = w->r;
    oct_arena *a = oct_arena_create();
    ev_timed *t = a ? oct_arena_calloc(a, w->n_models, sizeof *t) : NULL;
    oct_engine *engine = t ? oct_arena_calloc(a, w->n_models, sizeof *engine) : NULL;
    oct_eval_latency *of = engine ? oct_arena_calloc(r->arena, w->n_models, sizeof *of) : NULL;
    oct_eval_speed *speed = of ? oct_arena_calloc(r->arena, w->n_models, sizeof *speed) : NULL;
    oct_status s = speed && OCT_GROW(r->arena, r->sweep, r->n_sweep, w->cap) ? OCT_OK : oct_nomem(err);
    for (size_t k = 0; k < w->n_models && s == OCT_OK; k++) {
        const oct_engine_opts opts = { .pool = pool, .bf16 = w->models[k].bf16 };
        t[k].engine = &engine[k];
        t[k].name = w->models[k].name;
        if (!(t[k].seconds = oct_arena_calloc(a, EV_MOST_RUNS, sizeof *t[k].seconds)))
            s = oct_nomem(err);
        else
            s = oct_engine_open(&engine[k], w->models[k].graph, &opts, w->inputs, w->n_inputs, err);
    }
    if (s == OCT_OK)
        s = ev_time_rounds(t, w->n_models, b->tensors, EV_LEAST_RUNS, CELL_SECONDS, err);
    for (size_t k = 1; k < w->n_models && s == OCT_OK; k++) /* must precede the sorting of the times */
        s = ev_compare_pairs(&t[0], &t[k], &speed[k], err);
    for (size_t k = 0; k < w->n_models && s == OCT_OK; k++)
        of[k] = ev_latency_of(&t[k], rows);
    if (s == OCT_OK)
        r->sweep[r->n_sweep++] = (oct_sweep_cell){ oct_pool_threads(pool), (size_t)rows, of, speed };
    for (size_t k = 0; engine && k < w->n_models; k++)
        oct_engine_close(&engine[k]);
    oct_arena_destroy(a);
    return s;
}

static oct_status time_batch(sweep *w, const oct_batch *b, int64_t rows, int threads, oct_err *err)
{
    oct_status s = OCT_OK;
    for (int n = 1; s == OCT_OK && n > 0; n = n == threads ? 0 : n * 2 < threads ? n * 2 : threads) {
        oct_pool *pool = oct_pool_create(n);
        s = pool ? time_cell(w, pool, b, rows, err) : oct_pool_fail(n, err);
        oct_pool_destroy(pool);
    }
    return s;
}

static int by_threads(const void *x, const void *y)
{
    const oct_sweep_cell *a = x, *b = y;
    return a->threads != b->threads ? (a->threads > b->threads) - (a->threads < b->threads)
                                    : (a->batch > b->batch) - (a->batch < b->batch);
}

static oct_status run(sweep *w, oct_source *src, int threads, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status s = OCT_OK;
    int64_t last = 0;
    for (size_t i = 0; i < MOST_BATCHES && s == OCT_OK; i++) {
        s = oct_source_next(src, BATCHES[i], &b, err);
        const int64_t rows = s == OCT_OK && b.n ? oct_batch_rows(src, &b) : 0, each = rows > 0 ? rows : 1;
        if (s != OCT_OK || b.n == 0 ||
            each <= last) /* there are no more samples, or the model does not accept more at a time */
            break;
        s = time_batch(w, &b, each, threads, err);
        last = each;
    }
    oct_batch_free(&b);
    if (s == OCT_OK)
        qsort(w->r->sweep, w->r->n_sweep, sizeof *w->r->sweep, by_threads);
    return s;
}

oct_status oct_eval_sweep(const oct_eval_model *models, size_t n_models, oct_source *src, int threads,
                          oct_eval_result *r, oct_err *err)
{
    sweep w = { .models = models, .n_models = n_models, .r = r };
    r->sweep = NULL;
    r->n_sweep = 0;
    OCT_TRY(oct_eval_inputs(models, n_models, r->arena, &w.inputs, &w.n_inputs, err));
    return run(&w, src, threads > 0 ? threads : oct_processors(), err);
}
