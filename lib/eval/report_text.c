/* Differences and goals in words. */
#include "eval/report.h"

#include <math.h>
#include <stdio.h>

/* "0.40 points worse", or what else is said before the interval. */
static int put_drop(char *dst, size_t size, const oct_eval_score *s)
{
    const char *word = s->drop == 0 ? "difference" : s->drop < 0 ? "better" : "worse";
    if (s->drop == 0 && s->lo == 0 && s->hi == 0)
        return snprintf(dst, size, "the same on every sample");
    if (s->metric->kind == OCT_METRIC_WHOLE)
        return snprintf(dst, size, "%.4g %s", s->drop, s->metric->lost);
    return s->metric->kind == OCT_METRIC_PROPORTION ? snprintf(dst, size, "%.2f points %s", fabs(s->drop) * 100, word)
                                                    : snprintf(dst, size, "%.4g %s", fabs(s->drop), word);
}

const char *oct_report_drop(char dst[OCT_DROP_TEXT], const oct_eval_score *s)
{
    dst[0] = 0;
    if (isnan(s->drop))
        return dst;
    const bool points = s->metric->kind == OCT_METRIC_PROPORTION, better = s->drop < 0;
    const double unit = points ? 100 : 1;
    int n = put_drop(dst, OCT_DROP_TEXT, s);
    /* The interval is of what the word says: for "better", that of the gain. */
    const double lo = (better ? -s->hi : s->lo) * unit + 0.0, hi = (better ? -s->lo : s->hi) * unit + 0.0;
    if (!isnan(s->lo) && n > 0 && n < OCT_DROP_TEXT)
        snprintf(dst + n, (size_t)(OCT_DROP_TEXT - n),
                 points ? " (95 %%: %.2f to %.2f, n = %llu)%s" : " (95 %%: %.4g to %.4g, n = %llu)%s", lo, hi, (unsigned long long)s->n,
                 s->within_noise && s->hi > s->lo ? ", within noise" : "");
    return dst;
}

const char *oct_report_batch(char dst[OCT_BATCH_TEXT], const oct_eval_result *r, size_t k)
{
    if (!r->models[k].batch_scales)
        return NULL;
    snprintf(dst, OCT_BATCH_TEXT, "quantizes dynamically, with scales of %zu samples together: its results depend on the batch", r->batch);
    return dst;
}

const oct_eval_score *oct_report_goal(const oct_eval_result *r, const oct_report_context *c, size_t k)
{
    for (size_t i = 0; k > 0 && c->goal && i < r->n_scores; i++)
        if (r->models[k].scores[i].metric == c->goal)
            return &r->models[k].scores[i];
    return NULL;
}

/* What follows "met" or "missed": whether the samples can tell. */
static const char *certainty(char dst[120], const oct_eval_score *s, const oct_eval_gate *g)
{
    int n = 0;
    if (isnan(s->lo))
        return "";
    if (!g->unsure)
        return g->missed ? ", and the whole interval is beyond the limit" : ", and the whole interval is within the limit";
    n = snprintf(dst, 120, ", but the limit lies inside the interval: %llu samples cannot tell", (unsigned long long)s->n);
    if (g->samples && n > 0 && n < 120)
        snprintf(dst + n, (size_t)(120 - n), ", about %llu would", (unsigned long long)g->samples);
    return dst;
}

const char *oct_report_gate(char dst[OCT_GATE_TEXT], const oct_eval_score *s, const oct_drop_limit *limit)
{
    const oct_eval_gate g = oct_eval_judge(s, limit);
    char drop[OCT_DROP_TEXT], allowed[48], sure[120];
    snprintf(allowed, sizeof allowed, s->metric->kind == OCT_METRIC_PROPORTION ? "%.4g points are" : "%.6g is",
             s->metric->kind == OCT_METRIC_PROPORTION ? g.allowed * 100 : g.allowed);
    if (isnan(s->drop))
        snprintf(dst, OCT_GATE_TEXT, "%s is not a number: missed", s->metric->name);
    else
        snprintf(dst, OCT_GATE_TEXT, "%s: %s, at most %s allowed: %s%s", s->metric->name, oct_report_drop(drop, s), allowed,
             g.missed ? "missed" : "met", certainty(sure, s, &g));
    return dst;
}
