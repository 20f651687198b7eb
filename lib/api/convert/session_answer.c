/* What a reader wants to know first: what was written, how much of it is int8, how fast it is, what it costs, what
 * stayed float, and what to do next. Each is a few sentences, and a command where one helps. Tables have the rest. */
#include "api/answer.h"
#include "api/convert/session_guess.h"

#include "base/number_text.h"
#include "base/utf8.h"
#include "eval/metrics/metric.h"
#include "runtime/runnable.h"

#include <math.h>
#include <string.h>

enum { REASONS = 3, OPERATORS = 3, MOST_REASONS = 64 };
#define LEAST_TIME 500.0 /* us: no time is expected of shorter runs */
#define SLOWER 1.05      /* a factor; tables of costs are not more exact */
#define AS_LARGE 0.005   /* files that differ by less are said to be about as large */

typedef struct answer {
    const oct_session *s;
    oct_json *j;
    oct_buf text, command; /* of the item that is next */
} answer;

static void end_item(answer *a, const char *about)
{
    oct_answer_item(a->j, about, &a->text, &a->command);
}

/* Whether somebody at a shell can repeat what was done: model and samples are files. */
static bool is_repeatable(const oct_session *s)
{
    return !s->x.in_memory && !s->x.model_data && !s->x.samples.get && strcmp(s->x.model, "-") != 0;
}

/* The command of a conversion with other options. */
static void put_conversion(answer *a, const octet_convert_options *x)
{
    if (!is_repeatable(a->s))
        return;
    oct_session_command(x, false, &a->command);
    if (x->output) {
        oct_buf_puts(&a->command, " -o ");
        oct_quote(&a->command, x->output);
    }
}

/* ---- what was written ---- */

static void put_file(answer *a)
{
    const oct_session *s = a->s;
    char before[32], after[32];
    const double ratio = (double)s->c.size_before / (double)(s->c.size_after ? s->c.size_after : 1);
    if (s->c.missed)
        oct_buf_puts(&a->text, "The goal is missed. The best model, ");
    oct_buf_printf(&a->text, "%s%s %s %s instead of %s", s->x.in_memory ? oct_path_base(s->output) : s->output,
                   s->c.missed ? "," : "", s->x.dry_run ? "would be" : "is", oct_fmt_bytes(after, s->c.size_after),
                   oct_fmt_bytes(before, s->c.size_before));
    if (fabs(ratio - 1) < AS_LARGE)
        oct_buf_puts(&a->text, ", about as large");
    else
        oct_buf_printf(&a->text, ", %.2f times %s", ratio < 1 ? 1 / ratio : ratio, ratio < 1 ? "larger" : "smaller");
    oct_buf_printf(&a->text, ", for %s%s.", oct_target_name(s->target),
                   oct_target_rules_of(s->target)->proof == OCT_PROOF_NONE ? " (rules only, untested there)" : "");
    /* twins are of runtimes that read .tflite */
    if (oct_target_rules_of(s->target)->proof == OCT_PROOF_TWIN && !oct_session_writes_tflite(&s->x))
        oct_buf_puts(&a->text, " LiteRT itself reads .tflite: -o NAME.tflite writes it.");
    if (oct_conversion_no_gain(&s->c))
        oct_buf_printf(&a->text, " It is of little use: %s.", oct_conversion_no_gain(&s->c));
    end_item(a, "file");
    for (size_t i = 0; s->c.verdict && i < s->n_goals; i++) {
        char text[OCT_GATE_TEXT];
        const oct_eval_score x = oct_conversion_goal_score(&s->c, i);
        oct_buf_printf(&a->text, "%s.", oct_goal_text(text, &s->goals[i], &x));
        end_item(a, "goal");
    }
}

static void put_size(answer *a)
{
    const oct_size_choice *x = &a->s->c.size;
    char limit[32], db[32];
    if (!x->n)
        return;
    oct_buf_printf(&a->text, "At most %s: schemes were chosen for that, with an expected output SQNR of %s%s.",
                   oct_fmt_bytes(limit, x->limit), oct_fmt_db(db, x->sqnr),
                   x->measured ? "" : " (from the rounding of weights and inputs alone)");
    end_item(a, "size");
}

