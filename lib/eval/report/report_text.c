/* Texts about differences and goals. */
#include "eval/report/report.h"

#include "eval/metrics/bootstrap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "-0.40 points", or another text before the interval. */
static int put_change(char *dst, size_t size, const oct_eval_score *s)
{
    const double change = oct_eval_change(s).mean;
    if (s->drop == 0 && s->lo == 0 && s->hi == 0)
        return snprintf(dst, size, "the same on every sample");
    if (s->metric->lost)
        return snprintf(dst, size, "%.4g %s", s->drop, s->metric->lost);
    return oct_metric_in_percent(s->metric)
               ? snprintf(dst, size, change == 0 ? "%.2f points" : "%+.2f points", change * 100)
               : snprintf(dst, size, change == 0 ? "%.4g" : "%+.4g", change);
}

/* What the change means, so that nobody has to know which way is better; nothing where no interval says that it is
 * more than chance. */
static const char *meaning(const oct_eval_score *s)
{
    if (s->within_noise)
        return s->hi > s->lo ? ", within noise" : "";
    if (oct_eval_lacks_interval(s))
        return "";
    return s->metric->lost || s->drop == 0 ? "" : s->drop < 0 ? ", better" : ", worse";
}

static int put_drop(char dst[OCT_DROP_TEXT], const oct_eval_score *s)
{
    dst[0] = 0;
    if (isnan(s->drop))
        return 0;
    const bool points = oct_metric_in_percent(s->metric);
    const double unit = points ? 100 : 1;
    const oct_interval change = oct_eval_change(s);
    int n = put_change(dst, OCT_DROP_TEXT, s);
    if (!isnan(s->lo) && n > 0 && n < OCT_DROP_TEXT)
        n += snprintf(dst + n, (size_t)(OCT_DROP_TEXT - n),
                      points ? " (95 %%: %.2f to %.2f, n = %llu)" : " (95 %%: %.4g to %.4g, n = %llu)",
                      change.lo * unit, change.hi * unit, (unsigned long long)s->n);
    if (n > 0 && n < OCT_DROP_TEXT)
        n += snprintf(dst + n, (size_t)(OCT_DROP_TEXT - n), "%s", meaning(s));
    return n;
}

const char *oct_report_drop(char dst[OCT_DROP_TEXT], const oct_eval_score *s)
{
    const int n = put_drop(dst, s);
    if (n > 0 && n < OCT_DROP_TEXT && s->drop != 0 && oct_eval_has_few(s))
        snprintf(dst + n, (size_t)(OCT_DROP_TEXT - n), ", too few samples to tell");
    return dst;
}

const char *oct_report_speed(char dst[OCT_SPEED_TEXT], const oct_eval_speed *s)
{
    const oct_speed_verdict v = oct_eval_speed_judge(s);
    const bool slower = v == OCT_SPEED_SLOWER;
    const double median = slower ? 1 / s->median : s->median, lo = slower ? 1 / s->q3 : s->q1,
                 hi = slower ? 1 / s->q1 : s->q3;
    const char *word = slower ? "slower" : "faster";
    dst[0] = 0;
    if (s->runs && v == OCT_SPEED_UNKNOWN)
        snprintf(dst, OCT_SPEED_TEXT, "the times are too few or vary too much");
    else if (s->runs && v == OCT_SPEED_SAME)
        snprintf(dst, OCT_SPEED_TEXT, "as fast (middle half of %d pairs of runs: %.2f to %.2f times float's speed)",
                 s->runs, lo, hi);
    else if (s->runs)
        snprintf(dst, OCT_SPEED_TEXT, "%.2f times %s (middle half of %d pairs of runs: %.2f to %.2f)", median, word,
                 s->runs, lo, hi);
    return dst;
}

const char *oct_report_runner(char *dst, size_t size, const oct_item *model)
{
    const char *runner = oct_item_text(model, "runner");
    snprintf(dst, size, "runs in %s", runner ? runner : "octet");
    return runner ? dst : NULL;
}

const char *oct_report_device(char dst[OCT_DEVICE_TEXT], const oct_eval_result *r, const oct_eval_differences *d)
{
    uint64_t values = 0, differ = 0;
    double most = 0;
    char layers[80], outputs[80];
    for (size_t i = 0; i < r->n_outputs; i++) {
        values += d->output[i].values;
        differ += d->output[i].differ;
        most = d->output[i].most > most ? d->output[i].most : most;
    }
    if (!d->layers)
        snprintf(layers, sizeof layers, "have no layer on integers");
    else if (d->n)
        snprintf(layers, sizeof layers, "compute %zu of %zu layers differently", d->n, d->layers);
    else
        snprintf(layers, sizeof layers, "compute all %zu layers alike", d->layers);
    if (differ)
        snprintf(outputs, sizeof outputs, "%llu of %llu values differ, by at most %.3g", (unsigned long long)differ,
                 (unsigned long long)values, most);
    else
        snprintf(outputs, sizeof outputs, "nothing differs");
    snprintf(dst, OCT_DEVICE_TEXT, "%s and ONNX Runtime %s; at the outputs %s (%lld sample%s)", d->runtime, layers,
             outputs, (long long)r->layer_samples, r->layer_samples == 1 ? "" : "s");
    return dst;
}

