/* Timing. All models run in turn on the same sample, so that disturbances of the machine affect all of them equally. */
#include "eval/run/eval_int.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

enum { WARM_UP = 3, FEWEST_PAIRS = 5 };
static const double WIDEST = 1.5; /* if the quartiles of pairs differ by more than this factor, nothing is concluded */

static oct_status run_once(ev_timed *t, const oct_array *arrays, double *seconds, oct_err *err)
{
    const oct_status s = oct_engine_run(t->engine, arrays, seconds, err);
    if (s != OCT_OK)
        oct_within(err, "%s", t->name);
    return s;
}

static oct_status run_rounds(ev_timed *t, size_t n, const oct_array *arrays, int least, double least_seconds,
                             oct_progress_fn progress, void *arg, oct_err *err)
{
    const double begin = oct_now();
    for (int i = -WARM_UP; i < EV_MOST_RUNS && (i < least || oct_now() - begin < least_seconds); i++) {
        double seconds;
        for (size_t k = 0; k < n; k++) {
            OCT_TRY(run_once(&t[k], arrays, &seconds, err));
            if (i >= 0)
                t[k].seconds[t[k].n++] = seconds;
        }
        if (progress && i >= 0)
            progress(arg, "timing", i + 1, 0);
    }
    return OCT_OK;
}

oct_status ev_time_rounds(ev_timed *t, size_t n, const oct_array *arrays, int least, double seconds, oct_err *err)
{
    return run_rounds(t, n, arrays, least, seconds, NULL, NULL, err);
}

oct_eval_latency ev_latency_of(ev_timed *t, int64_t per_run)
{
    const oct_quartiles q = oct_quartiles_of(t->seconds, t->n);
    const double each = (double)(per_run > 0 ? per_run : 1);
    return (oct_eval_latency){ q.median / each, q.q1 / each, q.q3 / each, (int)t->n };
}

/* Whether a step belongs to a layer that an earlier plan for other shapes already had. */
static bool is_known_layer(const oct_plan *p, size_t step, const char *name)
{
    for (size_t i = 0; i < step && *name; i++) {
        const oct_step_info s = oct_plan_step(p, i);
        if (s.weighted && strcmp(s.name, name) == 0)
            return true;
    }
    return false;
}

/* Takes figures from the plan for one sample, after it has run. Models that run in stages are planned during the run.
 * If they are profiled, they also note what ran outside plans. */
static oct_status describe_plan(const ev_timed *t, const oct_array *arrays, oct_eval_model_result *r, oct_err *err)
{
    oct_plan *p;
    if (!t->engine->here)
        return OCT_OK;
    OCT_TRY(oct_runner_plan(t->engine->here, arrays, &p, err));
    oct_plan_profile(p, true);
    OCT_TRY(oct_runner_run(t->engine->here, arrays, &p, err));
    oct_plan_profile(p, false);
    oct_plan_memory m = oct_plan_memory_of(p);
    r->peak_bytes = (uint64_t)m.arena + m.weights;
    r->arena_bytes = m.arena;
    r->live_bytes = m.live;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info s = oct_plan_step(p, i);
        if (!s.weighted || is_known_layer(p, i, s.name))
            continue;
        r->weighted_steps++;
        r->integer_steps += strcmp(s.scheme, "int8") == 0;
        if (s.bits > 0 && s.bits <= OCT_MOST_BLOCK_BITS)
            r->block_steps[s.bits]++;
    }
    return OCT_OK;
}

oct_status ev_compare_pairs(const ev_timed *reference, const ev_timed *t, oct_eval_speed *s, oct_err *err)
{
    const size_t n = reference->n < t->n ? reference->n : t->n;
    double *ratio = oct_calloc(n + 1, sizeof *ratio);
    if (!ratio)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        ratio[i] = reference->seconds[i] / t->seconds[i];
    if (n) {
        oct_quartiles q = oct_quartiles_of(ratio, n);
        *s = (oct_eval_speed){ q.median, q.q1, q.q3, (int)n };
    }
    oct_free(ratio);
    return OCT_OK;
}

oct_speed_verdict oct_eval_speed_judge(const oct_eval_speed *s)
{
    if (s->runs < FEWEST_PAIRS || !(s->q1 > 0) || !(s->q3 <= s->q1 * WIDEST))
        return OCT_SPEED_UNKNOWN;
    return s->q1 > 1 ? OCT_SPEED_FASTER : s->q3 < 1 ? OCT_SPEED_SLOWER : OCT_SPEED_SAME;
}

oct_status ev_time_models(ev_timed *t, size_t n, const oct_array *arrays, int64_t per_run, const oct_eval_options *o,
                          oct_eval_result *r, oct_err *err)
{
    for (size_t k = 0; k < n; k++) {
        oct_status s = describe_plan(&t[k], arrays, &r->models[k], err);
        if (s != OCT_OK) {
            oct_within(err, "%s", t[k].name);
            return s;
        }
    }
    const int least = o->latency_runs <= 0             ? EV_LEAST_RUNS
                      : o->latency_runs < EV_MOST_RUNS ? o->latency_runs
                                                       : EV_MOST_RUNS;
    if (o->latency_seconds > 0 && t[0].n == 0)
        OCT_TRY(run_rounds(t, n, arrays, least, o->latency_seconds, o->progress, o->progress_arg, err));
    for (size_t k = 1; k < n; k++) /* must precede the sorting of the times */
        OCT_TRY(ev_compare_pairs(&t[0], &t[k], &r->models[k].speed, err));
    for (size_t k = 0; k < n && t[k].n > 0; k++)
        r->models[k].latency = ev_latency_of(&t[k], per_run);
    return OCT_OK;
}