/* Whether there was nothing to quantize, as in trees and linear models. */
static bool is_as_it_was(const oct_session *s)
{
    const oct_layer_count n = oct_layers_count(s->c.layers, s->c.n_layers);
    return !n.products && n.integer_nodes + n.half == 0 && s->c.size_after >= s->c.size_before;
}

/* "12 of 12 layers with weights are int8: 99 % of the multiply-accumulates." */
static void put_layers(answer *a)
{
    const oct_layer_count n = oct_layers_count(a->s->c.layers, a->s->c.n_layers);
    const struct {
        size_t n;
        const char *are;
    } kinds[] = { { n.integer, "int8" },
                  { n.half, "16-bit floats" },
                  { n.blocks4, "stored in 4 bits" },
                  { n.blocks8, "stored in 8 bits" } };
    char macs[OCT_MACS_TEXT];
    bool any = false;
    if (!n.products)
        oct_buf_printf(&a->text, "No layer has weights%s.",
                       is_as_it_was(a->s) ? ", and nothing else is quantized: keep the float model" : "");
    for (size_t i = 0; n.products && i < OCT_COUNT(kinds); i++)
        if (kinds[i].n) {
            oct_buf_printf(&a->text, any ? ", %zu " : "%zu of %zu layers with weights ", kinds[i].n, n.products);
            oct_buf_printf(&a->text, "%s %s", kinds[i].n == 1 ? "is" : "are", kinds[i].are);
            any = true;
        }
    if (n.products && !any)
        oct_buf_printf(&a->text, "None of %zu layers with weights is quantized", n.products);
    if (n.integer && n.macs)
        oct_buf_printf(&a->text, ": %s", oct_macs_text(macs, (double)n.integer_macs / (double)n.macs));
    if (n.products)
        oct_buf_puts(&a->text, ".");
    end_item(a, "layers");
}

/* ---- how fast it is ---- */

static bool has_bodies(const oct_session *s)
{
    for (size_t i = 0; i < s->c.n_layers; i++)
        if (*s->c.layers[i].d.where)
            return true;
    return false;
}

/* Whether weights in blocks are what makes it slower. */
static bool has_slow_blocks(const oct_session *s)
{
    for (size_t i = 0; i < s->c.n_layers; i++) {
        const oct_layer_decision *d = &s->c.layers[i].d;
        if (s->c.layers[i].weight_count && d->block && d->expected > d->on_floats)
            return true;
    }
    return false;
}

/* "Expected in ONNX Runtime on one thread: 10.6 ms instead of 12.5 ms (AVX2)." *slower: it takes longer than float. */
static void put_expected(answer *a, bool *slower)
{
    const oct_target_times x = oct_qjob_expected(a->s->c.job);
    const oct_in_onnxruntime *provider = &a->s->c.in_onnxruntime;
    char before[32], after[32];
    bool any = false;
    for (size_t i = 0; i < x.n; i++) {
        const char *runtime = oct_target_costs_runtime(a->s->target, i);
        if (!(x.on_floats[i] / 1e3 >= LEAST_TIME))
            continue;
        if (!any)
            oct_buf_printf(&a->text, "Expected%s%s on one thread%s: ", runtime ? " in " : "", runtime ? runtime : "",
                           has_bodies(a->s) ? ", without the layers in If, Loop and Scan" : "");
        oct_buf_printf(&a->text, "%s%s instead of %s (%s", any ? ", " : "", oct_fmt_ms(after, x.decided[i] / 1e9),
                       oct_fmt_ms(before, x.on_floats[i] / 1e9), oct_target_costs_cpus(a->s->target, i));
        if (provider->costs && strcmp(provider->costs, oct_target_costs_name(a->s->target, i)) == 0)
            oct_buf_printf(&a->text, "; %s with Octet's provider",
                           oct_fmt_ms(after, provider->with_provider * x.on_floats[i] / 1e9));
        oct_buf_puts(&a->text, ")");
        any = true;
        *slower |= x.decided[i] > SLOWER * x.on_floats[i];
    }
    if (any)
        oct_buf_puts(&a->text, ".");
}

