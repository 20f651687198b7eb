/* Calibration: runs samples through the float runtime, and gathers statistics of chosen values. */
#include "quant/inputs/calibrate.h"

#include "base/pool.h"
#include "ops/core/tested_nan.h"
#include "runtime/runnable.h"
#include "runtime/runner.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Threads count into tables of their own while these are small. Tables of many tensors are counted into by several
 * threads, or by all, so that memory does not follow the product of both: the results are the same in any order. */
enum { MOST_TENSORS = 8192, LOCKS = 64 };

typedef struct tally {
    oct_calib *calib;
    oct_calib_tensor **tensor;   /* [opts->n]; NULL: the value is not in the part that can be run */
    pthread_mutex_t lock[LOCKS]; /* of tensor i: i % LOCKS */
} tally;

typedef struct shared {
    const oct_graph *g, *part; /* part: the part of g that can be run; NULL: all of g */
    oct_source *src;
    const oct_calibrate_opts *opts;
    bool *tests_nan; /* [opts->n] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended; /* set at the end of the samples, and after a failure */
    bool pausing;
    size_t working, waiting; /* threads that have begun and not ended; those of them that wait for a checkpoint */
    int64_t done, total;
    const oct_calib *before; /* what had been gathered before this run */
    tally *tallies;
    size_t n_tallies;
} shared;

/* The work of one thread. */
typedef struct worker {
    shared *s;
    tally *to;
    oct_runner *runner;
    oct_batch batch;
    int64_t rows; /* oct_batch_rows */
} worker;

/* How many rows count. A model with a fixed batch size gets its last sample repeated to fill the batch. */
static int64_t counted(const worker *w, const oct_operand *t)
{
    int64_t rows = t->rank ? t->dims[0] : 1;
    const oct_array *first = &w->batch.tensors[0];
    bool batched = first->rank && rows == first->dims[0] && (int64_t)w->batch.n < rows && w->rows;
    return batched ? (int64_t)w->batch.n : rows;
}

/* How many positions of a sample are used for the moments of its channels. They are chosen regularly, and alike in
 * every sample of a shape, so that tables still merge exactly. A mean over 64 samples needs no more. */
enum { POSITIONS = 256 };

static size_t position_step(size_t positions)
{
    size_t step = positions / POSITIONS;
    return step < 2 ? 1 : step | 1; /* an odd step does not always hit the same columns in rows of even width */
}

static oct_status channels(oct_calib_tensor *t, const oct_operand *x, const float *v, int64_t samples, int axis,
                           bool all, oct_err *err)
{
    if (axis < 0)
        axis = x->rank - 1;
    if (x->rank < 2 || axis >= x->rank)
        return OCT_OK;
    int64_t stride[OCT_MAX_RANK];
    oct_operand_strides(x, stride);
    size_t n = (size_t)x->dims[axis], inner = (size_t)stride[axis], count = (size_t)(x->count / x->dims[0] * samples);
    if (t->chan.channels == 0)
        OCT_TRY(oct_chan_init(&t->chan, n, err));
    if (t->chan.channels != n || count == 0)
        return OCT_OK; /* the number of channels depends on the input, so there are no moments */
    size_t positions = count / n / inner / (size_t)samples, step = inner == 1 && !all ? position_step(positions) : 1;
    for (int64_t i = 0; i < samples; i++, v += positions * n * inner)
        OCT_TRY(oct_chan_update(&t->chan, v, positions, step, inner, err));
    return OCT_OK;
}

