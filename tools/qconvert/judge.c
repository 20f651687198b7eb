/* What the conversion costs, measured: the prepared float graph and the quantized one over samples in our own runtime. */
#include "qconvert/qconvert.h"

#include "eval/metric.h"
#include "quant/runnable.h"

#include <math.h>
#include <string.h>

/* A few samples are enough for a report; a goal is judged on all. */
enum { GLANCE = 8 };
#define TIMING_SECONDS 0.08

/* Whether the float model runs here whole; where it does not, the quantized one cannot be compared with it. */
static bool comparable(const session *s)
{
    return s->src && s->fl && oct_runnable_whole(s->fl);
}

static oct_status open_samples(const session *s, oct_source **src, oct_err *err)
{
    tool_data d = s->a->data;
    if (!s->a->max_drop) {
        int64_t n = oct_source_count(s->src);
        d.shard_i = 0;
        d.shard_n = n > GLANCE ? n / GLANCE : 1;
    }
    return tool_open_data(s->fl, &d, 0, src, err);
}

/* The score that counts: the metric asked for, else the first that compares with the float model; NULL: none. */
const oct_eval_score *session_score(const session *s)
{
    if (!s->verdict)
        return NULL;
    const oct_eval_model_result *q = &s->verdict->models[1];
    for (size_t i = 0; i < s->verdict->n_scores; i++)
        if (!isnan(q->scores[i].drop) && (!s->a->metric || strcmp(q->scores[i].metric->name, s->a->metric) == 0))
            return &q->scores[i];
    return NULL;
}

static oct_status against_goal(session *s, oct_err *err)
{
    const oct_eval_score *x = session_score(s);
    if (!x) {
        oct_fail(err, OCT_EUSAGE, "--max-drop: no metric applies to these samples");
        oct_hint(err, "give --metric, and --labels where the data carries none");
        return OCT_EUSAGE;
    }
    OCT_TRY(oct_drop_limit_check(&s->limit, x->metric, err));
    s->missed = oct_eval_judge(x, &s->limit).missed;
    return OCT_OK;
}

static oct_status measure(session *s, const oct_graph *q, oct_source *src, oct_err *err)
{
    const oct_eval_model models[2] = { { s->a->model, s->fl, s->size_before }, { s->output, q, 0 } };
    const oct_metric *metric = NULL;
    oct_pool *side = oct_pool_create((int)s->cli->threads);
    if (!side)
        return oct_pool_fail((int)s->cli->threads, err);
    oct_pool_relax(side);
    /* On one thread: few samples, and a ratio that does not depend on what else the machine does. */
    oct_eval_options o = { .latency_seconds = TIMING_SECONDS, .latency_runs = 3, .time_samples = true,
                          .side = side, .progress = oct_progress_report, .progress_arg = &s->cli->progress };
    oct_status st = s->a->metric ? oct_metric_find(s->a->metric, &metric, err) : OCT_OK;
    if (metric) {
        o.metrics = &metric;
        o.n_metrics = 1;
    }
    if (st == OCT_OK)
        st = oct_eval(models, 2, src, &o, &s->verdict, err);
    if (st == OCT_OK)
        s->sqnr = s->verdict->models[1].sqnr_db;
    oct_pool_destroy(side);
    return st;
}

oct_status session_judge(session *s, const oct_graph *q, oct_err *err)
{
    oct_err again = OCT_ERR_INIT;
    bool once = !s->src || oct_source_reset(s->src, &again) != OCT_OK;
    if (once || !comparable(s)) {
        if (!s->a->max_drop)
            return OCT_OK;
        return oct_fail(err, OCT_EUNSUPPORTED, "--max-drop: %s",
                        once ? "the samples can be read once only" : "the model has an operator that cannot be run here");
    }
    oct_source *src = NULL;
    oct_status st = open_samples(s, &src, err);
    if (st == OCT_OK)
        st = measure(s, q, src, err);
    oct_source_close(src);
    return st == OCT_OK && s->a->max_drop ? against_goal(s, err) : st;
}
