/* Runs the simulation: samples are distributed among threads, and errors are summed sample by sample. What depends on
 * decisions is made anew when they change. */
#include "quant/simulate/simulate_int.h"

#include "eval/run/output_match.h"
#include "quant/convert/convert_int.h"

#include <math.h>
#include <string.h>

/* ---- one sample ---- */

static oct_status round_value(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    sim_worker *w = arg;
    const oct_sim_core *s = w->s;
    if (s->show) {
        w->passed[tap] = true;
        if (oct_sim_way(s->c->job, s->tapped[tap]) == OCT_SIM_OWN)
            s->show(s->show_arg, w->sample, tap, t);
        return OCT_OK;
    }
    if (s->keep || s->mask->no_values || t->dtype != OCT_F32)
        return OCT_OK;
    if (!oct_sim_is_on(s, tap)) {
        oct_sim_pass(w, tap);
        return OCT_OK;
    }
    oct_sim_end_real(w);
    oct_sim_round(s->c->job, s->tapped[tap], t);
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

static oct_status take_output(oct_sim_core *s, sim_sample *x, size_t k, const oct_operand *y, oct_err *err)
{
    x->count[k] = y->count;
    if (!(x->output[k] = oct_arena_calloc(s->arena, (size_t)y->count + 1, sizeof(float))))
        return oct_nomem(err);
    if (oct_operand_to_f32(y, x->output[k], NULL) != OCT_OK)
        x->count[k] = 0; /* not finite: this output does not count */
    return OCT_OK;
}

/* Sorts the rows of the output like those of the float model. */
static oct_status sort_rows(sim_worker *w, const float *real, const oct_operand *y, oct_err *err)
{
    int axis = 0;
    while (axis + 1 < y->rank && y->dims[axis] == 1)
        axis++;
    const size_t n = y->rank ? (size_t)y->dims[axis] : 1, columns = (size_t)y->count / n, all = (size_t)y->count;
    OCT_TRY(reserve(w, (int64_t)(2 * all + n / sizeof(float) + 1), err));
    OCT_TRY(oct_operand_to_f32(y, w->plain + all, err));
    oct_rows_by_nearest(real, w->plain + all, n, columns, w->plain, (uint8_t *)(w->plain + 2 * all));
    return OCT_OK;
}

/* Of outputs of two lengths the shared part counts; all is lost if there is none. */
static oct_status compare_lengths(sim_worker *w, sim_sample *x, size_t k, const oct_operand *y, oct_err *err)
{
    const int64_t n = x->count[k];
    const int64_t shared = n < y->count ? n : y->count;
    OCT_TRY(reserve(w, n > y->count ? n : y->count, err));
    OCT_TRY(oct_operand_to_f32(y, w->plain, err));
    oct_sim_view(w->s, x, k, w->plain, y->count);
    if (shared == 0)
        memset(w->plain, 0, (size_t)n * sizeof(float));
    oct_error_add(&x->error[k], x->output[k], w->plain, (size_t)(shared ? shared : n));
    return OCT_OK;
}

static oct_status compare(sim_worker *w, sim_sample *x, const oct_plan *plan, oct_err *err)
{
    for (size_t k = 0; k < w->s->n_outputs; k++) {
        const oct_operand *y = oct_plan_output(plan, k);
        x->error[k] = (oct_error){ 0 };
        if (!x->count[k])
            continue;
        if (y->count != x->count[k]) {
            OCT_TRY(compare_lengths(w, x, k, y, err));
            continue;
        }
        if (w->s->end[k].rows) {
            OCT_TRY(sort_rows(w, x->output[k], y, err));
        } else {
            OCT_TRY(reserve(w, y->count, err));
            OCT_TRY(oct_operand_to_f32(y, w->plain, err));
            oct_sim_view(w->s, x, k, w->plain, y->count);
        }
        oct_error_add(&x->error[k], x->output[k], w->plain, (size_t)y->count);
    }
    return OCT_OK;
}

oct_status oct_sim_make_runner(oct_sim_core *s, sim_graph *g, size_t thread, oct_err *err)
{
    const oct_plan_opts o = { .taps = s->tap, .n_taps = s->n_taps, .no_passes = true, .fast_pack = true };
    if (g->runner[thread])
        return OCT_OK;
    OCT_TRY(oct_runner_create(g->g, &o, NULL, 0, &g->runner[thread], err));
    oct_runner_set_tap(g->runner[thread], round_value, &s->worker[thread]);
    return OCT_OK;
}

static oct_status run_sample(void *arg, size_t i, size_t thread, oct_err *err)
{
    oct_sim_core *s = arg;
    sim_worker *w = &s->worker[thread];
    sim_sample *x = s->set->sample[i];
    oct_plan *plan;
    OCT_TRY(oct_sim_make_runner(s, s->now, thread, err));
    w->sample = i;
    OCT_TRY(oct_sim_run_sample(w, s->now->runner[thread], &plan, err));
    if (s->show)
        return OCT_OK;
    if (!s->keep)
        return compare(w, x, plan, err);
    /* All threads share the arena. */
    pthread_mutex_lock(&s->lock);
    oct_status st = OCT_OK;
    for (size_t k = 0; k < s->n_outputs && st == OCT_OK; k++)
        st = take_output(s, x, k, oct_plan_output(plan, k), err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void drop_runners(oct_sim_core *s, sim_graph *g)
{
    for (size_t t = 0; g->runner && t < s->threads; t++) {
        oct_runner_destroy(g->runner[t]);
        g->runner[t] = NULL;
    }
}

void oct_sim_drop_runners(oct_sim_core *s)
{
    for (int i = 0; i < SIM_GRAPHS; i++)
        drop_runners(s, &s->graph[i]);
}

static void drop_graph(oct_sim_core *s, sim_graph *g)
{
    drop_runners(s, g);
    oct_free(g->runner);
    oct_graph_destroy(g->g);
    *g = (sim_graph){ 0 };
}

oct_status oct_sim_run(oct_sim_core *s, const oct_sim *set, sim_graph *g, oct_err *err)
{
    for (int i = 0; i < SIM_GRAPHS; i++) /* plans of one graph at a time, because the weights and tensors of several
                                            would need most of the memory */
        if (&s->graph[i] != g)
            drop_graph(s, &s->graph[i]);
    if (g != &s->graph[SIM_REAL])
        oct_sim_drop_states(s);
    s->set = set;
    s->now = g;
    return oct_pool_try(s->pool, set->n_samples, run_sample, s, err);
}

/* ---- graphs ---- */

static void drop_graphs(oct_sim_core *s)
{
    for (int i = 0; i < SIM_GRAPHS; i++)
        drop_graph(s, &s->graph[i]);
    oct_sim_drop_states(s);
    oct_arena_destroy(s->decided);
    s->decided = NULL;
    s->tap = NULL;
    s->n_taps = 0;
}

/* Settles the conversion, and drops everything that depends on older decisions. */
static oct_status follow(oct_sim_core *s, oct_err *err)
{
    OCT_TRY(oct_conversion_settle(s->c, err));
    if (s->decided && s->revision == s->c->revision)
        return OCT_OK;
    drop_graphs(s);
    s->revision = s->c->revision;
    return (s->decided = oct_arena_create()) ? OCT_OK : oct_nomem(err);
}

static oct_status list_taps(oct_sim_core *s, const char **name, oct_err *err)
{
    const size_t n = s->c->job->n_values * OCT_SIM_WAYS;
    const char **tap = oct_arena_calloc(s->decided, n + 1, sizeof *tap);
    s->tapped = oct_arena_calloc(s->decided, n + 1, sizeof *s->tapped);
    if (!tap || !s->tapped)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (name[i]) {
            tap[s->n_taps] = name[i];
            s->tapped[s->n_taps++] = (int)i;
        }
    s->tap = tap;
    return OCT_OK;
}

oct_status oct_sim_make_graph(oct_sim_core *s, sim_constants kind, const bool *rounds, oct_err *err)
{
    oct_qjob *j = s->c->job;
    sim_graph *g = &s->graph[kind];
    if (g->g)
        return OCT_OK;
    const char **tap = oct_arena_calloc(s->decided, j->n_values * OCT_SIM_WAYS + 1, sizeof *tap);
    const bool *none = oct_arena_calloc(s->decided, j->n_nodes + 1, sizeof *none);
    g->runner = oct_calloc(s->threads, sizeof(oct_runner *));
    if (!tap || !none || !g->runner)
        return oct_nomem(err);
    OCT_TRY(
        oct_sim_graph(j, kind == SIM_REAL ? none : rounds, kind == SIM_ROUNDED, s->decided, &g->g, tap, &s->end, err));
    s->n_outputs = g->g->n_output;
    return s->tap ? OCT_OK : list_taps(s, tap, err); /* the names are the same in all graphs */
}

/* ---- measuring ---- */

static oct_sim_loss sum_errors(const oct_sim *s)
{
    oct_sim_loss loss = { 0, INFINITY };
    for (size_t k = 0; k < s->core->n_outputs; k++) {
        oct_error e = { 0 };
        for (size_t i = 0; i < s->n_samples; i++)
            if (s->sample[i]->count[k])
                oct_error_join(&e, &s->sample[i]->error[k]);
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
    static const sim_constants kinds[] = {
        [OCT_SIM_FLOAT_WEIGHTS] = SIM_REAL, [OCT_SIM_ROUNDED_WEIGHTS] = SIM_ROUNDED, [OCT_SIM_SOME_WEIGHTS] = SIM_SOME
    };
    oct_sim_core *core = s->core;
    const sim_constants kind = kinds[m->weights];
    OCT_TRY(follow(core, err));
    drop_graph(core, &core->graph[SIM_SOME]);
    OCT_TRY(oct_sim_make_graph(core, kind, kind == SIM_SOME ? m->layer : NULL, err));
    OCT_TRY(oct_sim_need_states(core, s, err));
    core->mask = m;
    OCT_TRY(oct_sim_run(core, s, &core->graph[kind], err));
    *loss = sum_errors(s);
    return OCT_OK;
}

size_t oct_sim_tap(const oct_sim *s, int value)
{
    for (size_t i = 0; i < s->core->n_taps; i++)
        if (s->core->tapped[i] == value)
            return i;
    return OCT_NO_TAP;
}

oct_status oct_sim_show(oct_sim *s, const bool *value,
                        void (*show)(void *arg, size_t sample, size_t tap, const oct_operand *t), void *arg,
                        oct_err *err)
{
    oct_sim_core *core = s->core;
    OCT_TRY(follow(core, err));
    OCT_TRY(oct_sim_make_graph(core, SIM_REAL, NULL, err));
    OCT_TRY(oct_sim_need_states(core, s, err));
    core->wanted = value;
    core->show = show;
    core->show_arg = arg;
    const oct_status st = oct_sim_run(core, s, &core->graph[SIM_REAL], err);
    core->show = NULL;
    return st;
}

/* ---- the simulation of a conversion ---- */

static oct_status open_core(oct_sim_core *s, oct_err *err)
{
    const oct_qjob *j = s->c->job;
    s->n_inputs = j->g->n_input;
    s->n_outputs = j->g->n_output;
    s->macs = oct_sample_macs(s->c->m->graph);
    if (!(s->arena = oct_arena_create()))
        return oct_nomem(err);
    if (!(s->pool = oct_pool_create(s->c->o.job.threads)))
        return oct_pool_fail(s->c->o.job.threads, err);
    oct_pool_relax(s->pool);
    s->threads = (size_t)oct_pool_threads(s->pool);
    if (!(s->worker = oct_arena_calloc(s->arena, s->threads, sizeof *s->worker)))
        return oct_nomem(err);
    for (size_t t = 0; t < s->threads; t++)
        s->worker[t].s = s;
    return OCT_OK;
}

void oct_conversion_end_sim(oct_conversion *c)
{
    oct_sim_core *s = c->sim;
    if (!s)
        return;
    drop_graphs(s);
    for (size_t t = 0; s->worker && t < s->threads; t++)
        oct_free(s->worker[t].plain);
    oct_pool_destroy(s->pool);
    oct_arena_destroy(s->arena);
    pthread_mutex_destroy(&s->lock);
    oct_free(s);
    c->sim = NULL;
    c->end_sim = NULL;
}

static oct_status need_core(oct_conversion *c, oct_err *err)
{
    if (c->sim)
        return OCT_OK;
    if (!(c->sim = oct_calloc(1, sizeof *c->sim)))
        return oct_nomem(err);
    c->sim->c = c;
    c->end_sim = oct_conversion_end_sim;
    pthread_mutex_init(&c->sim->lock, NULL);
    const oct_status s = open_core(c->sim, err);
    if (s != OCT_OK)
        oct_conversion_end_sim(c);
    return s;
}

oct_status oct_conversion_sim(oct_conversion *c, oct_sim_size size, int half, oct_sim **sim, oct_err *err)
{
    const int kept = c->o.whole ? 0 : half; /* if samples are not divided, both halves are the same */
    OCT_TRY(need_core(c, err));
    OCT_TRY(follow(c->sim, err));
    OCT_TRY(oct_sim_need_half(c->sim, kept, err));
    OCT_TRY(oct_sim_make_graph(c->sim, SIM_REAL, NULL, err)); /* this makes the taps */
    const oct_sim *all = &c->sim->half[kept];
    const size_t n = oct_sim_samples(c->sim, size);
    oct_sim *s = oct_arena_calloc(c->sim->arena, 1, sizeof *s);
    if (!s || !(s->sample = oct_arena_calloc(c->sim->arena, all->n_samples + 1, sizeof *s->sample)))
        return oct_nomem(err);
    s->core = c->sim;
    s->n_samples = n < all->n_samples ? n : all->n_samples;
    for (size_t i = 0; i < s->n_samples; i++) /* spread over the samples that are kept */
        s->sample[i] = all->sample[i * all->n_samples / s->n_samples];
    *sim = s;
    return OCT_OK;
}
