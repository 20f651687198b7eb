/* Running the simulation: samples divided among threads, errors summed sample by sample. */
#include "quant/simulate_int.h"

#include "quant/convert_int.h"

#include <math.h>
#include <string.h>

enum { SIM_BYTES = 64 << 20 }; /* inputs and outputs that are kept */

/* ---- one sample ---- */

int oct_sim_find_tap(const char *const *tap, size_t n, size_t *next, const char *name)
{
    for (size_t k = 0; k < n; k++) {
        const size_t i = (*next + k) % n;
        if (strcmp(tap[i], name) == 0) {
            *next = i + 1;
            return (int)i;
        }
    }
    return -1;
}

static oct_status round_value(void *arg, const char *name, const oct_operand *t, oct_err *err)
{
    sim_worker *w = arg;
    const oct_sim *s = w->s;
    const int i = oct_sim_find_tap(s->tap, s->n_taps, &w->next, name);
    (void)err;
    if (s->show) {
        s->show(s->show_arg, w->sample, name, t);
        return OCT_OK;
    }
    if (i < 0 || s->keep || s->mask->no_values || t->dtype != OCT_F32)
        return OCT_OK;
    const bool *on = s->mask->value;
    if (!on || on[oct_params_root(s->j, s->tapped[i])])
        oct_sim_round(s->j, s->tapped[i], t);
    return OCT_OK;
}

static oct_status reserve(sim_worker *w, int64_t n, oct_err *err)
{
    if (n <= w->cap)
        return OCT_OK;
    oct_free(w->plain);
    w->plain = oct_calloc((size_t)n, sizeof(float));
    w->cap = w->plain ? n : 0;
    return w->plain ? OCT_OK : oct_nomem(err);
}

static oct_status take_output(oct_sim *s, sim_sample *x, size_t k, const oct_operand *y, oct_err *err)
{
    x->count[k] = y->count;
    if (!(x->output[k] = oct_arena_calloc(s->arena, (size_t)y->count + 1, sizeof(float))))
        return oct_nomem(err);
    if (oct_operand_to_f32(y, x->output[k], NULL) != OCT_OK)
        x->count[k] = 0; /* no numbers: does not count */
    return OCT_OK;
}

static oct_status compare(sim_worker *w, sim_sample *x, const oct_plan *plan, oct_err *err)
{
    for (size_t k = 0; k < w->s->n_outputs; k++) {
        const oct_operand *y = oct_plan_output(plan, k);
        x->error[k] = (oct_error){ 0 };
        if (!x->count[k] || y->count != x->count[k])
            continue;
        OCT_TRY(reserve(w, y->count, err));
        OCT_TRY(oct_operand_to_f32(y, w->plain, err));
        oct_error_add(&x->error[k], x->output[k], w->plain, (size_t)y->count);
    }
    return OCT_OK;
}

static oct_status make_runner(oct_sim *s, sim_graph *g, size_t thread, oct_err *err)
{
    const oct_plan_opts o = { .taps = s->tap, .n_taps = s->n_taps, .no_passes = true, .fast_pack = true };
    if (g->runner[thread])
        return OCT_OK;
    OCT_TRY(oct_runner_create(g->g, &o, NULL, 0, &g->runner[thread], err));
    oct_runner_set_tap(g->runner[thread], round_value, &s->worker[thread]);
    return OCT_OK;
}

