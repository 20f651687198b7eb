/* Texts about measurements. A share of samples always has their number and an interval, and a speed is stated only if
 * the runs support it. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"

#include <math.h>

/* "0.962", or "96.20 %" for proportions. */
static void put_value(oct_buf *b, const oct_metric *m, double v)
{
    if (oct_metric_in_percent(m))
        oct_buf_printf(b, "%.2f %%", 100 * v);
    else
        oct_buf_printf(b, "%.4g", v);
}

void verdict_samples(const session *s, uint64_t n, oct_buf *b)
{
    const bool one = n == 1;
    oct_buf_printf(b, " on %s%llu %ssample%s%s", s->c.judged == OCT_JUDGED_SAME ? "the " : "", (unsigned long long)n,
                   s->c.o.synthetic ? "synthetic " : "", one ? "" : "s",
                   s->c.judged == OCT_JUDGED_SAME     ? " it was calibrated with"
                   : s->c.judged == OCT_JUDGED_OTHERS ? " that calibration did not see"
                                                      : "");
}

void verdict_difference(const oct_eval_score *x, oct_buf *b)
{
    const bool points = oct_metric_in_percent(x->metric);
    const oct_interval change = oct_eval_change(x);
    const double unit = points ? 100 : 1, lo = change.lo * unit, hi = change.hi * unit;
    oct_buf_printf(b, points ? "difference %.2f points, " : "difference %.4g, ", change.mean * unit);
    if (isnan(lo) || isnan(hi))
        oct_buf_puts(b, x->n < 2 ? "too few samples for an interval" : "without an interval");
    else
        oct_buf_printf(b, points ? "95 %% interval %.2f to %.2f" : "95 %% interval %.4g to %.4g", lo, hi);
}

/* How often both models predict the same class. */
static void put_agreement(const session *s, const oct_eval_score *x, oct_buf *b)
{
    oct_buf_printf(b, "; %s ", x->metric->name);
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, " with the float model");
    verdict_samples(s, x->n, b);
    if (!isnan(x->lo) && !isnan(x->hi))
        oct_buf_printf(b, " (95 %% interval %.2f to %.2f)", 100 * fmax(0, x->reference - x->hi),
                       100 * fmin(1, x->reference - x->lo));
    else
        oct_buf_puts(b, " (too few samples for an interval)");
}

static void put_score(const session *s, const oct_eval_score *x, oct_buf *b)
{
    oct_buf_printf(b, "; %s ", x->metric->name);
    put_value(b, x->metric, x->reference);
    oct_buf_puts(b, " before, ");
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, " after");
    verdict_samples(s, x->n, b);
    oct_buf_puts(b, " (");
    verdict_difference(x, b);
    oct_buf_puts(b, x->within_noise ? ": within noise)" : ")");
}

static void put_speed(const oct_eval_speed *x, oct_buf *b)
{
    char words[OCT_SPEED_TEXT];
    if (x->runs)
        oct_buf_printf(b, "; measured here in Octet's own runtime: %s", oct_report_speed(words, x));
}

/* How much denormal numbers slow down the float model. Whether they are the reason why the quantized one is faster,
 * only the pairs of runs tell. */
static void put_denormals(const oct_denormals *d, oct_buf *b)
{
    const oct_speed_verdict v = oct_eval_speed_judge(&d->flushed);
    if (v == OCT_SPEED_SAME || v == OCT_SPEED_SLOWER || d->weights + d->values == 0)
        return;
    oct_buf_printf(
        b, "; the float model computes with denormal numbers (%llu of its weights, %llu of the values for one sample)",
        (unsigned long long)d->weights, (unsigned long long)d->values);
    if (v == OCT_SPEED_FASTER)
        oct_buf_printf(
            b,
            ", which are slow on this CPU: flushed to zero it would itself be %.2f times faster (half of %d runs: %.2f to %.2f)",
            d->flushed.median, d->flushed.runs, d->flushed.q1, d->flushed.q3);
    else
        oct_buf_puts(b, ", which may slow it down; what flushing them to zero gives was not measured");
}

void verdict_clause(const session *s, oct_buf *b)
{
    char text[48];
    if (s->c.unjudged)
        oct_buf_printf(b, "; what it costs was not measured, as %s", s->c.unjudged);
    if (!s->c.verdict)
        return;
    put_speed(&s->c.verdict->models[1].speed, b);
    if (s->c.looked_for_denormals)
        put_denormals(&s->c.denormals, b);
    const oct_eval_score *x = oct_conversion_score(&s->c);
    const bool shares = x && x->metric->relative && oct_metric_in_percent(x->metric);
    const bool scores = x && !x->metric->relative && x->metric->kind != OCT_METRIC_WHOLE;
    const bool against_float =
        x && x->metric->relative && x->metric->kind == OCT_METRIC_MEAN && !shares && s->c.o.metric;
    if (shares)
        put_agreement(s, x, b);
    else if (against_float)
        oct_buf_printf(b, "; %s %.4g against the float model", x->metric->name, x->value);
    else if (scores)
        put_score(s, x, b);
    if (isinf(s->c.sqnr))
        oct_buf_puts(b, "; outputs equal to float");
    else if (!isnan(s->c.sqnr))
        oct_buf_printf(b, "; output SQNR %s", oct_fmt_db(text, s->c.sqnr));
    else
        return;
    if ((shares || scores) && x->n == (uint64_t)s->c.verdict->samples)
        oct_buf_puts(b, " on these");
    else
        verdict_samples(s, (uint64_t)s->c.verdict->samples, b);
    if (s->c.seen_gap > 0)
        oct_buf_printf(b, " (%s on samples that it saw)", oct_fmt_db(text, s->c.sqnr + s->c.seen_gap));
}

/* Prints the result of the trials. */
static void print_trials(const session *s, FILE *f)
{
    const oct_conversion *c = &s->c;
    char text[OCT_TRIAL_TEXT];
    size_t at = 0;
    while (at < c->n_trials && !c->trials[at].taken)
        at++;
    if (c->n_trials < 2 && !c->stopped)
        return;
    const size_t n = c->n_trials - 1;
    oct_print(f, "%zu trial%s%s: %s", n, n == 1 ? "" : "s", c->stopped ? ", then the time limit ended them" : "",
              oct_goal_trial_text(text, &c->trials[at]));
    oct_print(f,
              c->divided ? "; %llu samples chose, others judge\n"
                         : "; the samples that judge also chose (too few to decide in halves)\n",
              (unsigned long long)c->trials[at].samples);
}

void verdict_goals(const session *s, FILE *f)
{
    char text[OCT_GATE_TEXT];
    if (!s->c.verdict || !s->n_goals)
        return;
    print_trials(s, f);
    for (size_t i = 0; i < s->n_goals;
         i++) { /* the value of the metric for each goal, and whether the samples suffice */
        const oct_eval_score x = oct_conversion_goal_score(&s->c, i);
        oct_print(f, "goal: %s\n", oct_goal_text(text, &s->goals[i], &x));
    }
}
