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

static void put_value(oct_buf *b, const oct_item *metric, const oct_item *value)
{
    const double v = oct_item_number(value, "");
    const char *unit = oct_item_text(metric, "unit");
    if (isnan(v))
        return;
    if (oct_item_true(metric, "percent"))
        oct_buf_printf(b, "%.2f %%", 100 * v);
    else if (isinf(v))
        oct_buf_puts(b, v > 0 && oct_item_true(metric, "larger_is_better") ? "equal" : "not finite");
    else
        oct_buf_printf(b, "%.6g%s%s", v, *unit ? " " : "", unit);
}

static void put_scores(oct_buf *b, const oct_item *report, const oct_item *model, bool compared)
{
    const oct_item *metrics = oct_item_at(report, "metrics"), *was = oct_item_at(report, "float.metrics");
    for (const oct_item *m = NULL; (m = oct_item_next(metrics, m));) {
        const char *name = oct_item_text(m, "name");
        const oct_item *is = oct_item_member(oct_item_at(model, "metrics"), name);
        const char *text = oct_item_text(oct_item_member(oct_item_at(model, "drop"), name), "text");
        if (!is)
            continue;
        oct_buf_printf(b, "| %s | ", name);
        if (compared) {
            put_value(b, m, oct_item_member(was, name));
            oct_buf_puts(b, " | ");
        }
        put_value(b, m, is);
        if (compared)
            oct_buf_printf(b, " | %s", text ? text : "");
        oct_buf_puts(b, " |\n");
    }
}

/* A median, with ~ before it if the quartiles are far apart. The ~ is escaped, because two of them would strike out the
 * text between them. */
static void put_latency(oct_buf *b, const oct_item *model)
{
    oct_buf_printf(b, "%s%.4g ms", oct_item_true(model, "latency_ms.wide") ? "&#126;" : "",
                   oct_item_number(model, "latency_ms.median"));
}

/* A row of sizes; was: NULL if there is only one model. A size that is not known has no row. */
static void put_bytes(oct_buf *b, const char *title, const char *member, const oct_item *was, const oct_item *is)
{
    const double now = oct_item_number(is, member), before = oct_item_number(was, member);
    if (isnan(now) || (was && isnan(before)))
        return;
    oct_buf_printf(b, "| %s | ", title);
    if (was)
        oct_buf_printf(b, "%.4g MB | ", before * 1e-6);
    oct_buf_printf(b, "%.4g MB |", now * 1e-6);
    if (was && before > 0)
        oct_buf_printf(b, " %.1f %% |", 100 * now / before);
    oct_buf_puts(b, was && !(before > 0) ? "  |\n" : "\n");
}

/* was: the float model; NULL if there is only one model. */
static void put_costs(oct_buf *b, const oct_item *was, const oct_item *is)
{
    if (oct_item_is_any(oct_item_at(is, "latency_ms"))) {
        const char *speed = oct_item_text(is, "speed.text");
        oct_buf_puts(b, "| latency | ");
        if (was) {
            put_latency(b, was);
            oct_buf_puts(b, " | ");
        }
        put_latency(b, is);
        if (was)
            oct_buf_printf(b, " | %s", speed ? speed : "");
        oct_buf_puts(b, " |\n");
    }
    put_bytes(b, "size", "size_bytes", was, is);
    put_bytes(b, "memory", "peak_bytes", was, is);
}

static const char *mark(const oct_item *gate)
{
    return !oct_item_true(gate, "met")     ? "\xe2\x9d\x8c"
           : oct_item_true(gate, "unsure") ? "\xe2\x9a\xa0\xef\xb8\x8f"
                                           : "\xe2\x9c\x85";
}

static void put_gates(oct_buf *b, const oct_item *report, size_t k)
{
    const oct_item *gates = oct_item_at(report, "gates");
    bool any = false;
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));) {
        if (oct_item_whole(g, "model_number") != (int64_t)k)
            continue;
        oct_buf_puts(b, any ? "" : "\n| gate | | |\n| --- | --- | --- |\n");
        any = true;
        oct_buf_printf(b, "| %s | %s | %s |\n", oct_item_text(g, "title"), mark(g), oct_item_text(g, "text"));
    }
}

/* Where the runtime that it is computed as differs from ours. */
static void put_device(oct_buf *b, const oct_item *model)
{
    const char *text = oct_item_text(model, "device.text");
    if (!text)
        return;
    oct_buf_puts(b, "\n");
    put_text(b, text);
    oct_buf_puts(b, ".\n");
}

/* Which runtime ran the model and the float model, if it is not ours. */
static void put_runners(oct_buf *b, const oct_item *report, const oct_item *model)
{
    const char *is = oct_item_text(model, "runner"), *was = oct_item_text(report, "float.runner");
    if (!is && !was)
        return;
    oct_buf_puts(b, "\n\nin ");
    put_text(b, is ? is : "octet");
    oct_buf_puts(b, is && !was ? "; the float model in octet" : "");
}

static void put_model(oct_buf *b, const oct_item *report, const oct_item *model, size_t k)
{
    const oct_item *worst = oct_report_worst_gate(report, k);
    oct_buf_printf(b, "### %s%s", worst ? mark(worst) : "", worst ? " " : "");
    put_text(b, oct_item_text(model, "path"));
    put_runners(b, report, model);
    oct_buf_puts(b, k ? "\n\n| | float | quantized | |\n| --- | ---: | ---: | --- |\n" : "\n\n| | |\n| --- | ---: |\n");
    put_scores(b, report, model, k > 0);
    put_costs(b, k ? oct_item_at(report, "float") : NULL, model);
    put_gates(b, report, k);
    put_device(b, model);
    oct_buf_puts(b, "\n");
}

void oct_report_markdown(const oct_item *report, oct_buf *out)
{
    const oct_item *models = oct_item_at(report, "models");
    const size_t n = oct_item_count(models, "");
    for (size_t k = n > 1 ? 1 : 0; k < n; k++)
        put_model(out, report, oct_item_of(models, k), k);
    oct_buf_printf(out, "%.0f samples", oct_item_number(report, "samples"));
    if (oct_item_whole(report, "bad_samples"))
        oct_buf_printf(out, ", %.0f broken and left out", oct_item_number(report, "bad_samples"));
    oct_buf_puts(out, "; ");
    put_text(out, oct_item_text(report, "environment.text"));
    oct_buf_puts(out, "\n");
}
