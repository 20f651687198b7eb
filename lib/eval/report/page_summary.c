/* The top of the page: the result in a sentence, and the key figures. */
#include "eval/report/page_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ev_put_others(ev_page *p)
{
    oct_buf_printf(p->b, "%zu", oct_item_count(p->models, "") - 1);
}

void ev_put_runner(ev_page *p)
{
    char text[OCT_RUNNER_TEXT];
    ev_page_text(p, oct_report_runner(text, sizeof text, p->model));
}

void ev_put_batch(ev_page *p)
{
    char text[OCT_RUNNER_TEXT];
    ev_page_text(p, oct_report_batch(text, sizeof text, p->report, p->model));
}

static const char *model_kind(const ev_page *p)
{
    static const char *const kinds[] = { "int8", "int16", "half", "blocks" };
    const oct_item *measured = oct_item_at(p->model, "layers"), *decided = oct_item_at(p->model, "nodes"),
                   *list = oct_item_is_any(measured) ? measured : decided;
    size_t count[OCT_COUNT(kinds)] = { 0 }, best = 0;
    for (const oct_item *l = NULL; (l = oct_item_next(list, l));)
        for (size_t i = 0; i < OCT_COUNT(kinds); i++)
            count[i] += strcmp(list == measured ? ev_page_row_kind(l, NULL) : ev_page_row_kind(NULL, l), kinds[i]) == 0;
    for (size_t i = 1; i < OCT_COUNT(kinds); i++)
        best = count[i] > count[best] ? i : best;
    return p->k && (count[best] || oct_item_number(p->model, "integer_layers") > 0) ? kinds[best] : "float";
}

void ev_put_model_kind(ev_page *p)
{
    oct_buf_puts(p->b, model_kind(p));
}

/* A bar beside those of the other models. words: the path of the number in a model. */
void ev_form_bar_cell(const ev_page *p, const oct_item *x, const char *words)
{
    double most = 0;
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        most = fmax(most, oct_item_number(m, words));
    oct_buf_printf(p->b, "<td class=\"strip\"><span class=\"bar %s\" style=\"width:%.1f%%\"></span></td>",
                   model_kind(p), 100 * oct_item_number(x, "") / most);
}

/* "Meets all 3 gates; for 1 the measurement does not suffice to be certain." Green and red are used only for certain
 * results: one gate that is missed for certain makes it red. */
void ev_put_gates_said(ev_page *p)
{
    size_t n = 0, missed = 0, unsure = 0, failed = 0;
    const oct_item *gates = oct_item_at(p->report, "gates");
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));) {
        const bool own = oct_item_whole(g, "model_number") == (int64_t)p->k, met = oct_item_true(g, "met"),
                   doubt = oct_item_true(g, "unsure");
        n += own;
        missed += own && !met;
        unsure += own && doubt;
        failed += own && !met && !doubt;
    }
    if (!n)
        return;
    oct_buf_printf(p->b, "<span class=\"mark %s\">", failed ? "bad" : unsure ? "mid" : "good");
    if (missed)
        oct_buf_printf(p->b, "Misses %zu of %zu gate%s", missed, n, n == 1 ? "" : "s");
    else if (n > 1)
        oct_buf_printf(p->b, "Meets all %zu gates", n);
    else
        oct_buf_puts(p->b, "Meets its gate");
    if (unsure && n > 1)
        oct_buf_printf(p->b, "; for %zu the measurement does not suffice to be certain", unsure);
    else if (unsure)
        oct_buf_puts(p->b, ", but the measurement does not suffice to be certain");
    oct_buf_puts(p->b, ".</span> ");
}

/* Of the float model; 0: not known. */
static double bytes_before(const ev_page *p, const char *member)
{
    const double v = oct_item_number(oct_item_at(p->report, "float"), member);
    return v > 0 ? v : 0;
}

/* Whether the item of an answer is about something else than the one before. */
bool ev_is_other_subject(const ev_page *p)
{
    return p->i == 0 ||
           strcmp(oct_item_text(p->x, "about"), oct_item_text(oct_item_of(p->list, p->i - 1), "about")) != 0;
}

/* " is 3.67 times smaller than m.onnx" */
void ev_put_size_said(ev_page *p)
{
    const double ratio = bytes_before(p, "size_bytes") / oct_item_number(p->model, "size_bytes");
    if (!(ratio > 0) || isinf(ratio))
        return;
    if (fabs(ratio - 1) < 0.005)
        oct_buf_puts(p->b, " is as large as ");
    else
        oct_buf_printf(p->b, " is %.2f times %s than ", ratio < 1 ? 1 / ratio : ratio,
                       ratio < 1 ? "larger" : "smaller");
    ev_page_text(p, ev_page_base(oct_item_text(p->report, "float.path")));
}