const char *oct_report_batch(char *dst, size_t size, const oct_item *report, const oct_item *model)
{
    snprintf(dst, size, "quantizes dynamically, with scales of %.0f samples together: its results depend on the batch",
             oct_item_number(report, "batch"));
    return oct_item_true(model, "batch_scales") ? dst : NULL;
}

const char *oct_report_environment(char dst[OCT_ENVIRONMENT_TEXT], const oct_eval_result *r)
{
    const oct_environment *e = &r->environment;
    char load[32] = "";
    if (!isnan(e->load))
        snprintf(load, sizeof load, ", load %.1f", e->load);
    const bool all = strcmp(e->used, e->available) == 0;
    snprintf(dst, OCT_ENVIRONMENT_TEXT, "%s%s%d processor%s, %s%s%s, %d thread%s%s; octet " OCT_VERSION, e->cpu,
             *e->cpu ? ", " : "", e->processors, e->processors == 1 ? "" : "s", e->used, all ? "" : " of ",
             all ? "" : e->available, r->threads, r->threads == 1 ? "" : "s", load);
    return dst;
}

/* The text after "met" or "missed": whether the samples suffice. */
static const char *certainty(char dst[120], const oct_eval_score *s, const oct_eval_gate *g)
{
    int n = 0;
    if (s->one_number && oct_eval_lacks_interval(s))
        return ", but one number for all samples has no interval: a number for each sample would give one";
    if (oct_eval_has_few(s)) {
        snprintf(dst, 120, ", but %llu sample%s too few for an interval: at least %d are needed",
                 (unsigned long long)s->n, s->n == 1 ? " is" : "s are", OCT_BCA_LEAST);
        return dst;
    }
    if (oct_eval_lacks_interval(s))
        return ", but no interval is known";
    if (isnan(s->lo))
        return "";
    if (!g->unsure)
        return g->missed ? ", and the whole interval is beyond the limit"
                         : ", and the whole interval is within the limit";
    n = snprintf(dst, 120, ", but the limit lies inside the interval: %llu samples cannot tell",
                 (unsigned long long)s->n);
    if (n > 0 && n < 120 && g->samples)
        snprintf(dst + n, (size_t)(120 - n), ", about %llu would", (unsigned long long)g->samples);
    else if (n > 0 && n < 120)
        snprintf(dst + n, (size_t)(120 - n), ", nor would %d", OCT_INTERVAL_MOST);
    return dst;
}

const char *oct_report_gate(char dst[OCT_GATE_TEXT], const oct_eval_score *s, const oct_drop_limit *limit)
{
    const oct_eval_gate g = oct_eval_judge(s, limit);
    char drop[OCT_DROP_TEXT], allowed[48], sure[120];
    const bool points = oct_metric_in_percent(s->metric);
    const double limit_said = points ? g.allowed * 100 : g.allowed;
    snprintf(allowed, sizeof allowed,
             s->metric->lost   ? "%.6g is"
             : !points         ? "%.6g worse is"
             : limit_said == 1 ? "%.4g point worse is"
                               : "%.4g points worse are",
             limit_said);
    put_drop(drop, s);
    if (isnan(s->drop))
        snprintf(dst, OCT_GATE_TEXT, "%s is not a number: missed", s->metric->name);
    else
        snprintf(dst, OCT_GATE_TEXT, "%s: %s, at most %s allowed: %s%s", s->metric->name, drop, allowed,
                 g.missed ? "missed" : "met", certainty(sure, s, &g));
    return dst;
}

/* ---- gates ---- */

const char *oct_report_gate_title(char dst[OCT_GATE_TITLE], const oct_gate_result *g)
{
    const char *of = g->subject ? g->subject : g->gate->kind == OCT_GATE_DROP ? g->score->metric->name : NULL;
    snprintf(dst, OCT_GATE_TITLE, "%s%s%s", oct_gate_name(g->gate->kind), of ? " " : "", of ? of : "");
    return dst;
}

/* Whether the measurement suffices. */
static const char *doubt(const oct_gate_result *g)
{
    if (!g->unsure)
        return "";
    if (isnan(g->estimate))
        return ", as it was not timed";
    return g->lo < g->limit && g->limit < g->hi ? ", but the limit lies between the quartiles: the runs cannot tell"
                                                : ", but the times are too few or vary too much";
}

