/* Runs the float model and the rounded model side by side, for one group of layers at a time. */
#include "quant/rounding/block_inputs.h"

#include "base/pool.h"
#include "quant/convert/convert_int.h"
#include "quant/job/annotate.h"
#include "runtime/runner.h"

#include <stdatomic.h>
#include <string.h>

enum { SAMPLE_BYTES = 64 << 20, STATE_BYTES = 256 << 20, LEAST_SAMPLES = 8, MOST_SAMPLES = 128 };
#define RUN_MACS 400000000000

/* One of the two models. */
typedef struct track {
    const oct_graph *g;
    oct_runner **runner;   /* [threads] */
    oct_plan_state *state; /* [samples]: the state at the point where the run for the previous group ended */
    bool *passed;          /* [samples][names]: the values that were shown before that point */
} track;

/* What a run has shown of a sample, for an input of the group. */
typedef struct progress {
    int64_t seen, taken; /* how many positions counted, and how many of the sample's rows are filled */
} progress;

typedef struct worker {
    oct_block_inputs *b;
    size_t sample;
    bool *passed;    /* [names] */
    progress *shown; /* [n_group] */
} worker;

struct oct_block_inputs {
    oct_conversion *c;
    oct_arena *arena;
    oct_pool *pool;
    size_t threads, n_names, n_samples, n_inputs;
    const char *const *name;
    oct_array **sample; /* [samples][inputs] */
    int mask;           /* the input that says which positions count; -1: there is none */
    worker *worker;     /* [threads] */
    track track[2];
    atomic_size_t kept; /* bytes that the kept states take */
    /* the current group: */
    oct_block_input *group;
    size_t n_group, now; /* now: the track that is running */
};

/* ---- samples ---- */

static oct_status keep_sample(oct_block_inputs *b, const oct_batch *from, oct_err *err)
{
    oct_array *x = oct_arena_calloc(b->arena, b->n_inputs + 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    for (size_t i = 0; i < b->n_inputs; i++) {
        x[i] = from->tensors[i];
        x[i].owned = false;
        if (!(x[i].data = oct_arena_memdup(b->arena, from->tensors[i].data, from->tensors[i].bytes)))
            return oct_nomem(err);
    }
    b->sample[b->n_samples++] = x;
    return OCT_OK;
}

static oct_status read_samples(oct_block_inputs *b, oct_err *err)
{
    const int64_t fit = RUN_MACS / oct_sample_macs(b->c->m->graph), most = fit < LEAST_SAMPLES  ? LEAST_SAMPLES
                                                                           : fit > MOST_SAMPLES ? MOST_SAMPLES
                                                                                                : fit;
    const oct_pick pick = oct_pick_half(b->c, 0, most);
    oct_batch batch = OCT_BATCH_INIT;
    oct_status s = oct_source_pick(b->c->src, &pick, err);
    size_t bytes = 0;
    while (s == OCT_OK && b->n_samples < (size_t)most && bytes < SAMPLE_BYTES) {
        s = oct_source_next(b->c->src, 1, &batch, err);
        if (s != OCT_OK || batch.n == 0)
            break;
        for (size_t i = 0; i < b->n_inputs; i++)
            bytes += batch.tensors[i].bytes;
        s = keep_sample(b, &batch, err);
    }
    oct_batch_free(&batch);
    return s;
}

static int find_mask(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (strcmp(g->value[g->input[i]].name, "attention_mask") == 0)
            return (int)i;
    return -1;
}

/* ---- what is shown ---- */

static bool counts(const oct_array *mask, int64_t position)
{
    return !mask || (mask->dtype == OCT_S64 ? ((const int64_t *)mask->data)[position]
                                            : ((const int32_t *)mask->data)[position]) != 0;
}

/* The mask of a sample, if it has one value for each position. */
static const oct_array *mask_of(const oct_block_inputs *b, size_t sample, int64_t positions)
{
    const oct_array *m = b->mask >= 0 ? &b->sample[sample][b->mask] : NULL;
    return m && (m->dtype == OCT_S64 || m->dtype == OCT_S32) && oct_array_count(m) == positions ? m : NULL;
}

/* Copies the inputs at one position into column `row`. Positions are counted in C order of the other dimensions. */
static void take_position(const oct_block_input *x, float *to, const oct_operand *t, const int64_t *strides, int axis,
                          int64_t position, int64_t row)
{
    const float *data = t->data;
    int64_t offset = 0;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != axis) {
            offset += position % t->dims[d] * strides[d];
            position /= t->dims[d];
        }
    for (int64_t k = 0; k < x->depth; k++)
        to[k * OCT_BLOCK_ROWS + row] = data[offset + k * strides[axis]];
}

static uint64_t mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* The row of the sample for the next position that counts in a later iteration of a body; -1: none. Each position that
 * was seen so far is equally likely to be among the rows (reservoir sampling), in both models the same ones. */
