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

static void put_score(oct_buf *out, const oct_eval_model_result *m, const oct_eval_score *s)
{
    char value[32], reference[32], words[OCT_GATE_TEXT];
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%s %s", s->metric->name, oct_f64_text(value, s->value));
    if (!isnan(s->reference))
        oct_buf_printf(&text, ", float %s: %s", oct_f64_text(reference, s->reference), oct_report_drop(words, s));
    if (s->method)
        oct_buf_printf(&text, "; %s", s->method);
    put_case(out, m->name, s->metric->name, m->latency.median, NULL, oct_buf_str(&text));
    oct_buf_free(&text);
}

static void put_samples(oct_buf *out, const oct_eval_result *r, const oct_eval_model_result *m)
{
    char shared[OCT_BATCH_TEXT];
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%lld used, %lld broken and left out", (long long)r->samples, (long long)r->bad_samples);
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_batch(shared, r, k))
            oct_buf_printf(&text, "; %s %s", r->models[k].name, shared);
    put_case(out, m->name, "samples", m->latency.median, NULL, oct_buf_str(&text));
    oct_buf_free(&text);
}

static void put_gate(oct_buf *out, const oct_eval_model_result *m, const oct_gate_result *g)
{
    char title[OCT_GATE_TITLE], words[OCT_GATE_TEXT];
    oct_report_gate_result(words, g);
    put_case(out, m->name, oct_report_gate_title(title, g), m->latency.median, g->met ? NULL : words, words);
}

static void put_property(oct_buf *out, const char *name, const char *value)
{
    oct_buf_printf(out, "      <property name=\"%s\" value=\"", name);
    oct_xml_text(out, value ? value : "");
    oct_buf_puts(out, "\"/>\n");
}

static void put_number(oct_buf *out, const char *name, long long value)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", value);
    put_property(out, name, number);
}

/* The machine and its state, and times with their quartiles; ~ marks times whose quartiles are too far apart for a
 * conclusion. */
static void put_environment(oct_buf *out, const oct_eval_result *r, size_t k)
{
    const oct_environment *e = &r->environment;
    const oct_eval_latency *l = &r->models[k].latency;
    char text[OCT_SPEED_TEXT];
    put_property(out, "cpu", e->cpu);
    put_number(out, "processors", e->processors);
    put_property(out, "isa", r->isa);
    put_property(out, "isa-available", e->available);
    put_number(out, "threads", r->threads);
    if (!isnan(e->load)) {
        snprintf(text, sizeof text, "%.2f", e->load);
        put_property(out, "load", text);
    }
    if (l->runs) {
        snprintf(text, sizeof text, "%s%.4g (quartiles %.4g to %.4g, %d runs)",
                 oct_is_scattered(l->q1, l->median, l->q3) ? "~" : "", l->median * 1e3, l->q1 * 1e3, l->q3 * 1e3,
                 l->runs);
        put_property(out, "latency-ms", text);
    }
    if (r->models[k].speed.runs)
        put_property(out, "speed", oct_report_speed(text, &r->models[k].speed));
}

/* Where the numbers come from. */
static void put_properties(oct_buf *out, const oct_eval_result *r, const oct_report_context *c, size_t k)
{
    oct_buf_puts(out, "    <properties>\n");
    put_property(out, "version", c->version);
    if (r->models[k].runner)
        put_property(out, "runner", r->models[k].runner);
    put_environment(out, r, k);
    put_number(out, "samples", (long long)r->samples);
    put_property(out, "preprocess", c->preprocess);
    oct_buf_puts(out, "    </properties>\n");
}

static size_t count_missed(const oct_report_context *c, size_t k)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_gates; i++)
        n += c->gates[i].model == k && !c->gates[i].met;
    return n;
}

static size_t count_cases(const oct_eval_result *r, const oct_report_context *c, size_t k)
{
    size_t n = 1;
    for (size_t i = 0; i < r->n_scores; i++)
        n += !isnan(r->models[k].scores[i].value);
    for (size_t i = 0; i < c->n_gates; i++)
        n += c->gates[i].model == k;
    return n;
}

static void put_suite(oct_buf *out, const oct_eval_result *r, const oct_report_context *c, size_t k)
{
    const oct_eval_model_result *m = &r->models[k];
    oct_buf_puts(out, "  <testsuite name=\"");
    oct_xml_text(out, m->name);
    oct_buf_printf(out, "\" tests=\"%zu\" failures=\"%zu\" time=\"%.3f\">\n", count_cases(r, c, k), count_missed(c, k),
                   r->seconds);
    put_properties(out, r, c, k);
    put_samples(out, r, m);
    for (size_t i = 0; i < r->n_scores; i++)
        if (!isnan(m->scores[i].value))
            put_score(out, m, &m->scores[i]);
    for (size_t i = 0; i < c->n_gates; i++)
        if (c->gates[i].model == k)
            put_gate(out, m, &c->gates[i]);
    oct_buf_puts(out, "  </testsuite>\n");
}

void oct_report_junit(const oct_eval_result *r, const oct_report_context *c, oct_buf *out)
{
    size_t tests = 0, failures = 0;
    const size_t first = r->n_models > 1 ? 1 : 0;
    for (size_t k = first; k < r->n_models; k++) {
        tests += count_cases(r, c, k);
        failures += count_missed(c, k);
    }
    oct_buf_printf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"qeval\" tests=\"%zu\" failures=\"%zu\" time=\"%.3f\">\n",
        tests, failures, r->seconds);
    for (size_t k = first; k < r->n_models; k++)
        put_suite(out, r, c, k);
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