static oct_status run_sample(oct_sim *s, size_t i, size_t thread, oct_err *err)
{
    sim_worker *w = &s->worker[thread];
    oct_runner **r = &s->graph->runner[thread];
    sim_sample *x = &s->sample[i];
    oct_plan *plan;
    OCT_TRY(make_runner(s, s->graph, thread, err));
    w->sample = i;
    OCT_TRY(oct_runner_run(*r, x->input, &plan, err));
    if (s->show)
        return OCT_OK;
    if (!s->keep)
        return compare(w, x, plan, err);
    /* The arena belongs to all threads. */
    pthread_mutex_lock(&s->lock);
    oct_status st = OCT_OK;
    for (size_t k = 0; k < s->n_outputs && st == OCT_OK; k++)
        st = take_output(s, x, k, oct_plan_output(plan, k), err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void run_part(void *arg, size_t begin, size_t end, size_t thread)
{
    oct_sim *s = arg;
    for (size_t i = begin; i < end; i++) {
        oct_err err = { 0 };
        const oct_status st = run_sample(s, i, thread, &err);
        if (st == OCT_OK)
            continue;
        pthread_mutex_lock(&s->lock);
        if (s->status == OCT_OK) {
            s->status = st;
            s->err = err;
        }
        pthread_mutex_unlock(&s->lock);
    }
}

static oct_status run_all(oct_sim *s, sim_graph *g, oct_err *err)
{
    s->graph = g;
    s->status = OCT_OK;
    oct_pool_for(s->pool, s->n_samples, 1, run_part, s);
    if (s->status != OCT_OK && err)
        *err = s->err;
    return s->status;
}

/* ---- graphs ---- */

static void drop_graph(oct_sim *s, sim_graph *g)
{
    for (size_t t = 0; g->runner && t < s->threads; t++)
        oct_runner_destroy(g->runner[t]);
    oct_free(g->runner);
    oct_graph_destroy(g->g);
    *g = (sim_graph){ 0 };
}

static oct_status make_graph(oct_sim *s, const bool *rounds, bool constants, sim_graph *g, oct_err *err)
{
    const char **tap = oct_arena_calloc(s->arena, s->j->n_values + 1, sizeof *tap);
    g->runner = oct_calloc(s->threads, sizeof(oct_runner *));
    if (!tap || !g->runner)
        return oct_nomem(err);
    OCT_TRY(oct_sim_graph(s->j, rounds, constants, s->arena, &g->g, tap, err));
    if (s->tap)
        return OCT_OK; /* the names are the same */
    s->tap = oct_arena_calloc(s->arena, s->j->n_values + 1, sizeof *s->tap);
    s->tapped = oct_arena_calloc(s->arena, s->j->n_values + 1, sizeof *s->tapped);
    if (!s->tap || !s->tapped)
        return oct_nomem(err);
    for (size_t v = 0; v < s->j->n_values; v++)
        if (tap[v]) {
            s->tap[s->n_taps] = tap[v];
            s->tapped[s->n_taps++] = (int)v;
        }
    return OCT_OK;
}

/* ---- measuring ---- */

static oct_sim_loss sum_errors(const oct_sim *s)
{
    oct_sim_loss loss = { 0, INFINITY };
    for (size_t k = 0; k < s->n_outputs; k++) {
        oct_error e = { 0 };
        for (size_t i = 0; i < s->n_samples; i++)
            if (s->sample[i].count[k])
                oct_error_join(&e, &s->sample[i].error[k]);
        if (e.n == 0)
            continue;
        const double db = oct_error_sqnr(&e);
        loss.noise += isnan(db) ? INFINITY : pow(10, -db / 10);
        loss.sqnr = isnan(db) ? -INFINITY : fmin(loss.sqnr, db);
    }
    return loss;
}

oct_status oct_sim_measure(oct_sim *s, const oct_sim_mask *m, oct_sim_loss *loss, oct_err *err)
{
    const bool some = m->weights == OCT_SIM_SOME_WEIGHTS;
    sim_graph *g = m->weights == OCT_SIM_FLOAT_WEIGHTS ? &s->real : some ? &s->some : &s->rounded;
    if (some)
        drop_graph(s, g);
    if (!g->g)
        OCT_TRY(make_graph(s, some ? m->layer : NULL, !some, g, err));
    s->mask = m;
    OCT_TRY(run_all(s, g, err));
    *loss = sum_errors(s);
    return OCT_OK;
}

oct_status oct_sim_show(oct_sim *s, void (*show)(void *arg, size_t sample, const char *name, const oct_operand *t), void *arg, oct_err *err)
{
    s->show = show;
    s->show_arg = arg;
    const oct_status st = run_all(s, &s->real, err);
    s->show = NULL;
    return st;
}

/* ---- samples ---- */

/* Of the inputs of a sample, and of its outputs as far as their shapes are known. */
static size_t bytes_of(const oct_graph *g, const oct_batch *b)
{
    size_t n = 0;
    for (size_t k = 0; k < g->n_output; k++) {
        const oct_shape *s = &g->value[g->output[k]].shape;
        size_t count = s->rank >= 0 ? sizeof(float) : 0;
        for (int d = 0; d < s->rank && count < SIM_BYTES; d++)
            count *= s->d[d].n > 0 ? (size_t)s->d[d].n : 1;
        n += count;
    }
    for (size_t i = 0; i < b->n_tensors; i++)
        n += b->tensors[i].bytes;
    return n;
}

static oct_status keep_sample(oct_sim *s, const oct_batch *b, oct_err *err)
{
    sim_sample *x = &s->sample[s->n_samples];
    x->input = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *x->input);
    x->output = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->output);
    x->count = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->count);
    x->error = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->error);
    if (!x->input || !x->output || !x->count || !x->error)
        return oct_nomem(err);
    for (size_t i = 0; i < b->n_tensors; i++) {
        x->input[i] = b->tensors[i];
        x->input[i].owned = false;
        if (!(x->input[i].data = oct_arena_memdup(s->arena, b->tensors[i].data, b->tensors[i].bytes)))
            return oct_nomem(err);
    }
    s->n_samples++;
    return OCT_OK;
}

