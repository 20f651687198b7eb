/* Measures the cost of a conversion: runs the prepared float graph and the quantized one over samples in our own
 * runtime.
 *
 * Ranges fit the samples that they were found on, and so do choices that were measured. On these samples the model
 * looks better than it is. So some samples are kept aside to judge the result. */
#include "quant/convert/convert_int.h"

#include "eval/metrics/metric.h"
#include "quant/job/annotate.h"
#include "runtime/runnable.h"

#include <math.h>
#include <string.h>

#define TIMING_SECONDS 0.08
#define CLOSE_DB 30 /* with more, outputs are close to those of the float model, whatever they are on other samples */
#define MUCH_BETTER_DB 3 /* samples differ by less */
#define SUSPICIOUS 4     /* times faster than float: more than integers gain on most CPUs */

enum {
    KEPT_BYTES = 32 << 20, /* of outputs of the float model */
    LEAST_SEEN = 16        /* samples that calibrated, for a comparison with those that judge */
};

/* Without a name, the first one. It counts also if it has no value. */
static const oct_eval_score *find_score(const oct_eval_result *r, const char *metric)
{
    for (size_t i = 0; i < r->n_scores; i++)
        if (!metric || strcmp(r->models[1].scores[i].metric->name, metric) == 0)
            return &r->models[1].scores[i];
    return NULL;
}

const oct_eval_score *oct_conversion_score_of(const oct_conversion *c, const oct_eval_result *r)
{
    const oct_eval_score *s = find_score(r, c->o.metric);
    return s && !isnan(s->drop) ? s : NULL;
}

const oct_eval_score *oct_conversion_score(const oct_conversion *c)
{
    return c->verdict ? oct_conversion_score_of(c, c->verdict) : NULL;
}

oct_eval_score oct_conversion_goal_score(const oct_conversion *c, size_t goal)
{
    const char *metric = c->o.goals[goal].metric;
    return *find_score(c->verdict, metric ? metric : c->o.metric);
}

oct_status oct_goal_scores(const oct_conversion *c, const oct_eval_result *r, oct_eval_score *score, oct_err *err)
{
    for (size_t i = 0; i < c->o.n_goals; i++) {
        const oct_goal *g = &c->o.goals[i];
        const oct_eval_score *x = find_score(r, g->metric ? g->metric : c->o.metric);
        if (!x) {
            oct_fail(err, OCT_EUSAGE, "%s: no metric applies to these samples", g->option);
            oct_hint(err,
                     g->metric ? "the metric '%s' does not fit the outputs (--decode) or the truth (--labels, --truth)"
                               : "give --metric, and --labels where the data carries none",
                     g->metric);
            return OCT_EUSAGE;
        }
        OCT_TRY(oct_drop_limit_check(&g->limit, x->metric, err));
        score[i] = *x;
    }
    return OCT_OK;
}

oct_status oct_conversion_hold_goals(oct_conversion *c, oct_err *err)
{
    oct_eval_score score[OCT_GOALS_MAX];
    OCT_TRY(oct_goal_scores(c, c->verdict, score, err));
    for (size_t i = 0; i < c->o.n_goals; i++)
        c->missed |= oct_eval_judge(&score[i], &c->o.goals[i].limit).missed;
    return OCT_OK;
}

/* The metrics of the goals. The metric of a command is identified by its command. */
static oct_status list_metrics(const oct_conversion *c, const oct_metric **metric, size_t *n, oct_err *err)
{
    for (size_t i = *n = 0; i < c->o.n_goals; i++)
        if (c->o.goals[i].metric && !(c->o.command && strcmp(c->o.goals[i].metric, OCT_COMMAND_METRIC) == 0))
            OCT_TRY(oct_metric_find(c->o.goals[i].metric, &metric[(*n)++], err));
    return OCT_OK;
}

oct_status oct_conversion_kept(oct_conversion *c, const oct_graph *fl, oct_kept_outputs **kept, oct_err *err)
{
    *kept = NULL;
    if (fl != (c->fl ? c->fl : c->m->graph)) /* c->fl is a copy, since the model itself becomes the result */
        return OCT_OK;
    if (!c->kept && !(c->kept = oct_kept_create(KEPT_BYTES)))
        return oct_nomem(err);
    *kept = c->kept;
    return OCT_OK;
}

oct_eval_model oct_conversion_result(const oct_conversion *c, const char *name, const oct_graph *g)
{
    return (oct_eval_model){ .name = name, .graph = g, .twin = c->o.twin, .unwritten = true };
}