/* The number of a gate that is not about a drop, with its interval and its limit. */
static int put_estimate(char *dst, const oct_gate_result *g)
{
    const int size = OCT_GATE_TEXT;
    switch (g->gate->kind) {
    case OCT_GATE_SQNR:
        return isinf(g->estimate) && g->estimate > 0
                   ? snprintf(dst, size, "sqnr: outputs are equal, at least %.6g dB are asked", g->limit)
                   : snprintf(dst, size, "sqnr: %.2f dB, at least %.6g dB are asked", g->estimate, g->limit);
    case OCT_GATE_SPEEDUP:
        return snprintf(dst, size, "speed: %.3g times float's (quartiles: %.3g to %.3g), at least %.6g times is asked",
                        g->estimate, g->lo, g->hi, g->limit);
    case OCT_GATE_LATENCY:
        return snprintf(dst, size, "latency: %.4g ms (quartiles: %.4g to %.4g), at most %.6g ms is allowed",
                        g->estimate, g->lo, g->hi, g->limit);
    default:
        return snprintf(dst, size, "%s: %.0f bytes, at most %.0f are allowed",
                        g->gate->kind == OCT_GATE_SIZE ? "size" : "memory", g->estimate, g->limit);
    }
}

/* "agreement: 98.50 % (95 %: 96.10 to 99.60, n = 400), at least 99 % is asked: missed, ..." */
static void put_agreement(char *dst, const oct_gate_result *g)
{
    const oct_eval_gate j = { .missed = !g->met, .unsure = g->unsure, .samples = g->samples_needed };
    char sure[120], interval[80] = "";
    if (!isnan(g->lo))
        snprintf(interval, sizeof interval, " (95 %%: %.2f to %.2f, n = %llu)", 100 * g->lo, 100 * g->hi,
                 (unsigned long long)g->score->n);
    snprintf(dst, OCT_GATE_TEXT, "agreement: %.2f %%%s, at least %.6g %% is asked: %s%s", 100 * g->estimate, interval,
             100 * g->limit, g->met ? "met" : "missed", certainty(sure, g->score, &j));
}

/* "top1: -1.00 points (95 %: ...), worse; -0.25 points, worse last time: met, as the interval holds that". */
static void put_drop_before(char *dst, const oct_gate_result *g)
{
    char now[OCT_DROP_TEXT], was[OCT_DROP_TEXT];
    const oct_eval_score old = { .metric = g->score->metric, .drop = g->before, .lo = NAN, .hi = NAN };
    snprintf(dst, OCT_GATE_TEXT, "%s: %s; %s last time: %s%s", g->subject, oct_report_drop(now, g->score),
             oct_report_drop(was, &old), g->met ? "met" : "missed",
             g->unsure                ? ", as the interval holds that"
             : g->met || isnan(g->lo) ? ""
                                      : ", and the whole interval is worse");
}

static void put_before(char *dst, const oct_gate_result *g)
{
    const char *verdict = g->met ? "met" : "missed";
    if (g->score)
        put_drop_before(dst, g);
    else if (strcmp(g->subject, "sqnr") == 0)
        snprintf(dst, OCT_GATE_TEXT, "sqnr: %.2f dB, %.2f last time: %s", g->estimate, g->before, verdict);
    else
        snprintf(dst, OCT_GATE_TEXT, "%s: %.0f bytes, %.0f last time: %s", g->subject, g->estimate, g->before, verdict);
}

const char *oct_report_gate_result(char dst[OCT_GATE_TEXT], const oct_gate_result *g)
{
    if (g->subject) {
        put_before(dst, g);
        return dst;
    }
    if (g->gate->kind == OCT_GATE_DROP)
        return oct_report_gate(dst, g->score, &g->gate->limit);
    if (g->gate->kind == OCT_GATE_AGREEMENT) {
        put_agreement(dst, g);
        return dst;
    }
    const int n = put_estimate(dst, g);
    if (n > 0 && n < OCT_GATE_TEXT)
        snprintf(dst + n, (size_t)(OCT_GATE_TEXT - n), ": %s%s", g->met ? "met" : "missed", doubt(g));
    return dst;
}

const oct_item *oct_report_worst_gate(const oct_item *report, size_t k)
{
    const oct_item *gates = oct_item_at(report, "gates"), *worst = NULL;
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));)
        if (oct_item_whole(g, "model_number") == (int64_t)k &&
            (!worst || (oct_item_true(worst, "met") &&
                        (!oct_item_true(g, "met") || (oct_item_true(g, "unsure") && !oct_item_true(worst, "unsure"))))))
            worst = g;
    return worst;
}
