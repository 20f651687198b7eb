/* What the conversion costs, measured: the prepared float graph and the quantized one over samples in our own runtime.
 *
 * Ranges are fitted to the samples they come from, and so are the choices that are measured. On these the model looks better than it is.
 * So some samples are kept from all that, and judge. */
#include "qconvert/qconvert.h"

#include "eval/metric.h"
#include "quant/runnable.h"

#include <math.h>
#include <string.h>

#define TIMING_SECONDS 0.08
#define SUSPICIOUS 4 /* times faster than float: more than integers give on most CPUs */

/* Whether the float model runs here whole; where it does not, the quantized one cannot be compared with it. */
static const char *no_comparison(const session *s, const oct_graph *fl)
{
    if (oct_source_is_once(s->src))
        return "the samples can be read once only (--samples N would keep some)";
    return oct_runnable_whole(fl) ? NULL : "the model has an operator that cannot be run here";
}

void session_keep_aside(session *s, bool calibrates)
{
    const bool keep = calibrates && !no_comparison(s, s->m->graph);
    oct_source_hold(s->src, keep);
    tool_say_samples(s->cli, s->src);
    const oct_source_choice c = oct_source_chosen(s->src);
    if (keep && c.aside > 0 && (!c.asked || c.chosen < c.asked))
        oct_cli_note(s->cli, 0, "samples: %lld of %lld are kept aside, to judge the result", (long long)c.aside, (long long)c.total);
    s->judged = !calibrates ? JUDGED_ANY : c.aside > 0 ? JUDGED_OTHERS : JUDGED_SAME;
}

/* Samples that judge where no goal is set: enough for a statement, fewer for large models. A count, not a time: what a report says
 * must not depend on how busy the machine is. */
static int64_t enough(const oct_graph *g)
{
    const int64_t n = 100000000000 / oct_graph_macs(g);
    return n < 16 ? 16 : n > 64 ? 64 : n;
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

static oct_status measure(session *s, const oct_graph *q, oct_err *err)
{
    const oct_eval_model models[2] = { { s->a->model, s->fl, s->size_before }, { s->output, q, 0 } };
    const oct_metric *metric = NULL;
    oct_pool *side = oct_pool_create((int)s->cli->threads);
    if (!side)
        return oct_pool_fail((int)s->cli->threads, err);
    oct_pool_relax(side);
    /* On one thread: few samples, and a ratio that does not depend on what else the machine does. */
    oct_eval_options o = { .latency_seconds = TIMING_SECONDS, .time_samples = true, .side = side,
                           .progress = oct_progress_report, .progress_arg = &s->cli->progress };
    oct_status st = s->a->metric ? oct_metric_find(s->a->metric, &metric, err) : OCT_OK;
    if (metric) {
        o.metrics = &metric;
        o.n_metrics = 1;
    }
    if (st == OCT_OK)
        st = oct_eval(models, 2, s->src, &o, &s->verdict, err);
    if (st == OCT_OK)
        s->sqnr = s->verdict->models[1].sqnr_db;
    oct_pool_destroy(side);
    return st;
}

/* A float model may be slow because of denormal numbers; then its slowness is no merit of the quantized one. */
static oct_status look_for_denormals(session *s, bool aside, oct_err *err)
{
    if (!(s->verdict->models[1].speed.median > SUSPICIOUS) && oct_denormal_weights(s->fl) == 0)
        return OCT_OK;
    OCT_TRY(oct_source_pick(s->src, &(oct_pick){ .aside = aside }, err));
    s->looked_for_denormals = true;
    return oct_denormals_find(s->fl, s->src, &s->denormals, err);
}

oct_status session_judge(session *s, const oct_graph *q, oct_err *err)
{
    const char *why = s->src ? no_comparison(s, s->fl) : NULL;
    if (!s->src || why) {
        s->unjudged = why;
        return s->a->max_drop ? oct_fail(err, OCT_EUNSUPPORTED, "--max-drop: %s", why) : OCT_OK;
    }
    const oct_pick pick = { .aside = s->judged == JUDGED_OTHERS, .most = s->a->max_drop ? 0 : enough(s->fl) };
    OCT_TRY(oct_source_pick(s->src, &pick, err));
    OCT_TRY(measure(s, q, err));
    tool_say_bad(s->cli, s->src);
    OCT_TRY(look_for_denormals(s, pick.aside, err));
    return s->a->max_drop ? against_goal(s, err) : OCT_OK;
}