/* How much denormal numbers slow down the float model. Whether they are the reason why the quantized one is faster,
 * only the pairs of runs tell. */
static void put_denormals(answer *a)
{
    const oct_denormals *d = &a->s->c.denormals;
    const oct_speed_verdict v = oct_eval_speed_judge(&d->flushed);
    if (!a->s->c.looked_for_denormals || v == OCT_SPEED_SAME || v == OCT_SPEED_SLOWER || d->weights + d->values == 0)
        return;
    oct_buf_printf(
        &a->text,
        "The float model computes with denormal numbers (%llu of its weights, %llu of the values for one sample)",
        (unsigned long long)d->weights, (unsigned long long)d->values);
    if (v == OCT_SPEED_FASTER)
        oct_buf_printf(&a->text,
                       ", which are slow on this CPU: flushed to zero it would itself be %.2f times faster (half of %d "
                       "runs: %.2f to %.2f).",
                       d->flushed.median, d->flushed.runs, d->flushed.q1, d->flushed.q3);
    else
        oct_buf_puts(&a->text, ", which may slow it down; what flushing them to zero gives was not measured.");
    end_item(a, "speed");
}

static void put_speed(answer *a)
{
    const oct_session *s = a->s;
    const oct_eval_speed *x = s->c.verdict ? &s->c.verdict->models[1].speed : NULL;
    char words[OCT_SPEED_TEXT];
    bool slower = false;
    put_expected(a, &slower);
    const bool expected = a->text.len > 0;
    end_item(a, "speed");
    if (x && x->runs && (!expected || oct_eval_speed_judge(x) != OCT_SPEED_UNKNOWN)) {
        oct_buf_printf(&a->text, "Measured here in Octet's own runtime%s: %s.",
                       oct_target_rules_of(s->target)->proof == OCT_PROOF_NONE ? ", not on a device" : "",
                       oct_report_speed(words, x));
        end_item(a, "speed");
    }
    put_denormals(a);
    if (slower && has_slow_blocks(s)) {
        octet_convert_options y = s->x;
        y.accuracy_level = 4;
        oct_buf_puts(&a->text, "Slower than float, because each run converts the weights to float. To avoid that:");
        put_conversion(a, &y);
        end_item(a, "speed");
    }
}

/* ---- what it costs ---- */

/* "0.962", or "96.20 %" for proportions. */
static void put_value(oct_buf *b, const oct_metric *m, double v)
{
    if (oct_metric_in_percent(m))
        oct_buf_printf(b, "%.2f %%", 100 * v);
    else
        oct_buf_printf(b, "%.4g", v);
}

/* How often both models predict the same class. */
static void put_agreement(const oct_session *s, const oct_eval_score *x, oct_buf *b)
{
    oct_buf_printf(b, "%s ", x->metric->name);
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, " with the float model");
    oct_session_samples(s, x->n, b);
    if (!isnan(x->lo) && !isnan(x->hi))
        oct_buf_printf(b, " (95 %%: %.2f to %.2f, n = %llu).", 100 * fmax(0, x->reference - x->hi),
                       100 * fmin(1, x->reference - x->lo), (unsigned long long)x->n);
    else
        oct_buf_puts(b, " (too few samples for an interval).");
}

static void put_score(const oct_session *s, const oct_eval_score *x, oct_buf *b)
{
    char drop[OCT_DROP_TEXT];
    oct_buf_printf(b, "%s ", x->metric->name);
    put_value(b, x->metric, x->value);
    oct_buf_puts(b, ", float ");
    put_value(b, x->metric, x->reference);
    oct_buf_puts(b, ",");
    oct_session_samples(s, x->n, b);
    oct_buf_printf(b, ": %s.", oct_report_drop(drop, x));
}