oct_status oct_conversion_compare(oct_conversion *c, const oct_eval_model models[2], bool timed, oct_eval_result **r,
                                  oct_err *err)
{
    const oct_metric *counts = NULL, *needed[OCT_GOALS_MAX];
    oct_pool *pool = oct_pool_create(c->o.job.threads);
    if (!pool)
        return oct_pool_fail(c->o.job.threads, err);
    oct_pool_relax(pool);
    const bool times = timed && !c->o.twin; /* a twin's times are not the device's */
    oct_eval_options o = { .latency_seconds = times ? TIMING_SECONDS : 0,
                           .time_samples = times,
                           .pool = pool,
                           .layer_samples = timed ? c->o.layer_samples : 0,
                           .profile = times && c->o.layer_samples,
                           .rule = c->o.rule,
                           .truth = c->o.truth,
                           .command = c->o.command,
                           .progress = c->o.listener.progress,
                           .progress_arg = c->o.listener.arg };
    oct_status st = oct_conversion_kept(c, models[0].graph, &o.kept, err);
    if (st == OCT_OK)
        st = list_metrics(c, needed, &o.n_needed, err);
    o.needed = needed;
    if (st == OCT_OK && c->o.metric)
        st = oct_metric_find(c->o.metric, &counts, err);
    o.n_metrics = counts != NULL;
    o.metrics = counts ? &counts : NULL;
    if (st == OCT_OK)
        st = oct_eval(models, 2, c->src, &o, r, err);
    oct_pool_destroy(pool);
    return st;
}

/* Whether the metrics that are asked for are defined for the outputs, as far as one sample tells: before the work that
 * depends on it, not after. */
oct_status oct_conversion_check_metrics(oct_conversion *c, oct_err *err)
{
    const oct_metric *metric[OCT_GOALS_MAX + 1];
    oct_eval_result *r = NULL;
    oct_err why = OCT_ERR_INIT;
    size_t n;
    if ((!c->o.metric && !c->o.n_goals) || c->o.command || oct_conversion_in_pairs(c) ||
        oct_conversion_unjudged(c, c->m->graph))
        return OCT_OK;
    OCT_TRY(list_metrics(c, metric, &n, err));
    if (c->o.metric)
        OCT_TRY(oct_metric_find(c->o.metric, &metric[n++], err));
    OCT_TRY(oct_source_pick(c->src, &(oct_pick){ .most = 1 }, err));
    oct_pool *pool = oct_pool_create(1);
    if (!pool)
        return oct_pool_fail(1, err);
    oct_eval_options o = {
        .pool = pool, .metrics = metric, .n_metrics = n, .only_float = true, .rule = c->o.rule, .truth = c->o.truth
    };
    const oct_eval_model model = { c->o.name, c->m->graph, c->size_before };
    oct_status s = oct_conversion_kept(c, c->m->graph, &o.kept, &why);
    if (s == OCT_OK)
        s = oct_eval(&model, 1, c->src, &o, &r, &why);
    oct_pool_destroy(pool);
    oct_eval_free(r);
    if (s != OCT_EUSAGE) /* what else fails will fail where it counts */
        return oct_source_pick(c->src, &(oct_pick){ 0 }, err);
    *err = why;
    return s;
}

/* A float model may be slow because of denormal numbers. Then the quantized one deserves no credit for being faster. */
static oct_status look_for_denormals(oct_conversion *c, bool aside, oct_err *err)
{
    if (!(c->verdict->models[1].speed.median > SUSPICIOUS) && oct_denormal_weights(c->fl) == 0)
        return OCT_OK;
    OCT_TRY(oct_source_pick(c->src, &(oct_pick){ .aside = aside }, err));
    c->looked_for_denormals = true;
    return oct_denormals_find(c->fl, c->src, &c->denormals, err);
}

/* Whether a model is written though it could not be compared with the float model: where nothing was asked about the
 * outcome, and the outputs are at fault. */
static bool may_go_unjudged(const oct_conversion *c, oct_status s)
{
    return (s == OCT_EMALFORMED || s == OCT_EUNSUPPORTED) && !c->o.n_goals && !c->o.metric && !c->o.command &&
           !c->o.rule && !c->o.truth && !oct_source_has_labels(c->src);
}