static int64_t next_row(progress *h, size_t sample, int64_t room)
{
    const int64_t k = h->seen++;
    if (h->taken < room)
        return h->taken++;
    const int64_t row = (int64_t)(mix(((uint64_t)sample << 40) + (uint64_t)k) % (uint64_t)(k + 1));
    return row < room ? row : -1;
}

/* Selects positions among those of the sample that count, as many as the sample's share of the rows: evenly from what
 * is shown first. */
static void collect(const oct_block_inputs *b, const oct_block_input *x, progress *h, size_t sample,
                    const oct_operand *t)
{
    const int axis = x->axis < 0 ? t->rank + x->axis : x->axis;
    float *to = x->x[b->now];
    int64_t strides[OCT_MAX_RANK], all = 0, seen = 0;
    if (t->dtype != OCT_F32 || axis < 0 || axis >= t->rank || t->dims[axis] != x->depth || t->count == 0)
        return;
    const int64_t positions = t->count / x->depth, first = (int64_t)(sample * OCT_BLOCK_ROWS / b->n_samples);
    const int64_t room = (int64_t)((sample + 1) * OCT_BLOCK_ROWS / b->n_samples) - first;
    const oct_array *mask = mask_of(b, sample, positions);
    for (int64_t p = 0; p < positions; p++)
        all += counts(mask, p);
    const int64_t n = all < room ? all : room;
    const bool again = h->seen > 0;
    oct_operand_strides(t, strides);
    for (int64_t p = 0; p < positions && (again || h->taken < n); p++) {
        if (!counts(mask, p))
            continue;
        const int64_t row = again ? next_row(h, sample, room) : h->taken * all / n == seen ? h->taken++ : -1;
        if (row >= 0)
            take_position(x, to, t, strides, axis, p, first + row);
        seen++;
    }
    if (!again)
        h->seen = all;
}

static bool is_named(const oct_block_input *x, size_t name)
{
    bool any = false;
    for (size_t i = 0; i < x->n_names && !any; i++)
        any = x->name[i] == name;
    return any;
}

static oct_status show(void *arg, size_t name, const oct_operand *t, oct_err *err)
{
    worker *w = arg;
    const oct_block_inputs *b = w->b;
    w->passed[name] = true;
    for (size_t i = 0; i < b->n_group; i++)
        if (is_named(&b->group[i], name))
            collect(b, &b->group[i], &w->shown[i], w->sample, t);
    return OCT_OK;
}

static bool is_wanted(const oct_block_inputs *b, size_t name)
{
    bool any = false;
    for (size_t i = 0; i < b->n_group && !any; i++)
        any = is_named(&b->group[i], name);
    return any;
}

/* ---- runs ---- */

/* Continues from the state of the previous group, if all wanted values come after it. */
static oct_status begin(worker *w, oct_runner *r, oct_plan **plan, oct_err *err)
{
    const oct_block_inputs *b = w->b;
    const track *t = &b->track[b->now];
    const bool *passed = t->passed + w->sample * b->n_names;
    bool usable = t->state[w->sample].at > 0;
    for (size_t i = 0; i < b->n_names && usable; i++)
        usable = !passed[i] || !is_wanted(b, i);
    OCT_TRY(oct_runner_begin(r, b->sample[w->sample], plan, err));
    if (!usable) {
        memset(w->passed, 0, b->n_names * sizeof *w->passed);
        return OCT_OK;
    }
    memcpy(w->passed, passed, b->n_names * sizeof *w->passed);
    return oct_plan_restore(*plan, &t->state[w->sample], err);
}

static void save(worker *w, const oct_plan *plan, size_t last)
{
    oct_block_inputs *b = w->b;
    track *t = &b->track[b->now];
    oct_plan_state *s = &t->state[w->sample];
    const size_t before = s->cap;
    const bool saved = oct_plan_save(plan, s);
    if (!saved || atomic_load(&b->kept) + s->cap - before > STATE_BYTES) {
        oct_plan_state_free(s);
        atomic_fetch_sub(&b->kept, before);
        return;
    }
    atomic_fetch_add(&b->kept, s->cap - before);
    memcpy(t->passed + w->sample * b->n_names, w->passed, b->n_names * sizeof *w->passed);
    t->passed[w->sample * b->n_names + last] = false; /* it will be shown again from there */
}

static oct_status run_sample(void *arg, size_t i, size_t thread, oct_err *err)
{
    oct_block_inputs *b = arg;
    worker *w = &b->worker[thread];
    oct_runner *r = b->track[b->now].runner[thread];
    oct_plan *plan;
    size_t last = b->n_names;
    bool shown;
    w->sample = i;
    memset(w->shown, 0, b->n_group * sizeof *w->shown);
    oct_runner_set_tap(r, show, w);
    const oct_status s = begin(w, r, &plan, err);
    if (s == OCT_EUNSUPPORTED)
        return oct_runner_run(r, b->sample[i], &plan,
                              err); /* the model runs in stages, from the beginning to the end */
    OCT_TRY(s);
    for (size_t k = 0; k < b->n_names; k++)
        if (!w->passed[k] && is_wanted(b, k) && oct_plan_shows(plan, k)) {
            OCT_TRY(oct_plan_advance(plan, k, &shown, err));
            last = k;
        }
    if (last < b->n_names)
        save(w, plan, last);
    return OCT_OK;
}