/* "Output SQNR 32.9 dB on these: the error is 2.3 % of the signal." */
static void put_sqnr(answer *a, bool counted)
{
    const oct_session *s = a->s;
    char text[32];
    if (isnan(s->c.sqnr))
        return;
    if (isinf(s->c.sqnr))
        oct_buf_puts(&a->text, "The outputs equal float's");
    else
        oct_buf_printf(&a->text, "Output SQNR %s", oct_fmt_db(text, s->c.sqnr));
    if (counted)
        oct_buf_puts(&a->text, " on these");
    else
        oct_session_samples(s, (uint64_t)s->c.verdict->samples, &a->text);
    if (s->twin)
        oct_buf_printf(&a->text, ", as %s computes", s->twin->runtime);
    if (s->c.seen_gap > 0)
        oct_buf_printf(&a->text, " (%s on samples that it saw)", oct_fmt_db(text, s->c.sqnr + s->c.seen_gap));
    if (!isinf(s->c.sqnr))
        oct_buf_printf(&a->text, ": the error is %.2g %% of the signal", 100 * pow(10, -s->c.sqnr / 20));
    oct_buf_puts(&a->text, ".");
    end_item(a, "accuracy");
}

static void put_accuracy(answer *a)
{
    const oct_session *s = a->s;
    if (s->c.unjudged) {
        oct_buf_printf(&a->text, "What it costs was not measured, as %s.", s->c.unjudged);
        end_item(a, "accuracy");
    }
    if (!s->c.verdict)
        return;
    const oct_eval_score *x = oct_conversion_score(&s->c);
    const bool shares = x && x->metric->relative && oct_metric_in_percent(x->metric);
    const bool scores = x && !x->metric->relative && x->metric->kind != OCT_METRIC_WHOLE;
    if (shares)
        put_agreement(s, x, &a->text);
    else if (scores)
        put_score(s, x, &a->text);
    else if (x && x->metric->relative && x->metric->kind == OCT_METRIC_MEAN && s->c.o.metric)
        oct_buf_printf(&a->text, "%s %.4g against the float model.", x->metric->name, x->value);
    end_item(a, "accuracy");
    put_sqnr(a, (shares || scores) && x->n == (uint64_t)s->c.verdict->samples);
}

/* The metric that is printed first; NULL: SQNR is. */
static const oct_eval_score *first_score(const oct_session *s)
{
    const oct_eval_score *x = s->c.verdict ? oct_conversion_score(&s->c) : NULL;
    return x && (x->metric->kind != OCT_METRIC_WHOLE || !x->metric->relative) && !isnan(x->value) ? x : NULL;
}

void oct_session_loss(const oct_session *s, oct_buf *b)
{
    const oct_eval_score *x = first_score(s);
    char text[32];
    if (x) {
        put_value(b, x->metric, x->value);
        if (!x->metric->relative && !isnan(x->reference))
            oct_buf_printf(b, oct_metric_in_percent(x->metric) ? " (%+.2f)" : " (%+.4g)",
                           (oct_metric_in_percent(x->metric) ? 100 : 1) * (x->value - x->reference));
    } else if (s->c.verdict && !isnan(s->c.sqnr)) {
        oct_buf_puts(b, isinf(s->c.sqnr) ? "exact" : oct_fmt_db(text, s->c.sqnr));
    }
}

void oct_session_measure(const oct_session *s, oct_buf *b)
{
    const oct_eval_score *x = first_score(s);
    if (!s->c.verdict || (!x && isnan(s->c.sqnr)))
        return;
    oct_buf_puts(b, x ? x->metric->name : "output SQNR");
    if (x && x->metric->relative)
        oct_buf_puts(b, " with the float model");
    if (x && !x->metric->relative && !isnan(x->reference)) {
        oct_buf_puts(b, ", float ");
        put_value(b, x->metric, x->reference);
    }
    oct_buf_puts(b, ",");
    oct_session_samples(s, x ? x->n : (uint64_t)s->c.verdict->samples, b);
}

