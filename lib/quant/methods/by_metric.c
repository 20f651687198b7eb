/* Judges decisions by a metric: the quantized graph is made as it would be written, and evaluated beside the float
 * model. */
#include "quant/methods/by_metric.h"

#include "quant/convert/convert_int.h"
#include "quant/job/annotate.h"

#include <math.h>
#include <string.h>

#define MACS 2400000000.0 /* multiply-accumulates of the float model in an evaluation */
#define CLOSE_CALLS 0.1   /* share of samples whose class may change without being counted as a loss (loss.c) */
#define DIVIDED 20000000  /* multiply-accumulates of a sample: with fewer, threads would mostly wait for each other */
enum { LEAST_ASKED = 8, LEAST = 16, MOST = 64 };

/* How many samples an evaluation takes; 0: there is no time for enough. */
static int64_t samples_for(const oct_conversion *c, int64_t least_dear)
{
    const double fit = MACS / (double)oct_sample_macs(c->m->graph);
    return fit > MOST ? MOST : fit >= LEAST ? (int64_t)fit : least_dear;
}

static bool is_asked(const oct_conversion *c)
{
    return c->o.rule || c->o.truth || c->o.metric;
}

bool oct_metric_decides(const oct_conversion *c)
{
    if (!c->src || c->o.command || c->o.synthetic || c->o.whole || oct_conversion_in_pairs(c) ||
        oct_conversion_unjudged(c, c->m->graph))
        return false;
    return is_asked(c) || (oct_source_has_labels(c->src) && samples_for(c, 0) > 0);
}

/* Evaluates the graph as decided on the second half. metric NULL: the first that applies. */
static oct_status evaluate(oct_conversion *c, const oct_metric *metric, int64_t samples, oct_eval_score *score,
                           oct_err *err)
{
    oct_eval_result *r = NULL;
    oct_graph *g;
    oct_err why = OCT_ERR_INIT;
    const oct_pick pick = oct_pick_half(c, 1, samples);
    oct_kept_outputs *kept;
    *score = (oct_eval_score){ .metric = NULL };
    OCT_TRY(oct_conversion_settle(c, err));
    OCT_TRY(oct_conversion_kept(c, c->m->graph, &kept, err));
    OCT_TRY(oct_quantized_copy(c->job, &g, err));
    const int threads = oct_sample_macs(c->m->graph) < DIVIDED ? 1 : c->o.job.threads;
    oct_pool *pool = oct_pool_create(threads);
    oct_status s = pool ? oct_source_pick(c->src, &pick, err) : oct_pool_fail(threads, err);
    if (s == OCT_OK) {
        oct_pool_relax(pool);
        const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, oct_conversion_result(c, c->o.name, g) };
        const oct_eval_options o = { .pool = pool,
                                     .kept = kept,
                                     .metrics = metric ? &metric : NULL,
                                     .n_metrics = metric != NULL,
                                     .rule = c->o.rule,
                                     .truth = c->o.truth };
        s = oct_eval(models, 2, c->src, &o, &r, &why);
        if (s == OCT_OK && r->n_scores && !isnan(r->models[1].scores[0].lo))
            *score = r->models[1].scores[0];
        if (s != OCT_OK && s != OCT_EUSAGE &&
            s != OCT_EMALFORMED) /* these: no metric is defined, which is said later */
            *err = why;
        else
            s = oct_source_pick(c->src, &(oct_pick){ 0 }, err);
    }
    oct_eval_free(r);
    oct_pool_destroy(pool);
    oct_graph_destroy(g);
    return s;
}

oct_status oct_metric_measure(oct_conversion *c, oct_eval_score *score, oct_err *err)
{
    const oct_metric *m = NULL;
    if (c->o.metric)
        OCT_TRY(oct_metric_find(c->o.metric, &m, err));
    return evaluate(c, m, samples_for(c, LEAST_ASKED), score, err);
}

int oct_metric_compare(const oct_eval_score *before, const oct_eval_score *after)
{
    if (!before->metric || !after->metric ||
        (before->lo <= after->drop && after->drop <= before->hi && after->lo <= before->drop &&
         before->drop <= after->hi))
        return 0;
    return after->drop < before->drop ? 1 : -1;
}

oct_status oct_metric_disagrees(oct_conversion *c, bool *disagrees, oct_err *err)
{
    const int64_t n = samples_for(c, 0);
    const oct_metric *m;
    oct_eval_score score;
    *disagrees = false;
    if (n == 0 || oct_conversion_unjudged(c, c->m->graph))
        return OCT_OK;
    OCT_TRY(oct_metric_find("agreement", &m, err));
    OCT_TRY(evaluate(c, m, n, &score, err));
    *disagrees = score.metric && score.lo > CLOSE_CALLS;
    return OCT_OK;
}