static oct_status read_samples(oct_sim *s, oct_source *src, int64_t samples, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status st = OCT_OK;
    size_t bytes = 0;
    while ((int64_t)s->n_samples < samples && (bytes < SIM_BYTES || s->n_samples < 2)) {
        st = oct_source_next(src, 1, &b, err);
        if (st != OCT_OK || b.n == 0)
            break;
        bytes += bytes_of(s->j->g, &b);
        if ((st = keep_sample(s, &b, err)) != OCT_OK)
            break;
    }
    oct_batch_free(&b);
    return st;
}

static int64_t samples_of(oct_sim_size size, int64_t macs)
{
    const int64_t n = size.macs / macs;
    return n < size.least ? size.least : n > size.most ? size.most : n;
}

/* Shapes that only samples tell may make runs longer than the model's own say: then fewer samples stay, spread over those that were read. */
static oct_status drop_samples(oct_sim *s, oct_sim_size size, oct_err *err)
{
    oct_plan *plan;
    uint64_t macs = 1;
    if (s->n_samples == 0)
        return OCT_OK;
    OCT_TRY(make_runner(s, &s->real, 0, err));
    OCT_TRY(oct_runner_plan(s->real.runner[0], s->sample[0].input, &plan, err));
    for (size_t i = 0; i < oct_plan_n_steps(plan); i++)
        macs += oct_plan_step(plan, i).macs;
    const size_t n = (size_t)samples_of(size, macs > INT64_MAX ? INT64_MAX : (int64_t)macs), all = s->n_samples;
    if (n >= all)
        return OCT_OK;
    for (size_t i = 0; i < n; i++)
        s->sample[i] = s->sample[i * all / n];
    s->n_samples = n;
    return OCT_OK;
}

static oct_status open_sim(oct_sim *s, oct_conversion *c, oct_sim_size size, int half, oct_err *err)
{
    const int64_t samples = samples_of(size, oct_graph_macs(c->m->graph));
    s->j = c->job;
    s->n_inputs = s->j->g->n_input;
    s->n_outputs = s->j->g->n_output;
    if (!(s->arena = oct_arena_create()))
        return oct_nomem(err);
    if (!(s->pool = oct_pool_create(c->o.job.threads)))
        return oct_pool_fail(c->o.job.threads, err);
    oct_pool_relax(s->pool);
    s->threads = (size_t)oct_pool_threads(s->pool);
    s->worker = oct_arena_calloc(s->arena, s->threads, sizeof *s->worker);
    s->sample = oct_arena_calloc(s->arena, (size_t)samples + 1, sizeof *s->sample);
    if (!s->worker || !s->sample)
        return oct_nomem(err);
    for (size_t t = 0; t < s->threads; t++)
        s->worker[t].s = s;
    /* A half of few samples, some of them broken, may have none. */
    const oct_pick pick = c->o.whole ? (oct_pick){ .most = samples } : (oct_pick){ .most = 2 * samples, .i = half, .n = 2 };
    OCT_TRY(oct_source_pick(c->src, &pick, err));
    OCT_TRY(read_samples(s, c->src, samples, err));
    const bool *none = oct_arena_calloc(s->arena, s->j->n_nodes + 1, sizeof *none);
    if (!none)
        return oct_nomem(err);
    OCT_TRY(make_graph(s, none, false, &s->real, err));
    OCT_TRY(drop_samples(s, size, err));
    s->keep = true;
    OCT_TRY(run_all(s, &s->real, err));
    s->keep = false;
    return OCT_OK;
}

oct_status oct_sim_open(oct_conversion *c, oct_sim_size size, int half, oct_sim **sim, oct_err *err)
{
    oct_sim *s = oct_calloc(1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    pthread_mutex_init(&s->lock, NULL);
    oct_status st = open_sim(s, c, size, half, err);
    if (st == OCT_OK)
        *sim = s;
    else
        oct_sim_close(s);
    return st;
}

void oct_sim_close(oct_sim *s)
{
    if (!s)
        return;
    drop_graph(s, &s->real);
    drop_graph(s, &s->rounded);
    drop_graph(s, &s->some);
    for (size_t t = 0; s->worker && t < s->threads; t++)
        oct_free(s->worker[t].plain);
    oct_pool_destroy(s->pool);
    oct_arena_destroy(s->arena);
    pthread_mutex_destroy(&s->lock);
    oct_free(s);
}