bool ev_is_speed_unknown(const ev_page *p)
{
    const char *verdict = oct_item_text(p->model, "speed.verdict");
    return verdict && strcmp(verdict, "unknown") == 0;
}

/* Of a model whose weights are stored in blocks, no layer need run on integers. */
bool ev_is_says_integers(const ev_page *p)
{
    return oct_item_number(p->model, "integer_layers") > 0 || !oct_item_count(p->model, "blocks");
}

void ev_put_speed_said(ev_page *p)
{
    if (!oct_item_at(p->model, "speed"))
        return;
    oct_buf_puts(p->b, ev_is_speed_unknown(p) ? "; " : ", and ");
    ev_page_text(p, oct_item_text(p->model, "speed.text"));
}

/* Of the score that counts: the first one, as for a limit that names none. */
void ev_put_score_said(ev_page *p)
{
    ev_page of = *p;
    of.metric = oct_item_next(oct_item_at(p->report, "metrics"), NULL);
    const oct_item *drop = of.metric ? ev_page_drop(&of) : NULL;
    if (!drop)
        return;
    oct_buf_puts(p->b, bytes_before(p, "size_bytes") > 0 && oct_item_number(p->model, "size_bytes") > 0 ? "; " : ": ");
    ev_page_text(p, oct_item_text(of.metric, "name"));
    oct_buf_puts(p->b, " is ");
    ev_page_value(p, of.metric, ev_page_score(&of));
    if (!oct_item_true(of.metric, "relative")) {
        oct_buf_puts(p->b, " against ");
        ev_page_value(p, of.metric, oct_item_number(drop, "float"));
    }
    oct_buf_puts(p->b, ", ");
    ev_page_text(p, oct_item_text(drop, "text"));
}

enum { MOST_SCORES = 2 }; /* others are only in the table */

static bool may_head(const ev_page *p)
{
    return !isnan(ev_page_score(p)) && strcmp(oct_item_text(p->metric, "name"), "sqnr") != 0;
}

/* Whether the metric in the loop is one of the first that the model has. */
bool ev_is_headline(const ev_page *p)
{
    ev_page of = *p;
    size_t before = 0;
    const oct_item *metrics = oct_item_at(p->report, "metrics");
    for (of.metric = NULL; (of.metric = oct_item_next(metrics, of.metric)) && of.metric != p->metric;)
        before += may_head(&of);
    return may_head(p) && before < MOST_SCORES;
}

void ev_put_figure(ev_page *p)
{
    ev_page_value(p, p->metric, ev_page_score(p));
}

/* What the samples cannot tell is neither good nor bad. Of a metric that compares with float itself, a difference is no
 * loss. */
void ev_put_figure_said(ev_page *p)
{
    const oct_item *drop = ev_page_drop(p);
    const bool noise = oct_item_true(drop, "within_noise"), worse = oct_item_number(drop, "value") > 0;
    if (oct_item_true(p->metric, "relative")) {
        oct_buf_puts(p->b, "against float");
        return;
    }
    if (!drop)
        return;
    oct_buf_puts(p->b, "float ");
    ev_page_value(p, p->metric, oct_item_number(drop, "float"));
    if (!isnan(oct_item_number(drop, "low")))
        oct_buf_printf(p->b, "; <span class=\"%s\">%s</span>",
                       noise   ? "soft"
                       : worse ? "bad"
                               : "good",
                       noise   ? "within noise"
                       : worse ? "beyond noise"
                               : "better");
}

static void put_share(const ev_page *p, const char *member, const char *behind)
{
    oct_buf_printf(p->b, "%.1f %%%s", 100 * oct_item_number(p->model, member) / bytes_before(p, member), behind);
}

void ev_put_size_share(ev_page *p)
{
    put_share(p, "size_bytes", "");
}

void ev_put_size_of_float(ev_page *p)
{
    if (p->k && bytes_before(p, "size_bytes") > 0)
        put_share(p, "size_bytes", " of float");
}

void ev_put_memory_of_float(ev_page *p)
{
    if (p->k && bytes_before(p, "peak_bytes") > 0)
        put_share(p, "peak_bytes", " of float");
}
