/* JUnit XML, which CI systems show as tests; and text made safe for XML. */
#include "eval/report.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>

void oct_xml_text(oct_buf *out, const char *s)
{
    char one[12];
    while (*s) {
        s += oct_char_clean(one, s, false);
        oct_buf_puts(out, *one == '&' ? "&amp;" : *one == '<' ? "&lt;" : *one == '>' ? "&gt;" : *one == '"' ? "&quot;" : one);
    }
}

static void open_suite(oct_buf *out, size_t tests, size_t failures)
{
    oct_buf_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"qeval\" tests=\"%zu\" failures=\"%zu\">\n",
                   tests, failures);
}

static void put_case(oct_buf *out, const char *class_name, const char *name, const char *failure, const char *text)
{
    oct_buf_puts(out, "  <testcase classname=\"");
    oct_xml_text(out, class_name);
    oct_buf_puts(out, "\" name=\"");
    oct_xml_text(out, name);
    oct_buf_puts(out, "\">\n");
    if (failure) {
        oct_buf_puts(out, "    <failure message=\"");
        oct_xml_text(out, failure);
        oct_buf_puts(out, "\"/>\n");
    }
    oct_buf_puts(out, "    <system-out>");
    oct_xml_text(out, text);
    oct_buf_puts(out, "</system-out>\n  </testcase>\n");
}

static bool missed(const oct_eval_score *s, const oct_report_context *c)
{
    return s->metric == c->goal && oct_eval_judge(s, &c->limit).missed;
}

static void put_score(oct_buf *out, const oct_eval_model_result *m, const oct_eval_score *s, const oct_report_context *c)
{
    char value[32], reference[32], words[OCT_GATE_TEXT];
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%s %s", s->metric->name, oct_f64_text(value, s->value));
    if (!isnan(s->reference))
        oct_buf_printf(&text, ", float %s: %s", oct_f64_text(reference, s->reference), oct_report_drop(words, s));
    if (s->method)
        oct_buf_printf(&text, "; %s", s->method);
    if (s->metric == c->goal)
        oct_buf_printf(&text, "; goal: %s", oct_report_gate(words, s, &c->limit));
    put_case(out, m->name, s->metric->name, missed(s, c) ? oct_report_gate(words, s, &c->limit) : NULL, oct_buf_str(&text));
    oct_buf_free(&text);
}

void oct_report_junit(const oct_eval_result *r, const oct_report_context *c, oct_buf *out)
{
    size_t tests = 1, failures = 0;
    const size_t first = r->n_models > 1 ? 1 : 0;
    for (size_t k = first; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_scores; i++) {
            tests += !isnan(r->models[k].scores[i].value);
            failures += missed(&r->models[k].scores[i], c);
        }
    open_suite(out, tests, failures);
    char shared[OCT_BATCH_TEXT];
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%lld used, %lld broken and left out", (long long)r->samples, (long long)r->bad_samples);
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_batch(shared, r, k))
            oct_buf_printf(&text, "; %s %s", r->models[k].name, shared);
    put_case(out, "qeval", "samples", NULL, oct_buf_str(&text));
    oct_buf_free(&text);
    for (size_t k = first; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_scores; i++)
            if (!isnan(r->models[k].scores[i].value))
                put_score(out, &r->models[k], &r->models[k].scores[i], c);
    oct_buf_puts(out, "</testsuite>\n");
}

void oct_check_junit(const char *model, const char *dir, const oct_check_result *r, oct_buf *out)
{
    char text[100];
    snprintf(text, sizeof text, "%zu outputs, %llu values, %llu differ, by at most %.6g", r->outputs,
             (unsigned long long)r->values, (unsigned long long)r->differ, r->max_abs);
    open_suite(out, 1, r->first[0] != 0);
    put_case(out, model, dir, r->first[0] ? r->first : NULL, text);
    oct_buf_puts(out, "</testsuite>\n");
}