oct_status oct_conversion_errors(oct_conversion *c, const oct_eval_model models[2], const oct_pick *pick,
                                 oct_eval_result **r, oct_err *err)
{
    oct_pool *pool = oct_pool_create(c->o.job.threads);
    if (!pool)
        return oct_pool_fail(c->o.job.threads, err);
    oct_pool_relax(pool);
    oct_eval_options o = { .pool = pool, .progress = c->o.listener.progress, .progress_arg = c->o.listener.arg };
    oct_status s = oct_conversion_kept(c, models[0].graph, &o.kept, err);
    if (s == OCT_OK)
        s = oct_source_pick(c->src, pick, err);
    if (s == OCT_OK)
        s = oct_eval(models, 2, c->src, &o, r, err);
    oct_pool_destroy(pool);
    return s;
}

oct_status oct_conversion_at_outputs(oct_conversion *c, double *sqnr, oct_err *err)
{
    oct_graph *g;
    oct_eval_result *r = NULL;
    oct_err why = OCT_ERR_INIT;
    *sqnr = NAN;
    if (oct_conversion_unjudged(c, c->m->graph))
        return OCT_OK;
    OCT_TRY(oct_conversion_settle(c, err));
    OCT_TRY(oct_quantized_copy(c->job, &g, err));
    oct_pick pick = oct_pick_judging(c, c->m->graph);
    pick.unsummed = true;
    const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, oct_conversion_result(c, c->o.name, g) };
    const oct_status s = oct_conversion_errors(c, models, &pick, &r, &why);
    if (s == OCT_OK)
        *sqnr = r->models[1].sqnr_db;
    oct_eval_free(r);
    oct_graph_destroy(g);
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED) { /* these are said of the result */
        *err = why;
        return s;
    }
    return oct_source_pick(c->src, &(oct_pick){ 0 }, err);
}

/* Ranges and choices may fit the samples that made them far better than others. About as many of them as judged tell
 * this, and only where much is lost does it matter. */
static oct_status compare_seen(oct_conversion *c, const oct_eval_model models[2], double sqnr, int64_t samples,
                               double *gap, oct_err *err)
{
    if (c->judged != OCT_JUDGED_OTHERS || c->o.synthetic || !(sqnr < CLOSE_DB) || samples < 1)
        return OCT_OK;
    const oct_pick pick = { .most = samples > LEAST_SEEN ? samples : LEAST_SEEN };
    oct_eval_result *r = NULL;
    const oct_status s = oct_conversion_errors(c, models, &pick, &r, err);
    if (s == OCT_OK && r->models[1].sqnr_db > sqnr + MUCH_BETTER_DB)
        *gap = r->models[1].sqnr_db - sqnr;
    oct_eval_free(r);
    return s;
}

oct_status oct_conversion_compare_result(oct_conversion *c, const char *output, oct_pick *judged, oct_err *err)
{
    const char *why = c->src ? oct_conversion_unjudged(c, c->fl) : NULL;
    if (!c->src || why) {
        c->unjudged = why;
        return c->o.n_goals ? oct_fail(err, OCT_EUNSUPPORTED, "%s: %s", c->o.goals[0].option, why) : OCT_OK;
    }
    oct_pick pick = oct_pick_judging(c, c->fl);
    if (c->o.n_goals)
        pick = (oct_pick){ .aside = pick.aside, .i = c->divided, .n = c->divided ? 2 : 0 };
    OCT_TRY(oct_source_pick(c->src, &pick, err));
    const oct_eval_model models[2] = { { c->o.name, c->fl, c->size_before },
                                       oct_conversion_result(c, output, c->m->graph) };
    oct_err failed = OCT_ERR_INIT;
    const oct_status st = oct_conversion_compare(c, models, true, &c->verdict, &failed);
    if (st != OCT_OK && may_go_unjudged(c, st)) {
        oct_conversion_say(c, OCT_NOTE_WARNING, "what it costs could not be measured: %s", failed.text);
        return (c->unjudged = oct_arena_strdup(c->arena, failed.text)) ? OCT_OK : oct_nomem(err);
    }
    if (st != OCT_OK)
        *err = failed;
    OCT_TRY(st);
    c->sqnr = c->verdict->models[1].sqnr_db;
    if (c->o.listener.taken)
        c->o.listener.taken(c->o.listener.arg, c->src);
    OCT_TRY(look_for_denormals(c, pick.aside, err));
    *judged = pick;
    return compare_seen(c, models, c->sqnr, c->verdict->samples, &c->seen_gap, err);
}
