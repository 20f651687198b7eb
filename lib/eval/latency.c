/* Timing: all models in turn on the same sample, so that what disturbs the machine disturbs all of them alike. */
#include "eval/eval_int.h"

#include "base/io.h"

#include <string.h>

enum { WARM_UP = 3, LEAST = 9, MOST = 1000 };

typedef struct timed {
    oct_runner *runner;
    double *seconds;
} timed;

static oct_status run_once(const oct_eval_model *m, timed *t, const oct_array *arrays, double *seconds, oct_err *err)
{
    oct_plan *p;
    double begin = oct_now();
    oct_status s = oct_runner_run(t->runner, arrays, &p, err);
    *seconds = oct_now() - begin;
    if (s != OCT_OK)
        oct_within(err, "%s", m->name);
    return s;
}

static oct_status run_rounds(const oct_eval_model *m, size_t n, timed *t, const oct_array *arrays, const oct_eval_options *o,
                             int *rounds, oct_err *err)
{
    const int least = o->latency_runs <= 0 ? LEAST : o->latency_runs < MOST ? o->latency_runs : MOST;
    double begin = oct_now();
    for (int i = -WARM_UP; i < MOST && (i < least || oct_now() - begin < o->latency_seconds); i++) {
        double seconds;
        for (size_t k = 0; k < n; k++) {
            OCT_TRY(run_once(&m[k], &t[k], arrays, &seconds, err));
            if (i >= 0)
                t[k].seconds[i] = seconds;
        }
        *rounds = i + 1;
        if (o->progress && i >= 0)
            o->progress(o->progress_arg, "timing", i + 1, 0);
    }
    return OCT_OK;
}

/* What the plan for one sample says of itself. */
static void describe_plan(const oct_plan *p, oct_eval_model_result *r)
{
    oct_plan_memory m = oct_plan_memory_of(p);
    r->peak_bytes = (uint64_t)m.arena + m.weights;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info s = oct_plan_step(p, i);
        r->weighted_steps += s.macs > 0;
        r->integer_steps += s.macs > 0 && strcmp(s.scheme, "int8") == 0;
    }
}

enum { PROFILE_RUNS = 10 };

static oct_status profile_plan(timed *t, const oct_array *arrays, oct_arena *a, oct_eval_model_result *r, oct_err *err)
{
    oct_plan *p;
    OCT_TRY(oct_runner_plan(t->runner, arrays, &p, err));
    oct_plan_profile(p, true);
    for (int i = 0; i < PROFILE_RUNS; i++)
        OCT_TRY(oct_runner_run(t->runner, arrays, &p, err));
    oct_plan_profile(p, false);
    r->n_steps = oct_plan_n_steps(p);
    if (!(r->steps = oct_arena_calloc(a, r->n_steps + 1, sizeof *r->steps)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->n_steps; i++) {
        oct_step_info s = oct_plan_step(p, i);
        const char *name = oct_arena_strdup(a, s.name); /* the plan does not live as long */
        if (!name)
            return oct_nomem(err);
        double per_call = s.calls ? s.seconds / (double)s.calls : 0;
        r->steps[i] = (oct_eval_step){ name, oct_arena_strdup(a, s.op), s.scheme, per_call, s.macs, s.bytes };
    }
    return OCT_OK;
}

static oct_status time_all(const oct_eval_model *models, size_t n, const oct_array *arrays, int64_t per_run, timed *t,
                           const oct_eval_options *o, oct_eval_result *r, oct_err *err)
{
    for (size_t k = 0; k < n; k++) {
        oct_plan *p;
        oct_status s = oct_runner_plan(t[k].runner, arrays, &p, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", models[k].name);
            return s;
        }
        describe_plan(p, &r->models[k]);
    }
    int rounds = 0;
    if (o->latency_seconds > 0)
        OCT_TRY(run_rounds(models, n, t, arrays, o, &rounds, err));
    for (size_t k = 0; k < n && rounds > 0; k++) {
        oct_quartiles q = oct_quartiles_of(t[k].seconds, (size_t)rounds);
        double each = (double)(per_run > 0 ? per_run : 1);
        r->models[k].latency = (oct_eval_latency){ q.median / each, q.q1 / each, q.q3 / each, rounds };
    }
    for (size_t k = 0; k < n && o->profile; k++)
        OCT_TRY(profile_plan(&t[k], arrays, r->arena, &r->models[k], err));
    return OCT_OK;
}

oct_status ev_time_models(const oct_eval_model *models, size_t n, const oct_input_desc *feed, size_t n_feed,
                          const oct_array *arrays, int64_t per_run, const oct_eval_options *o, oct_eval_result *r,
                          oct_err *err)
{
    timed *t = oct_calloc(n, sizeof *t);
    oct_plan_opts opts = { .pool = o->pool };
    oct_status s = t ? OCT_OK : oct_nomem(err);
    for (size_t k = 0; k < n && s == OCT_OK; k++) {
        s = oct_runner_create(models[k].graph, &opts, feed, n_feed, &t[k].runner, err);
        if (s == OCT_OK && !(t[k].seconds = oct_calloc(MOST, sizeof(double))))
            s = oct_nomem(err);
    }
    if (s == OCT_OK)
        s = time_all(models, n, arrays, per_run, t, o, r, err);
    for (size_t k = 0; t && k < n; k++) {
        oct_runner_destroy(t[k].runner);
        oct_free(t[k].seconds);
    }
    oct_free(t);
    return s;
}
