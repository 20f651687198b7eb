/* Markdown, for the summary of a job: a table of measurements and one of gates for each model. */
#include "eval/report/report.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Appends text so that neither Markdown nor HTML interprets it: special characters become numeric entities, and
 * invisible ones are replaced as by oct_char_clean. */
static void put_text(oct_buf *b, const char *s)
{
    char one[12];
    while (s && *s) {
        s += oct_char_clean(one, s, false);
        if (!one[1] && strchr("\\`*_{}[]()<>#!|~&\"'@:$^", *one))
            oct_buf_printf(b, "&#%d;", *one);
        else
            oct_buf_puts(b, one);
    }
}

static void put_value(oct_buf *b, const oct_metric *m, double v)
{
    if (isnan(v))
        return;
    if (oct_metric_in_percent(m))
        oct_buf_printf(b, "%.2f %%", 100 * v);
    else if (isinf(v))
        oct_buf_puts(b, v > 0 && m->larger_is_better ? "equal" : "not finite");
    else
        oct_buf_printf(b, "%.6g%s%s", v, *m->unit ? " " : "", m->unit);
}

static void put_scores(oct_buf *b, const oct_eval_result *r, size_t k)
{
    char words[OCT_DROP_TEXT];
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_eval_score *s = &r->models[k].scores[i];
        if (isnan(s->value))
            continue;
        oct_buf_printf(b, "| %s | ", s->metric->name);
        if (k) {
            put_value(b, s->metric, r->models[0].scores[i].value);
            oct_buf_puts(b, " | ");
        }
        put_value(b, s->metric, s->value);
        oct_buf_puts(b, k ? " | " : "");
        if (k)
            oct_buf_puts(b, oct_report_drop(words, s));
        oct_buf_puts(b, " |\n");
    }
}

/* A median, with ~ before it if the quartiles are far apart. The ~ is escaped, because two of them would strike out the
 * text between them. */
static void put_latency(oct_buf *b, const oct_eval_latency *l)
{
    oct_buf_printf(b, "%s%.4g ms", oct_is_scattered(l->q1, l->median, l->q3) ? "&#126;" : "", l->median * 1e3);
}

/* The costs if there is only one model. */
static void put_own_costs(oct_buf *b, const oct_eval_model_result *m)
{
    if (m->latency.runs) {
        oct_buf_puts(b, "| latency | ");
        put_latency(b, &m->latency);
        oct_buf_puts(b, " |\n");
    }
    oct_buf_printf(b, "| size | %.4g MB |\n", (double)m->size_bytes * 1e-6);
    if (!m->runner)
        oct_buf_printf(b, "| memory | %.4g MB |\n", (double)m->peak_bytes * 1e-6);
}

static void put_costs(oct_buf *b, const oct_eval_result *r, size_t k)
{
    const oct_eval_model_result *f = &r->models[0], *m = &r->models[k];
    char words[OCT_SPEED_TEXT];
    if (m->latency.runs) {
        oct_buf_puts(b, "| latency | ");
        put_latency(b, &f->latency);
        oct_buf_puts(b, " | ");
        put_latency(b, &m->latency);
        oct_buf_puts(b, " | ");
        oct_buf_puts(b, oct_report_speed(words, &m->speed));
        oct_buf_puts(b, " |\n");
    }
    for (int row = 0; row < (f->runner || m->runner ? 1 : 2); row++) {
        const uint64_t was = row ? f->peak_bytes : f->size_bytes, is = row ? m->peak_bytes : m->size_bytes;
        oct_buf_printf(b, "| %s | %.4g MB | %.4g MB | ", row ? "memory" : "size", (double)was * 1e-6,
                       (double)is * 1e-6);
        if (was)
            oct_buf_printf(b, "%.1f %%", 100 * (double)is / (double)was);
        oct_buf_puts(b, " |\n");
    }
}

static const char *mark(const oct_gate_result *g)
{
    return !g->met ? "\xe2\x9d\x8c" : g->unsure ? "\xe2\x9a\xa0\xef\xb8\x8f" : "\xe2\x9c\x85";
}

static void put_gates(oct_buf *b, const oct_report_context *c, size_t k)
{
    char title[OCT_GATE_TITLE], words[OCT_GATE_TEXT];
    bool any = false;
    for (size_t i = 0; i < c->n_gates; i++) {
        const oct_gate_result *g = &c->gates[i];
        if (g->model != k)
            continue;
        oct_buf_puts(b, any ? "" : "\n| gate | | |\n| --- | --- | --- |\n");
        any = true;
        oct_buf_printf(b, "| %s | %s | %s |\n", oct_report_gate_title(title, g), mark(g),
                       oct_report_gate_result(words, g));
    }
}

/* Which runtime ran the model and the float model, if it is not ours. */
static void put_runners(oct_buf *b, const oct_eval_result *r, size_t k)
{
    const char *is = r->models[k].runner, *was = r->models[0].runner;
    if (!is && !was)
        return;
    oct_buf_puts(b, "\n\nin ");
    put_text(b, is ? is : "octet");
    oct_buf_puts(b, is && !was ? "; the float model in octet" : "");
}

static void put_model(oct_buf *b, const oct_eval_result *r, const oct_report_context *c, size_t k)
{
    const oct_gate_result *worst = NULL; /* a missed gate, else one of which the measurement is unsure, else any */
    for (size_t i = 0; i < c->n_gates; i++) {
        const oct_gate_result *g = &c->gates[i];
        if (g->model == k && (!worst || (worst->met && (!g->met || (g->unsure && !worst->unsure)))))
            worst = g;
    }
    oct_buf_printf(b, "### %s%s", worst ? mark(worst) : "", worst ? " " : "");
    put_text(b, r->models[k].name);
    put_runners(b, r, k);
    oct_buf_puts(b, k ? "\n\n| | float | quantized | |\n| --- | ---: | ---: | --- |\n" : "\n\n| | |\n| --- | ---: |\n");
    put_scores(b, r, k);
    if (k)
        put_costs(b, r, k);
    else
        put_own_costs(b, &r->models[0]);
    put_gates(b, c, k);
    oct_buf_puts(b, "\n");
}

void oct_report_markdown(const oct_eval_result *r, const oct_report_context *c, oct_buf *out)
{
    for (size_t k = r->n_models > 1 ? 1 : 0; k < r->n_models; k++)
        put_model(out, r, c, k);
    oct_buf_printf(out, "%lld samples", (long long)r->samples);
    if (r->bad_samples)
        oct_buf_printf(out, ", %lld broken and left out", (long long)r->bad_samples);
    char machine[OCT_ENVIRONMENT_TEXT];
    oct_buf_puts(out, "; ");
    put_text(out, oct_report_environment(machine, r, c->version));
    oct_buf_puts(out, "\n");
}
