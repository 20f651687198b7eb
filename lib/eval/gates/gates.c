/* Compares measurements with gates. */
#include "eval/gates/gates.h"

#include <math.h>
#include <string.h>

enum { FEWEST_RUNS = 9 };
/* If the quartiles of times differ by more than this factor, the machine was busy. oct_eval_speed_judge uses the same
 * factor for ratios. */
static const double WIDEST = 1.5;

const char *oct_gates_timed(const oct_gates *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == OCT_GATE_SPEEDUP || g->v[i].kind == OCT_GATE_LATENCY)
            return oct_gate_name(g->v[i].kind);
    return NULL;
}

oct_status oct_gates_metrics(const oct_gates *g, const oct_metric ***metrics, size_t *n, oct_err *err)
{
    *n = 0;
    *metrics = NULL;
    if (!g->n)
        return OCT_OK;
    if (!(*metrics = oct_arena_calloc(g->arena, g->n, sizeof **metrics)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].metric)
            (*metrics)[(*n)++] = g->v[i].metric;
    return OCT_OK;
}

/* ---- gates of metrics ---- */

/* A gate without a metric is of the first one. It stays with it if that has no value: then it is missed. */
static const oct_eval_score *score_of(const oct_eval_result *r, size_t k, const oct_gate *g)
{
    const oct_eval_model_result *m = &r->models[k];
    for (size_t i = 0; i < r->n_scores; i++)
        if (!g->metric || strcmp(m->scores[i].metric->name, g->metric->name) ==
                              0) /* one name may have several records (oct_metric_as) */
            return &m->scores[i];
    return NULL;
}

const oct_drop_limit *oct_gates_main_limit(const oct_gates *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == OCT_GATE_DROP && !g->v[i].metric && !g->v[i].command)
            return &g->v[i].limit;
    return NULL;
}

static oct_status judge_metric(oct_gate_result *x, const oct_eval_result *r, oct_err *err)
{
    const oct_eval_score *s = x->score = score_of(r, x->model, x->gate);
    if (!s) {
        oct_fail(err, OCT_EUSAGE, "no metric is computed here");
        oct_hint(err, "--max-drop needs a metric such as top1, mse, agreement or cosine");
        return OCT_EUSAGE;
    }
    if (x->gate->kind == OCT_GATE_SQNR) {
        x->estimate = s->value;
        x->limit = x->gate->value;
        x->met = s->value >= x->limit;
        return OCT_OK;
    }
    OCT_TRY(oct_drop_limit_check(&x->gate->limit, s->metric, err));
    const oct_eval_gate j = oct_eval_judge(s, &x->gate->limit);
    const bool share = x->gate->kind == OCT_GATE_AGREEMENT;
    x->estimate = share ? s->value : s->drop;
    x->limit = share ? 1 - j.allowed : j.allowed;
    x->lo = share ? fmax(1 - s->hi, 0) : s->lo;
    x->hi = share ? fmin(1 - s->lo, 1) : s->hi;
    x->method = s->method;
    x->met = !j.missed;
    x->unsure = j.unsure;
    x->samples_needed = j.samples;
    return OCT_OK;
}

/* ---- other gates ---- */

static void judge_speedup(oct_gate_result *x, const oct_eval_speed *s)
{
    x->estimate = s->runs ? s->median : NAN;
    x->limit = x->gate->value;
    x->met = x->estimate >= x->limit;
    x->unsure = oct_eval_speed_judge(s) == OCT_SPEED_UNKNOWN || (s->q1 < x->limit && x->limit < s->q3);
    if (s->runs) {
        x->lo = s->q1;
        x->hi = s->q3;
        x->method = "quartiles of pairs of runs";
    }
}

static void judge_latency(oct_gate_result *x, const oct_eval_latency *l)
{
    x->estimate = l->runs ? l->median * 1e3 : NAN;
    x->limit = x->gate->value;
    x->met = x->estimate <= x->limit;
    x->unsure = l->runs < FEWEST_RUNS || !(l->q1 > 0) || !(l->q3 <= l->q1 * WIDEST);
    if (l->runs) {
        x->lo = l->q1 * 1e3;
        x->hi = l->q3 * 1e3;
        x->method = "quartiles of runs";
        x->unsure |= x->lo < x->limit && x->limit < x->hi;
    }
}

static void judge_bytes(oct_gate_result *x, uint64_t bytes, uint64_t reference)
{
    x->estimate = (double)bytes;
    x->limit = x->gate->share > 0 ? floor(x->gate->share * (double)reference) : x->gate->value;
    x->met = x->estimate <= x->limit;
}

static oct_status judge(oct_gate_result *x, const oct_eval_result *r, oct_err *err)
{
    const oct_eval_model_result *m = &r->models[x->model], *f = &r->models[0];
    switch (x->gate->kind) {
    case OCT_GATE_SPEEDUP: judge_speedup(x, &m->speed); return OCT_OK;
    case OCT_GATE_LATENCY: judge_latency(x, &m->latency); return OCT_OK;
    case OCT_GATE_SIZE: judge_bytes(x, m->size_bytes, f->size_bytes); return OCT_OK;
    case OCT_GATE_MEMORY: judge_bytes(x, m->peak_bytes, f->peak_bytes); return OCT_OK;
    default: return judge_metric(x, r, err);
    }
}

oct_status oct_gates_judge(const oct_gates *g, oct_eval_result *r, const oct_gate_result **result, size_t *n,
                           oct_err *err)
{
    *result = NULL;
    *n = 0;
    if (!g->n)
        return OCT_OK;
    if (r->n_models < 2)
        return oct_fail(err, OCT_EUSAGE, "--%s judges quantized models, and none is given",
                        oct_gate_name(g->v[0].kind));
    size_t count;
    if (!oct_mul_size(g->n, r->n_models - 1, &count))
        return oct_nomem(err);
    oct_gate_result *x = oct_arena_calloc(r->arena, count, sizeof *x);
    if (!x)
        return oct_nomem(err);
    for (size_t k = 1; k < r->n_models; k++)
        for (size_t i = 0; i < g->n; i++) {
            x[*n] = (oct_gate_result){ .gate = &g->v[i], .model = k, .lo = NAN, .hi = NAN };
            OCT_TRY(judge(&x[(*n)++], r, err));
        }
    *result = x;
    return OCT_OK;
}