/* ---- what stayed float ---- */

/* Layers that stayed float for one reason. */
typedef struct reason {
    const char *why, *first, *op[OPERATORS];
    size_t n, of_op[OPERATORS], others;
    int64_t macs;
} reason;

static void count_layer(reason *r, const oct_layer *l)
{
    size_t k = 0;
    r->first = r->n++ ? r->first : l->name;
    r->macs += l->macs;
    while (k < OPERATORS && r->op[k] && strcmp(r->op[k], l->d.op) != 0)
        k++;
    if (k == OPERATORS) {
        r->others++;
    } else {
        r->op[k] = l->d.op;
        r->of_op[k]++;
    }
}

/* The next reason: that with the most work, then that with the most layers. */
static reason *next_reason(reason *r, size_t n)
{
    reason *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (r[i].n && (!best || r[i].macs > best->macs || (r[i].macs == best->macs && r[i].n > best->n)))
            best = &r[i];
    return best;
}

/* Whether it says something that a layer stayed float: it has weights, or nobody knows its operator, or a rule or a
 * measurement left it so. Where weights alone are quantized, the rule is of a layer that computes products. */
static bool says_float(const oct_session *s, const oct_layer *l)
{
    const oct_scheme scheme = s->c.o.job.scheme;
    const bool weights_alone = scheme == OCT_SCHEME_WEIGHT_ONLY || scheme == OCT_SCHEME_STORED;
    return !oct_layer_is_quantized(l) && (l->product || !oct_op_of(l->d.graph, l->d.node) ||
                                          (oct_policy_place(l->d.why) && (!weights_alone || l->macs > 0)));
}

static void put_floats(answer *a)
{
    static const char left[] = "left float: ";
    const oct_conversion *c = &a->s->c;
    reason r[MOST_REASONS] = { { NULL } }, *x;
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < c->n_layers; i++) {
        const oct_layer *l = &c->layers[i];
        size_t k = 0;
        if (!says_float(a->s, l))
            continue;
        while (k < n && strcmp(r[k].why, l->d.why) != 0)
            k++;
        if (k == MOST_REASONS)
            continue;
        n += k == n;
        r[k].why = l->d.why;
        count_layer(&r[k], l);
    }
    for (; shown < REASONS && (x = next_reason(r, n)); shown++) {
        for (size_t k = 0; k < OPERATORS && x->op[k]; k++)
            oct_buf_printf(&a->text, "%s%zu %s", k ? ", " : "", x->of_op[k], x->op[k]);
        if (x->others)
            oct_buf_printf(&a->text, ", %zu other%s", x->others, x->others == 1 ? "" : "s");
        oct_buf_printf(&a->text, " (%s%s): ", x->first, x->n > 1 ? " ..." : "");
        oct_session_reason(strncmp(x->why, left, sizeof left - 1) == 0 ? x->why + sizeof left - 1 : x->why, &a->text);
        oct_buf_puts(&a->text, ".");
        end_item(a, "float");
        x->n = 0;
    }
    if (n > shown) {
        oct_buf_printf(&a->text, "%zu more reason%s: -v shows all.", n - shown, n - shown == 1 ? "" : "s");
        end_item(a, "float");
    }
    if (c->finer.nodes) {
        const double less = 100 * (1 - 1 / c->finer.longer);
        oct_buf_printf(&a->text, "%zu node%s: the outputs had %.1f dB with %s on integers, as with --budget 3, ",
                       c->finer.nodes, c->finer.nodes == 1 ? "" : "s", c->finer.before,
                       c->finer.nodes == 1 ? "it" : "them");
        if (less < 0.5)
            oct_buf_puts(&a->text, "in the same time.");
        else
            oct_buf_printf(&a->text, "for %.0f %% less time.", less);
        end_item(a, "float");
    }
    if (c->n_floats) {
        oct_float_bytes_text(c->floats, c->n_floats, &a->text);
        oct_buf_puts(&a->text, ".");
        end_item(a, "float");
    }
}

/* ---- what to do ---- */

