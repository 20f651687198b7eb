/* JUnit XML, which CI systems show as tests; and escaping of text for XML. */
#include "eval/report/report.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>

void oct_xml_text(oct_buf *out, const char *s)
{
    char one[12];
    const char *const all = s;
    while (*s) {
        const bool command = oct_text_is_command(all, s);
        s += oct_char_clean(one, s, false);
        oct_buf_puts(out, command       ? *one == ':' ? "&#58;" : "&#35;"
                          : *one == '&' ? "&amp;"
                          : *one == '<' ? "&lt;"
                          : *one == '>' ? "&gt;"
                          : *one == '"' ? "&quot;"
                                        : one);
    }
}

static void open_suite(oct_buf *out, size_t tests, size_t failures)
{
    oct_buf_printf(
        out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"qeval\" tests=\"%zu\" failures=\"%zu\">\n",
        tests, failures);
}

static void put_case(oct_buf *out, const char *class_name, const char *name, double seconds, const char *failure,
                     const char *text)
{
    oct_buf_puts(out, "  <testcase classname=\"");
    oct_xml_text(out, class_name);
    oct_buf_puts(out, "\" name=\"");
    oct_xml_text(out, name);
    oct_buf_printf(out, "\" time=\"%.6f\">\n", seconds);
    if (failure) {
        oct_buf_puts(out, "    <failure message=\"");
        oct_xml_text(out, failure);
        oct_buf_puts(out, "\"/>\n");
    }
    oct_buf_puts(out, "    <system-out>");
    oct_xml_text(out, text);
    oct_buf_puts(out, "</system-out>\n  </testcase>\n");
}

/* ---- a model ---- */

static double seconds_of(const oct_item *model)
{
    const double ms = oct_item_number(model, "latency_ms.median");
    return isnan(ms) ? 0 : ms / 1e3;
}

static void put_score(oct_buf *out, const oct_item *model, const oct_item *value)
{
    char is[32], was[32];
    const char *name = oct_item_name(value);
    const oct_item *drop = oct_item_member(oct_item_at(model, "drop"), name);
    const double reference = oct_item_number(drop, "float");
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%s %s", name, oct_f64_text(is, oct_item_number(value, "")));
    if (!isnan(reference))
        oct_buf_printf(&text, ", float %s: %s", oct_f64_text(was, reference), oct_item_text(drop, "text"));
    if (oct_item_text(drop, "interval"))
        oct_buf_printf(&text, "; %s", oct_item_text(drop, "interval"));
    put_case(out, oct_item_text(model, "path"), name, seconds_of(model), NULL, oct_buf_str(&text));
    oct_buf_free(&text);
}

static void put_samples(oct_buf *out, const oct_item *report, const oct_item *model)
{
    char shared[OCT_RUNNER_TEXT];
    const oct_item *models = oct_item_at(report, "models");
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%.0f used, %.0f broken and left out", oct_item_number(report, "samples"),
                   oct_item_number(report, "bad_samples"));
    for (const oct_item *m = NULL; (m = oct_item_next(models, m));)
        if (oct_report_batch(shared, sizeof shared, report, m))
            oct_buf_printf(&text, "; %s %s", oct_item_text(m, "path"), shared);
    put_case(out, oct_item_text(model, "path"), "samples", seconds_of(model), NULL, oct_buf_str(&text));
    oct_buf_free(&text);
}

static void put_property(oct_buf *out, const char *name, const char *value)
{
    oct_buf_printf(out, "      <property name=\"%s\" value=\"", name);
    oct_xml_text(out, value ? value : "");
    oct_buf_puts(out, "\"/>\n");
}

static void put_number(oct_buf *out, const char *name, const char *format, double value)
{
    char text[32];
    snprintf(text, sizeof text, format, value);
    if (!isnan(value))
        put_property(out, name, text);
}

/* Where the numbers come from: the machine and its state, and times with their quartiles; ~ marks times whose quartiles
 * are too far apart for a conclusion. */