static void drop_runners(oct_block_inputs *b, track *t)
{
    for (size_t i = 0; t->runner && i < b->threads; i++) {
        oct_runner_destroy(t->runner[i]);
        t->runner[i] = NULL;
    }
}

static oct_status run_track(oct_block_inputs *b, size_t which, const oct_graph *g, oct_err *err)
{
    const oct_plan_opts o = { .taps = b->name, .n_taps = b->n_names, .no_passes = true, .fast_pack = true };
    track *t = &b->track[which];
    t->g = g;
    b->now = which;
    for (size_t i = 0; i < b->threads; i++)
        if (!t->runner[i])
            OCT_TRY(oct_runner_create(g, &o, NULL, 0, &t->runner[i], err));
    return oct_pool_try(b->pool, b->n_samples, run_sample, b, err);
}

oct_status oct_block_inputs_take(oct_block_inputs *b, oct_block_input *group, size_t n, oct_err *err)
{
    bool rounded = false;
    b->group = group;
    b->n_group = n;
    for (size_t i = 0; i < n; i++)
        rounded |= group[i].x[1] != NULL;
    for (size_t i = 0; i < b->threads; i++) {
        oct_free(b->worker[i].shown);
        if (!(b->worker[i].shown = oct_calloc(n + 1, sizeof *b->worker[i].shown)))
            return oct_nomem(err);
    }
    OCT_TRY(run_track(b, 0, b->c->m->graph, err));
    if (!rounded)
        return OCT_OK;
    oct_graph *g;
    OCT_TRY(oct_quantized_copy(b->c->job, &g, err));
    const oct_status s = run_track(b, 1, g, err);
    drop_runners(b, &b->track[1]);
    oct_graph_destroy(g);
    return s;
}

/* ---- open, close ---- */

static oct_status open(oct_block_inputs *b, oct_err *err)
{
    const int threads = b->c->o.job.threads;
    bool there = true;
    if (!(b->pool = oct_pool_create(threads)))
        return oct_pool_fail(threads, err);
    oct_pool_relax(b->pool);
    b->threads = (size_t)oct_pool_threads(b->pool);
    b->worker = oct_arena_calloc(b->arena, b->threads, sizeof *b->worker);
    b->sample = oct_arena_calloc(b->arena, MOST_SAMPLES + 1, sizeof *b->sample);
    if (!b->worker || !b->sample)
        return oct_nomem(err);
    OCT_TRY(read_samples(b, err));
    for (size_t i = 0; i < b->threads; i++) {
        b->worker[i].b = b;
        there &= (b->worker[i].passed = oct_arena_calloc(b->arena, b->n_names + 1, sizeof(bool))) != NULL;
    }
    for (int k = 0; k < 2; k++) {
        track *t = &b->track[k];
        t->runner = oct_arena_calloc(b->arena, b->threads, sizeof *t->runner);
        t->state = oct_arena_calloc(b->arena, b->n_samples + 1, sizeof *t->state);
        t->passed = oct_arena_calloc(b->arena, b->n_samples * b->n_names + 1, sizeof *t->passed);
        there &= t->runner && t->state && t->passed;
    }
    return there ? OCT_OK : oct_nomem(err);
}

oct_status oct_block_inputs_open(oct_conversion *c, const char *const *names, size_t n, oct_block_inputs **out,
                                 oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_block_inputs *b = a ? oct_arena_calloc(a, 1, sizeof *b) : NULL;
    *out = NULL;
    if (!b) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    b->c = c;
    b->arena = a;
    b->name = names;
    b->n_names = n;
    b->n_inputs = c->m->graph->n_input;
    b->mask = find_mask(c->m->graph);
    const oct_status s = open(b, err);
    if (s == OCT_OK)
        *out = b;
    else
        oct_block_inputs_close(b);
    return s;
}

void oct_block_inputs_close(oct_block_inputs *b)
{
    if (!b)
        return;
    for (int k = 0; k < 2; k++) {
        drop_runners(b, &b->track[k]);
        for (size_t i = 0; b->track[k].state && i < b->n_samples; i++)
            oct_plan_state_free(&b->track[k].state[i]);
    }
    for (size_t i = 0; b->worker && i < b->threads; i++)
        oct_free(b->worker[i].shown);
    oct_pool_destroy(b->pool);
    oct_arena_destroy(b->arena);
}
