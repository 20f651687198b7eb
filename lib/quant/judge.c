/* What the conversion costs, measured: the prepared float graph and the quantized one over samples in our own runtime.
 *
 * Ranges are fitted to the samples they come from, and so are the choices that are measured. On these the model looks better than it is.
 * So some samples are kept from all that, and judge. */
#include "quant/convert_int.h"

#include "eval/metric.h"
#include "runtime/runnable.h"

#include <math.h>
#include <string.h>

#define TIMING_SECONDS 0.08
enum { POOR_DB = 12 }; /* of the outputs: noise is a quarter of them in amplitude */
#define SUSPICIOUS 4 /* times faster than float: more than integers give on most CPUs */

/* Whether the float model runs here whole; where it does not, the quantized one cannot be compared with it. */
static const char *no_comparison(const oct_conversion *c, const oct_graph *fl)
{
    if (oct_source_is_once(c->src))
        return "the samples can be read once only (--samples N would keep some)";
    return oct_runnable_whole(fl) ? NULL : "the model has an operator that cannot be run here";
}

void oct_conversion_keep_aside(oct_conversion *c, bool calibrates)
{
    const bool keep = calibrates && !no_comparison(c, c->m->graph);
    oct_source_hold(c->src, keep);
    if (c->o.listener.chosen)
        c->o.listener.chosen(c->o.listener.arg, c->src);
    const oct_source_choice x = oct_source_chosen(c->src);
    if (keep && x.aside > 0 && (!x.asked || x.chosen < x.asked))
        oct_conversion_say(c, 0, "samples: %lld of %lld are kept aside, to judge the result", (long long)x.aside, (long long)x.total);
    c->judged = !calibrates ? OCT_JUDGED_ANY : x.aside > 0 ? OCT_JUDGED_OTHERS : OCT_JUDGED_SAME;
}

/* Samples that judge where no goal is set: enough for a statement, fewer for large models. A count, not a time: what a report says
 * must not depend on how busy the machine is. */
static int64_t enough(const oct_graph *g)
{
    const int64_t n = 100000000000 / oct_graph_macs(g);
    return n < 16 ? 16 : n > 64 ? 64 : n;
}

const oct_eval_score *oct_conversion_score(const oct_conversion *c)
{
    if (!c->verdict)
        return NULL;
    const oct_eval_model_result *q = &c->verdict->models[1];
    for (size_t i = 0; i < c->verdict->n_scores; i++)
        if (!isnan(q->scores[i].drop) && (!c->o.metric || strcmp(q->scores[i].metric->name, c->o.metric) == 0))
            return &q->scores[i];
    return NULL;
}

static oct_status against_goal(oct_conversion *c, oct_err *err)
{
    const oct_eval_score *x = oct_conversion_score(c);
    if (!x) {
        oct_fail(err, OCT_EUSAGE, "--max-drop: no metric applies to these samples");
        oct_hint(err, "give --metric, and --labels where the data carries none");
        return OCT_EUSAGE;
    }
    OCT_TRY(oct_drop_limit_check(c->o.limit, x->metric, err));
    c->missed = oct_eval_judge(x, c->o.limit).missed;
    return OCT_OK;
}

static oct_status measure(oct_conversion *c, const char *output, oct_err *err)
{
    const oct_eval_model models[2] = { { c->o.name, c->fl, c->size_before }, { output, c->m->graph, 0 } };
    const oct_metric *metric = NULL;
    oct_pool *side = oct_pool_create(c->o.job.threads);
    if (!side)
        return oct_pool_fail(c->o.job.threads, err);
    oct_pool_relax(side);
    /* On one thread: few samples, and a ratio that does not depend on what else the machine does. */
    oct_eval_options o = { .latency_seconds = TIMING_SECONDS, .time_samples = true, .side = side,
                           .progress = c->o.listener.progress, .progress_arg = c->o.listener.arg };
    oct_status st = c->o.metric ? oct_metric_find(c->o.metric, &metric, err) : OCT_OK;
    if (metric) {
        o.metrics = &metric;
        o.n_metrics = 1;
    }
    if (st == OCT_OK)
        st = oct_eval(models, 2, c->src, &o, &c->verdict, err);
    if (st == OCT_OK)
        c->sqnr = c->verdict->models[1].sqnr_db;
    oct_pool_destroy(side);
    return st;
}

/* A float model may be slow because of denormal numbers; then its slowness is no merit of the quantized one. */
static oct_status look_for_denormals(oct_conversion *c, bool aside, oct_err *err)
{
    if (!(c->verdict->models[1].speed.median > SUSPICIOUS) && oct_denormal_weights(c->fl) == 0)
        return OCT_OK;
    OCT_TRY(oct_source_pick(c->src, &(oct_pick){ .aside = aside }, err));
    c->looked_for_denormals = true;
    return oct_denormals_find(c->fl, c->src, &c->denormals, err);
}

/* No loss goes unsaid: a score that chance does not explain, or outputs that are hardly the float model's. */
static void warn_of_loss(oct_conversion *c)
{
    const oct_eval_score *x = oct_conversion_score(c);
    const char *hint = "qeval FLOAT QUANTIZED --data SPEC --layers shows where it arises, --policy FILE leaves layers float";
    if (x && !x->metric->relative && x->drop > 0 && !isnan(x->lo) && !x->within_noise)
        oct_conversion_say(c, OCT_NOTE_WARNING, "%s is worse than the float model's, by more than chance; %s", x->metric->name, hint);
    else if (c->sqnr < POOR_DB)
        oct_conversion_say(c, OCT_NOTE_WARNING, "output SQNR %.1f dB is below %d: little of what the float model says is left; %s", c->sqnr, POOR_DB, hint);
}

oct_status oct_conversion_judge(oct_conversion *c, const char *output, oct_err *err)
{
    const char *why = c->src ? no_comparison(c, c->fl) : NULL;
    if (!c->src || why) {
        c->unjudged = why;
        return c->o.limit ? oct_fail(err, OCT_EUNSUPPORTED, "--max-drop: %s", why) : OCT_OK;
    }
    const oct_pick pick = { .aside = c->judged == OCT_JUDGED_OTHERS, .most = c->o.limit ? 0 : enough(c->fl) };
    OCT_TRY(oct_source_pick(c->src, &pick, err));
    OCT_TRY(measure(c, output, err));
    if (c->o.listener.taken)
        c->o.listener.taken(c->o.listener.arg, c->src);
    OCT_TRY(look_for_denormals(c, pick.aside, err));
    warn_of_loss(c);
    return c->o.limit ? against_goal(c, err) : OCT_OK;
}