static void put_properties(oct_buf *out, const oct_item *report, const oct_item *model)
{
    const oct_item *l = oct_item_at(model, "latency_ms");
    const char *runner = oct_item_text(model, "runner"), *cpu = oct_item_text(report, "environment.cpu");
    char text[128];
    oct_buf_puts(out, "    <properties>\n");
    put_property(out, "version", "octet " OCT_VERSION);
    if (runner)
        put_property(out, "runner", runner);
    put_property(out, "cpu", cpu);
    put_number(out, "processors", "%.0f", oct_item_number(report, "environment.processors"));
    put_property(out, "isa", oct_item_text(report, "isa"));
    put_property(out, "isa-available", oct_item_text(report, "environment.isa_available"));
    put_number(out, "threads", "%.0f", oct_item_number(report, "threads"));
    put_number(out, "load", "%.2f", oct_item_number(report, "environment.load"));
    if (oct_item_is_any(l)) {
        snprintf(text, sizeof text, "%s%.4g (quartiles %.4g to %.4g, %.0f runs)", oct_item_true(l, "wide") ? "~" : "",
                 oct_item_number(l, "median"), oct_item_number(l, "q1"), oct_item_number(l, "q3"),
                 oct_item_number(l, "runs"));
        put_property(out, "latency-ms", text);
    }
    if (oct_item_text(model, "speed.text"))
        put_property(out, "speed", oct_item_text(model, "speed.text"));
    put_number(out, "samples", "%.0f", oct_item_number(report, "samples"));
    put_property(out, "preprocess", oct_item_text(report, "preprocess"));
    oct_buf_puts(out, "    </properties>\n");
}

/* The cases of a model, and with out those of its gates; counts them. */
static size_t put_gates(oct_buf *out, const oct_item *report, const oct_item *model, size_t k, size_t *missed)
{
    const oct_item *gates = oct_item_at(report, "gates");
    size_t n = 0;
    *missed = 0;
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));) {
        const char *text = oct_item_text(g, "text");
        const bool met = oct_item_true(g, "met");
        if (oct_item_whole(g, "model_number") != (int64_t)k)
            continue;
        n++;
        *missed += !met;
        if (out)
            put_case(out, oct_item_text(model, "path"), oct_item_text(g, "title"), seconds_of(model), met ? NULL : text,
                     text);
    }
    return n;
}

/* A case for the samples, one for each metric that the model has, and one for each gate. */
static size_t count_cases(const oct_item *report, const oct_item *model, size_t k, size_t *missed)
{
    return 1 + oct_item_count(model, "metrics") + put_gates(NULL, report, model, k, missed);
}

static void put_suite(oct_buf *out, const oct_item *report, const oct_item *model, size_t k)
{
    const oct_item *values = oct_item_at(model, "metrics");
    size_t missed, n = count_cases(report, model, k, &missed);
    oct_buf_puts(out, "  <testsuite name=\"");
    oct_xml_text(out, oct_item_text(model, "path"));
    oct_buf_printf(out, "\" tests=\"%zu\" failures=\"%zu\" time=\"%.3f\">\n", n, missed,
                   oct_item_number(report, "seconds"));
    put_properties(out, report, model);
    put_samples(out, report, model);
    for (const oct_item *v = NULL; (v = oct_item_next(values, v));)
        put_score(out, model, v);
    put_gates(out, report, model, k, &missed);
    oct_buf_puts(out, "  </testsuite>\n");
}

void oct_report_junit(const oct_item *report, oct_buf *out)
{
    const oct_item *models = oct_item_at(report, "models");
    size_t tests = 0, failures = 0, missed, n = oct_item_count(models, "");
    const size_t first = n > 1 ? 1 : 0;
    for (size_t k = first; k < n; k++) {
        tests += count_cases(report, oct_item_of(models, k), k, &missed);
        failures += missed;
    }
    oct_buf_printf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"qeval\" tests=\"%zu\" failures=\"%zu\" time=\"%.3f\">\n",
        tests, failures, oct_item_number(report, "seconds"));
    for (size_t k = first; k < n; k++)
        put_suite(out, report, oct_item_of(models, k), k);
    oct_buf_puts(out, "</testsuites>\n");
}

void oct_check_junit(const char *model, const char *dir, const oct_check_result *r, oct_buf *out)
{
    char text[100];
    snprintf(text, sizeof text, "%zu outputs, %llu values, %llu differ, by at most %.6g", r->outputs,
             (unsigned long long)r->values, (unsigned long long)r->differ, r->max_abs);
    open_suite(out, 1, r->first[0] != 0);
    put_case(out, model, dir, 0, r->first[0] ? r->first : NULL, text);
    oct_buf_puts(out, "</testsuite>\n");
}