/* A conversion that loses less. */
static void put_cure(answer *a)
{
    const oct_session *s = a->s;
    octet_convert_options x = s->x;
    const oct_cure cure = oct_conversion_cure(&s->c);
    if (!s->c.curable || (!cure.scheme && !(cure.budget > 0)))
        return;
    if (cure.scheme)
        x.scheme = cure.scheme;
    else
        x.budget = cure.budget;
    char text[OCT_CURE_TEXT];
    oct_buf_printf(&a->text, "To lose less (%s):", oct_cure_text(text, &cure));
    put_conversion(a, &x);
    end_item(a, "try");
}

/* One without the few layers that cause most of the loss. */
static void put_culprits(answer *a)
{
    const oct_culprits *k = &a->s->c.culprits;
    char text[OCT_CULPRITS_TEXT];
    if (!k->names)
        return;
    oct_buf_printf(&a->text, "%zu node%s cause%s most of the loss; %s:", k->n, k->n == 1 ? "" : "s",
                   k->n == 1 ? "s" : "", oct_culprits_text(text, k));
    put_conversion(a, &a->s->x);
    for (size_t i = 0; a->command.len && i < k->n; i++) {
        oct_buf rule = OCT_BUF_INIT;
        oct_policy_put_name(&rule, "name:", k->layer[i]);
        oct_buf_puts(&rule, "=float");
        oct_buf_puts(&a->command, " --set ");
        oct_quote(&a->command, oct_buf_str(&rule));
        oct_buf_free(&rule);
    }
    end_item(a, "try");
}

/* A comparison on other samples, or the conversion itself after a dry run. */
static void put_next(answer *a)
{
    const oct_session *s = a->s;
    if (!is_repeatable(s) || oct_path_is_stream(s->output) || is_as_it_was(s))
        return;
    if (s->x.dry_run && !s->src && !s->c.calib && !s->x.scheme)
        return; /* samples come first: oct_session_advice */
    if (s->x.dry_run) {
        oct_buf_puts(&a->text, "To convert:");
        put_conversion(a, &s->x);
    } else {
        const bool runs = oct_runnable_whole(s->c.m->graph);
        oct_buf_puts(&a->text, !runs    ? "To compare both models by a command of a runtime that has their operators:"
                               : s->src ? "To compare both models, better on other samples than these:"
                                        : "To compare both models on samples of yours:");
        oct_guess_comparison(s, &a->command);
        if (!runs)
            oct_buf_puts(&a->command, " --runner COMMAND");
    }
    end_item(a, "next");
}

void oct_session_answer(const oct_session *s, oct_json *j)
{
    answer a = { .s = s, .j = j };
    oct_json_open(j, "answer", '[');
    put_file(&a);
    put_size(&a);
    put_layers(&a);
    put_speed(&a);
    put_accuracy(&a);
    put_floats(&a);
    put_cure(&a);
    put_culprits(&a);
    if (!oct_guess_questions(s, j))
        put_next(&a);
    oct_json_close(j);
    oct_buf_free(&a.text);
    oct_buf_free(&a.command);
}

void oct_session_sentence(const oct_session *s, oct_buf *b)
{
    static const char *const said[] = { "file", "goal", "size", "layers", "speed", "accuracy", "float" };
    oct_document *d = oct_document_create();
    if (!d) {
        b->failed = true;
        return;
    }
    oct_json j = { .to = d };
    oct_json_open(&j, NULL, '{');
    oct_session_answer(s, &j);
    oct_json_close(&j);
    const oct_item *items = oct_item_at(oct_document_root(d), "answer");
    b->failed |= !items;
    for (const oct_item *x = NULL; (x = oct_item_next(items, x));)
        for (size_t i = 0; i < OCT_COUNT(said); i++)
            if (strcmp(oct_item_text(x, "about"), said[i]) == 0 && !oct_item_at(x, "command"))
                oct_buf_printf(b, "%s%s", b->len ? " " : "", oct_item_text(x, "text"));
    oct_document_destroy(d);
}
