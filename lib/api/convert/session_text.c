/* A conversion in one sentence. A share of samples always has their number and an interval, and a speed is stated only
 * if the runs support it. */
#include "api/session.h"

#include "base/number_text.h"

#include <math.h>
#include <string.h>

/* "0.962", or "96.20 %" for proportions. */
static void put_value(oct_buf *b, const oct_metric *m, double v)
{
    if (oct_metric_in_percent(m))
        oct_buf_printf(b, "%.2f %%", 100 * v);
    else
        oct_buf_printf(b, "%.4g", v);
}

void oct_session_samples(const oct_session *s, uint64_t n, oct_buf *b)
{
    const bool one = n == 1;
    oct_buf_printf(b, " on %s%llu %ssample%s%s", s->c.judged == OCT_JUDGED_SAME ? "the " : "", (unsigned long long)n,
                   s->c.o.synthetic ? "synthetic " : "", one ? "" : "s",
                   s->c.judged == OCT_JUDGED_SAME     ? " it was calibrated with"
                   : s->c.judged == OCT_JUDGED_OTHERS ? " that calibration did not see"
                                                      : "");
}

static void put_difference(const oct_eval_score *x, oct_buf *b)
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
static void put_agreement(const oct_session *s, const oct_eval_score *x, oct_buf *b)
{
    oct_buf_printf(b, "; %s ", x->metric->name);
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, " with the float model");
    oct_session_samples(s, x->n, b);
    if (!isnan(x->lo) && !isnan(x->hi))
        oct_buf_printf(b, " (95 %% interval %.2f to %.2f)", 100 * fmax(0, x->reference - x->hi),
                       100 * fmin(1, x->reference - x->lo));
    else
        oct_buf_puts(b, " (too few samples for an interval)");
}

static void put_score(const oct_session *s, const oct_eval_score *x, oct_buf *b)
{
    oct_buf_printf(b, "; %s ", x->metric->name);
    put_value(b, x->metric, x->reference);
    oct_buf_puts(b, " before, ");
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, " after");
    oct_session_samples(s, x->n, b);
    oct_buf_puts(b, " (");
    put_difference(x, b);
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

static void verdict_clause(const oct_session *s, oct_buf *b)
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
        oct_session_samples(s, (uint64_t)s->c.verdict->samples, b);
    if (s->c.seen_gap > 0)
        oct_buf_printf(b, " (%s on samples that it saw)", oct_fmt_db(text, s->c.sqnr + s->c.seen_gap));
}

/* ---- the summary ---- */

/* Whether it says something that a layer stayed float: it has weights, or a rule wanted it so. Where weights alone are
 * quantized, the rule is of a layer that computes products. */
static bool says_float(const oct_session *s, const oct_layer *l)
{
    const oct_scheme scheme = s->c.o.job.scheme;
    const bool weights_alone = scheme == OCT_SCHEME_WEIGHT_ONLY || scheme == OCT_SCHEME_STORED;
    return !oct_layer_is_quantized(l) &&
           (l->product || (oct_policy_place(l->d.why) && (!weights_alone || l->macs > 0)));
}

/* "Softmax by op:Softmax (built-in:8)", for the first few kinds of layers that stayed float although they have weights,
 * or because of a rule. */
static void float_clause(const oct_session *s, oct_buf *b)
{
    size_t shown = 0;
    for (size_t i = 0; i < s->c.n_layers && shown < 3; i++) {
        const oct_layer *l = &s->c.layers[i];
        const bool ruled = oct_policy_place(l->d.why) != NULL;
        bool known = !says_float(s, l);
        for (size_t k = 0; k < i && !known; k++) {
            const oct_layer *o = &s->c.layers[k];
            known = !oct_layer_is_quantized(o) && strcmp(o->d.op, l->d.op) == 0 && strcmp(o->d.why, l->d.why) == 0;
        }
        if (known)
            continue;
        oct_buf_printf(b, "%s%s %s %s", shown ? ", " : "; float: ", l->d.op, ruled ? "by the rule" : "because",
                       l->d.why);
        shown++;
    }
}

static void size_clause(const oct_session *s, oct_buf *b)
{
    char before[32], after[32];
    double ratio = (double)s->c.size_before / (double)(s->c.size_after ? s->c.size_after : 1);
    oct_buf_printf(b, "%s %s ", oct_path_base(s->output), s->x.dry_run ? "would be" : "is");
    if (fabs(ratio - 1) < 0.005)
        oct_buf_puts(b, "about as large as");
    else
        oct_buf_printf(b, "%.2f times %s than", ratio < 1 ? 1 / ratio : ratio, ratio < 1 ? "larger" : "smaller");
    oct_buf_printf(b, " %s (%s to %s)", oct_path_base(s->x.model), oct_fmt_bytes(before, s->c.size_before),
                   oct_fmt_bytes(after, s->c.size_after));
}

/* "5 of 6 layers with weights are int8"; weights in blocks are distinguished by their bits. */
static void layers_clause(const oct_session *s, oct_buf *b)
{
    const oct_layer_count n = oct_layers_count(s->c.layers, s->c.n_layers);
    const struct {
        size_t n;
        const char *are;
    } kinds[] = { { n.integer, "are int8" },
                  { n.half, "are 16-bit floats" },
                  { n.blocks4, "have them in 4 bits" },
                  { n.blocks8, "have them in 8 bits" } };
    const bool none =
        n.products && !(n.half + n.blocks4 + n.blocks8); /* no layer of another kind: then int8 is named in any case */
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (kinds[i].n || (i == 0 && none))
            oct_buf_printf(b, "; %zu of %zu layers with weights %s", kinds[i].n, n.products, kinds[i].are);
}

void oct_session_sentence(const oct_session *s, oct_buf *b)
{
    size_clause(s, b);
    layers_clause(s, b);
    if (s->c.n_floats) {
        oct_buf_puts(b, "; ");
        oct_float_bytes_text(s->c.floats, s->c.n_floats, b);
    }
    verdict_clause(s, b);
    if (oct_conversion_no_gain(&s->c))
        oct_buf_printf(b, "; %s", oct_conversion_no_gain(&s->c));
    float_clause(s, b);
    oct_buf_puts(b, ".");
}