/* Gathers statistics of value i. v: the elements of x, in the order of its layout. */
static oct_status take_values(worker *w, size_t i, const oct_operand *x, const float *v, oct_err *err)
{
    const oct_calibrate_opts *o = w->s->opts;
    int64_t rows = counted(w, x), per_sample = rows > 0 ? x->count / (x->rank ? x->dims[0] : 1) : 0;
    /* Each sample has the same weight in averages, whichever batch it was in. */
    bool batched = x->rank && w->batch.n > 1 && rows == (int64_t)w->batch.n;
    oct_stats *stats = &w->to->tensor[i]->stats;
    if (!o->moments_only)
        OCT_TRY(batched ? oct_stats_update_batch(stats, v, (size_t)rows, (size_t)per_sample, err)
                        : oct_stats_update(stats, v, (size_t)(per_sample * rows), err));
    const int axis = o->axes && (x->dtype == OCT_F32 || x->q) ? o->axes[i] : 0;
    return axis ? channels(w->to->tensor[i], x, v, rows, axis, o->all_positions, err) : OCT_OK;
}

/* NaN that the model tests for counts as infinities do, which no range includes. */
static void count_apart(float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = isnan(v[i]) ? INFINITY : v[i];
}

static oct_status observe(void *arg, size_t i, const oct_operand *x, oct_err *err)
{
    worker *w = arg;
    if (!w->to->tensor[i] || x->count == 0)
        return OCT_OK;
    oct_operand as_it_lies =
        *x; /* converted element by element in the order of the layout; float32 is read in the same order */
    as_it_lies.layout = OCT_LAYOUT_PLAIN;
    const bool as_is = x->dtype == OCT_F32 && !w->s->tests_nan[i];
    float *made = as_is ? NULL : oct_alloc((size_t)x->count * sizeof *made);
    oct_status s = as_is ? OCT_OK : made ? oct_operand_to_f32(&as_it_lies, made, err) : oct_nomem(err);
    if (s == OCT_OK && w->s->tests_nan[i])
        count_apart(made, x->count);
    if (s == OCT_OK) {
        pthread_mutex_lock(&w->to->lock[i % LOCKS]);
        s = take_values(w, i, x, made ? made : x->data, err);
        pthread_mutex_unlock(&w->to->lock[i % LOCKS]);
    }
    oct_free(made);
    if (s != OCT_OK)
        oct_within(err, "sample '%s': value '%s'", w->batch.names[0], w->s->opts->values[i]);
    if (s == OCT_ENUMERIC)
        oct_hint(err, "the float model computes this: does the sample hold infinities, or values beyond those that it "
                      "was trained on (--preprocess)?");
    return s;
}

/* Merges everything that was gathered so far. Threads keep what they have, and continue to count into it. */
static oct_status sum_up(const shared *s, oct_calib *all, oct_err *err)
{
    OCT_TRY(oct_calib_add_statistics(all, s->before, err));
    for (size_t i = 0; i < s->n_tallies; i++)
        OCT_TRY(oct_calib_add_statistics(all, s->tallies[i].calib, err));
    return OCT_OK;
}

/* Called with the lock held: waits until no other thread is working on a batch, and then gives everything gathered to
 * the checkpoint. */
static oct_status checkpoint(shared *s, oct_err *err)
{
    s->pausing = true;
    while (s->waiting + 1 < s->working)
        pthread_cond_wait(&s->changed, &s->lock);
    oct_status st = OCT_OK;
    if (!s->ended) { /* otherwise a batch may have failed */
        oct_calib *all = oct_calib_create();
        st = all ? sum_up(s, all, err) : oct_nomem(err);
        if (st == OCT_OK)
            s->opts->keep(s->opts->keep_arg, all, s->src);
        oct_calib_destroy(all);
    }
    s->pausing = false;
    pthread_cond_broadcast(&s->changed);
    return st;
}

/* Called with the lock held, between two batches of this thread. */
static oct_status pause_for_checkpoint(shared *s, oct_err *err)
{
    if (!s->pausing)
        return !s->ended && s->opts->due && s->opts->due(s->opts->keep_arg) ? checkpoint(s, err) : OCT_OK;
    s->waiting++;
    pthread_cond_broadcast(&s->changed);
    while (s->pausing)
        pthread_cond_wait(&s->changed, &s->lock);
    s->waiting--;
    return OCT_OK;
}

/* Takes the next batch; called with the lock held. *more is false at the end, or after any thread failed. */
static oct_status take(worker *w, bool *more, oct_err *err)
{
    shared *s = w->s;
    pthread_mutex_lock(&s->lock);
    oct_status st = pause_for_checkpoint(s, err);
    s->ended |= st != OCT_OK;
    s->ended |= s->opts->limit && s->done >= s->opts->limit;
    *more = !s->ended;
    if (*more) {
        st = oct_source_next(s->src, 1, &w->batch, err);
        *more = st == OCT_OK && w->batch.n > 0;
        s->ended |= !*more;
        s->done += *more ? (int64_t)w->batch.n : 0;
        if (*more && s->opts->progress)
            s->opts->progress(s->opts->progress_arg, "calibrating", s->opts->before + s->done, s->total);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static oct_status work(worker *w, oct_err *err)
{
    oct_plan *plan;
    bool more;
    for (;;) {
        OCT_TRY(take(w, &more, err));
        if (!more)
            return OCT_OK;
        w->rows = oct_batch_rows(w->s->src, &w->batch);
        const oct_status ran = oct_runner_run(w->runner, w->batch.tensors, &plan, err);
        if (ran != OCT_OK && !strstr(err->text, w->batch.names[0])) /* what observes values names the sample, too */
            oct_batch_within(&w->batch, err);
        OCT_TRY(ran);
        pthread_mutex_lock(&w->s->lock);
        w->to->calib->samples += w->batch.n;
        pthread_mutex_unlock(&w->s->lock);
    }
}

static oct_status run_worker(void *arg, size_t i, size_t thread, oct_err *err)
{
    worker *w = &((worker *)arg)[i];
    pthread_mutex_lock(&w->s->lock);
    w->s->working++;
    pthread_mutex_unlock(&w->s->lock);
    const oct_status st = work(w, err);
    pthread_mutex_lock(&w->s->lock);
    w->s->ended = true; /* there are no more samples, or the other threads need not continue */
    w->s->working--;
    pthread_cond_broadcast(&w->s->changed);
    pthread_mutex_unlock(&w->s->lock);
    return st;
}

/* The first sample determines the number of channels. If earlier samples were counted before, it is known already. */
static oct_status same_channels(const oct_calib *before, oct_calib_tensor *t, oct_err *err)
{
    const oct_calib_tensor *b = oct_calib_find(before, t->name);
    return b && b->chan.channels ? oct_chan_init(&t->chan, b->chan.channels, err) : OCT_OK;
}

static oct_status init_tally(tally *t, const shared *s, oct_err *err)
{
    const oct_calibrate_opts *o = s->opts;
    t->calib = oct_calib_create();
    t->tensor = oct_calloc(o->n + 1, sizeof *t->tensor);
    if (!t->calib || !t->tensor)
        return oct_nomem(err);
    for (size_t i = 0; i < o->n; i++)
        if (!s->part || oct_runnable_has(s->part, o->values[i])) {
            OCT_TRY(oct_calib_add(t->calib, o->values[i], &t->tensor[i], err));
            OCT_TRY(same_channels(s->before, t->tensor[i], err));
        }
    return OCT_OK;
}

static void free_tally(tally *t)
{
    oct_calib_destroy(t->calib);
    oct_free(t->tensor);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&t->lock[i]);
}

static oct_status find_tested(shared *s, oct_arena *a, oct_err *err)
{
    if (!(s->tests_nan = oct_arena_calloc(a, s->opts->n + 1, sizeof *s->tests_nan)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->opts->n; i++) {
        const int v = oct_graph_find(s->g, s->opts->values[i]);
        s->tests_nan[i] = v >= 0 && oct_tests_nan(s->g, v);
    }
    return OCT_OK;
}

static oct_status open_tallies(shared *s, size_t threads, oct_arena *a, oct_err *err)
{
    const oct_calibrate_opts *o = s->opts;
    const size_t most = o->n < MOST_TENSORS ? MOST_TENSORS / (o->n + 1) : 1, n = threads < most ? threads : most;
    if (!(s->tallies = oct_arena_calloc(a, n, sizeof *s->tallies)))
        return oct_nomem(err);
    for (; s->n_tallies < n; s->n_tallies++)
        for (size_t i = 0; i < LOCKS; i++)
            pthread_mutex_init(&s->tallies[s->n_tallies].lock[i], NULL);
    for (size_t i = 0; i < n; i++)
        OCT_TRY(init_tally(&s->tallies[i], s, err));
    return OCT_OK;
}

static oct_status init_worker(worker *w, shared *s, size_t i, oct_err *err)
{
    *w = (worker){ .s = s, .to = &s->tallies[i % s->n_tallies] };
    oct_plan_opts plans = { .taps = s->opts->values, .n_taps = s->opts->n, .no_passes = true };
    OCT_TRY(oct_runner_create(s->part ? s->part : s->g, &plans, NULL, 0, &w->runner, err));
    oct_runner_set_tap(w->runner, observe, w);
    return OCT_OK;
}

static void free_worker(worker *w)
{
    oct_runner_destroy(w->runner);
    oct_batch_free(&w->batch);
}

static oct_status calibrate(const oct_graph *g, const oct_graph *part, oct_source *src, const oct_calibrate_opts *opts,
                            oct_calib *c, oct_err *err)
{
    oct_pool *pool = oct_pool_create(opts->threads);
    size_t n = (size_t)oct_pool_threads(pool);
    if (pool)
        oct_pool_relax(pool);
    shared s = { .g = g,
                 .part = part,
                 .src = src,
                 .opts = opts,
                 .total = opts->total ? opts->total : oct_source_count(src),
                 .before = c };
    oct_arena *a = oct_arena_create();
    worker *w = oct_calloc(n, sizeof *w);
    oct_status st = !pool ? oct_pool_fail(opts->threads, err) : !w || !a ? oct_nomem(err) : OCT_OK;
    if (s.total < 0)
        s.total = 0;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    if (st == OCT_OK)
        st = find_tested(&s, a, err);
    if (st == OCT_OK)
        st = open_tallies(&s, n, a, err);
    for (size_t i = 0; st == OCT_OK && i < n; i++)
        st = init_worker(&w[i], &s, i, err);
    if (st == OCT_OK)
        st = oct_pool_try(pool, n, run_worker, w, err);
    for (size_t i = 0; st == OCT_OK && i < s.n_tallies; i++)
        st = oct_calib_move_statistics(c, s.tallies[i].calib, err);
    if (st == OCT_OK && c->samples == 0 && !opts->part)
        st = oct_source_none(src, err);
    for (size_t i = 0; w && i < n; i++)
        free_worker(&w[i]);
    for (size_t i = 0; i < s.n_tallies; i++)
        free_tally(&s.tallies[i]);
    oct_free(w);
    if (a)
        oct_arena_destroy(a);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
    oct_pool_destroy(pool);
    return st;
}

oct_status oct_calibrate(const oct_graph *g, oct_source *src, const oct_calibrate_opts *opts, oct_calib *c,
                         oct_err *err)
{
    oct_graph *part;
    for (size_t i = 0; i < opts->n; i++)
        if (oct_graph_find(g, opts->values[i]) < 0 && !oct_runnable_has(g, opts->values[i]))
            return oct_fail(err, OCT_EUSAGE, "the model has no value '%s'", opts->values[i]);
    OCT_TRY(oct_runnable_part(g, &part, err));
    bool any = !part;
    for (size_t i = 0; i < opts->n && !any; i++)
        any = oct_runnable_has(part, opts->values[i]);
    oct_status s = any ? calibrate(g, part, src, opts, c, err) : OCT_OK;
    oct_graph_destroy(part);
    return s;
}
