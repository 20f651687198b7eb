/* The HTML report: one page without scripts or links, in the colours the browser asks for. */
#include "eval/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>qeval</title>\n<style>\n"
    ":root{--bg:#fbfbfa;--card:#fff;--ink:#1d2126;--soft:#68717d;--line:#e4e6e9;--good:#2b8a5b;--bad:#c2412d;--mid:#b7791f;"
    "--int:#3867d6;--flt:#98a3b3}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e6e9ed;--soft:#96a0ad;--line:#2d333b;"
    "--good:#52c48b;--bad:#f0806d;--mid:#e0b052;--int:#7ea2ff;--flt:#5d6876}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"
    "\"Segoe UI\",Roboto,sans-serif}main{max-width:60rem;margin:0 auto;padding:2rem 1rem 4rem}\n"
    "h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.05rem;margin:2.25rem 0 .75rem}p{margin:.25rem 0;color:var(--soft)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.75rem;margin-top:1.5rem}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem}\n"
    ".card b{display:block;font-size:1.55rem;line-height:1.25;font-variant-numeric:tabular-nums}.card span{color:var(--soft);"
    "font-size:.85rem}\n"
    ".wrap{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:.6rem}table{border-collapse:"
    "collapse;width:100%}\n"
    "th,td{text-align:left;padding:.4rem .8rem;border-bottom:1px solid var(--line);white-space:nowrap}tr:last-child td{"
    "border-bottom:0}\n"
    "th{font-weight:600;color:var(--soft);font-size:.85rem}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "td.name{max-width:22rem;overflow:hidden;text-overflow:ellipsis}td.bar{width:35%;min-width:8rem}\n"
    ".track{height:.7rem;border-radius:.35rem;background:var(--line)}.fill{height:100%;border-radius:.35rem;min-width:2px}\n"
    ".int8{background:var(--int)}.float{background:var(--flt)}.tag{font-size:.8rem;color:var(--soft)}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}.mid{color:var(--mid)}\n"
    "</style>\n</head>\n<body>\n<main>\n";

static void text(oct_buf *b, const char *s)
{
    oct_xml_text(b, s);
}

static void decibel(oct_buf *b, double db)
{
    if (isnan(db))
        oct_buf_puts(b, "not finite");
    else if (isinf(db))
        oct_buf_puts(b, db > 0 ? "exact" : "no signal");
    else
        oct_buf_printf(b, "%.1f dB", db);
}

static void value(oct_buf *b, const oct_metric *m, double v)
{
    if (isnan(v))
        return;
    if (m->kind == OCT_METRIC_PROPORTION)
        oct_buf_printf(b, "%.2f&nbsp;%%", 100 * v);
    else if (strcmp(m->unit, "dB") == 0)
        decibel(b, v);
    else
        oct_buf_printf(b, "%.6g", v);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- the big numbers ---- */

static void open_card(oct_buf *b, const char *class_name)
{
    oct_buf_printf(b, "<div class=\"card\"><b class=\"%s\">", class_name);
}

static void close_card(oct_buf *b, const char *what)
{
    oct_buf_puts(b, "</b><span>");
    text(b, what);
    oct_buf_puts(b, "</span></div>\n");
}

static void drop_card(oct_buf *b, const oct_eval_score *s)
{
    char what[OCT_DROP_TEXT];
    bool points = s->metric->kind == OCT_METRIC_PROPORTION;
    double unit = points ? 100 : 1;
    open_card(b, s->within_noise ? "good" : s->drop > 0 ? "bad" : "good");
    oct_buf_printf(b, points ? "%+.2f" : "%+.4g", (s->metric->larger_is_better ? -s->drop : s->drop) * unit);
    int n = snprintf(what, sizeof what, "%s%s against float", s->metric->name, points ? ", points" : "");
    if (!isnan(s->lo) && n > 0 && (size_t)n < sizeof what)
        snprintf(what + n, sizeof what - (size_t)n, s->within_noise ? ": within noise" : ": beyond noise");
    close_card(b, what);
}

static void ratio_card(oct_buf *b, double from, double to, const char *better, const char *worse)
{
    if (!(from > 0) || !(to > 0))
        return;
    open_card(b, to <= from ? "good" : "mid");
    oct_buf_printf(b, "%.2f&times;", to <= from ? from / to : to / from);
    close_card(b, to <= from ? better : worse);
}

static void put_cards(oct_buf *b, const oct_eval_result *r, size_t k)
{
    const oct_eval_model_result *f = &r->models[0], *m = &r->models[k];
    oct_buf_puts(b, "<div class=\"cards\">\n");
    for (size_t i = 0; i < r->n_scores; i++)
        if (!isnan(m->scores[i].drop) && !m->scores[i].metric->relative)
            drop_card(b, &m->scores[i]);
    if (!isnan(m->agreement)) {
        open_card(b, "");
        oct_buf_printf(b, "%.2f&nbsp;%%", 100 * m->agreement);
        close_card(b, "agree with float");
    }
    open_card(b, "");
    decibel(b, m->sqnr_db);
    close_card(b, "signal to quantization noise");
    if (m->latency.runs)
        ratio_card(b, f->latency.median, m->latency.median, "faster", "slower");
    ratio_card(b, (double)f->size_bytes, (double)m->size_bytes, "smaller", "larger");
    oct_buf_puts(b, "</div>\n");
}

/* ---- tables ---- */

static void cell(oct_buf *b, const char *class_name)
{
    oct_buf_printf(b, "<td class=\"%s\">", class_name);
}

static void summary_head(oct_buf *b, const oct_eval_result *r)
{
    oct_buf_puts(b, "<div class=\"wrap\"><table><tr><th></th>");
    for (size_t k = 0; k < r->n_models; k++) {
        oct_buf_puts(b, "<th class=\"n\">");
        text(b, base_name(r->models[k].name));
        oct_buf_puts(b, "</th>");
    }
    oct_buf_puts(b, "</tr>\n");
}

static void score_row(oct_buf *b, const oct_eval_result *r, size_t i)
{
    oct_buf_puts(b, "<tr><td>");
    text(b, r->models[0].scores[i].metric->name);
    oct_buf_puts(b, "</td>");
    for (size_t k = 0; k < r->n_models; k++) {
        const oct_eval_score *s = &r->models[k].scores[i];
        cell(b, "n");
        value(b, s->metric, s->value);
        if (!isnan(s->lo) && k > 0 && !s->metric->relative) {
            double unit = s->metric->kind == OCT_METRIC_PROPORTION ? 100 : 1;
            oct_buf_printf(b, "<br><span class=\"tag\">drop %.3g (95&nbsp;%%: %.3g to %.3g, n = %llu; %s)</span>", s->drop * unit,
                           s->lo * unit, s->hi * unit, (unsigned long long)s->n, s->method);
        }
        oct_buf_puts(b, "</td>");
    }
    oct_buf_puts(b, "</tr>\n");
}

static void cost_rows(oct_buf *b, const oct_eval_result *r)
{
    if (r->models[0].latency.runs) {
        oct_buf_puts(b, "<tr><td>latency</td>");
        for (size_t k = 0; k < r->n_models; k++) {
            const oct_eval_latency *l = &r->models[k].latency;
            cell(b, "n");
            oct_buf_printf(b, "%.3g ms<br><span class=\"tag\">%.3g to %.3g, %d runs</span></td>", l->median * 1e3, l->q1 * 1e3,
                           l->q3 * 1e3, l->runs);
        }
        oct_buf_puts(b, "</tr>\n");
    }
    for (int row = 0; row < 2; row++) {
        oct_buf_printf(b, "<tr><td>%s</td>", row ? "memory" : "size");
        for (size_t k = 0; k < r->n_models; k++) {
            cell(b, "n");
            if (row && r->models[k].runner)
                oct_buf_puts(b, "not known</td>");
            else
                oct_buf_printf(b, "%.3f MB</td>", (double)(row ? r->models[k].peak_bytes : r->models[k].size_bytes) * 1e-6);
        }
        oct_buf_puts(b, "</tr>\n");
    }
    oct_buf_puts(b, "<tr><td>int8 layers</td>");
    for (size_t k = 0; k < r->n_models; k++) {
        cell(b, "n");
        if (r->models[k].runner)
            oct_buf_puts(b, "not known</td>");
        else
            oct_buf_printf(b, "%zu of %zu</td>", r->models[k].integer_steps, r->models[k].weighted_steps);
    }
    oct_buf_puts(b, "</tr>\n</table></div>\n");
}

static void put_outputs(oct_buf *b, const oct_eval_result *r, const oct_eval_model_result *m)
{
    oct_buf_puts(b, "<h2>Outputs</h2>\n<div class=\"wrap\"><table><tr><th>output</th><th class=\"n\">SQNR</th>"
                    "<th class=\"n\">cosine</th><th class=\"n\">max error</th></tr>\n");
    for (size_t i = 0; i < r->n_outputs; i++) {
        oct_buf_puts(b, "<tr><td class=\"name\">");
        text(b, m->outputs[i].name);
        oct_buf_puts(b, "</td><td class=\"n\">");
        decibel(b, m->outputs[i].sqnr_db);
        oct_buf_printf(b, "</td><td class=\"n\">%.6f</td><td class=\"n\">%.4g</td></tr>\n", m->outputs[i].cosine,
                       m->outputs[i].max_abs);
    }
    oct_buf_puts(b, "</table></div>\n");
}

/* The bar shows decibels up to 60, where 8 bits leave nothing to see. */
static double bar_width(double db)
{
    if (isnan(db) || db < 0)
        return 0;
    return db > 60 ? 100 : db / 60 * 100;
}

static void put_layers(oct_buf *b, const oct_eval_model_result *m, int64_t samples)
{
    if (!m->n_layers)
        return;
    oct_buf_printf(b, "<h2>Layers, worst first</h2>\n<p>%lld samples; own is the signal to quantization noise of a layer's output "
                      "with inputs as in the float model; each bar has the error of everything before it too. Blue runs as int8.</p>\n", (long long)samples);
    oct_buf_puts(b, "<div class=\"wrap\"><table><tr><th>layer</th><th>op</th><th>scheme</th><th></th><th class=\"n\">SQNR</th>"
                    "<th class=\"n\">own</th></tr>\n");
    for (size_t i = 0; i < m->n_layers; i++) {
        const oct_eval_layer *l = &m->layers[i];
        oct_buf_puts(b, "<tr><td class=\"name\">");
        text(b, l->name);
        oct_buf_puts(b, "</td><td>");
        text(b, l->op);
        oct_buf_puts(b, "</td><td>");
        text(b, l->scheme);
        oct_buf_printf(b, "</td><td class=\"bar\"><div class=\"track\"><div class=\"fill %s\" style=\"width:%.1f%%\"></div></div></td>",
                       strcmp(l->scheme, "int8") == 0 ? "int8" : "float", bar_width(l->sqnr_db));
        cell(b, l->sqnr_db < 10 ? "n bad" : l->sqnr_db < 20 ? "n mid" : "n");
        decibel(b, l->sqnr_db);
        oct_buf_puts(b, "</td>");
        cell(b, l->has_own && l->own_sqnr_db < 10 ? "n bad" : l->has_own && l->own_sqnr_db < 20 ? "n mid" : "n");
        if (l->has_own)
            decibel(b, l->own_sqnr_db);
        oct_buf_puts(b, "</td></tr>\n");
    }
    oct_buf_puts(b, "</table></div>\n");
}

static void put_steps(oct_buf *b, const oct_eval_model_result *m)
{
    double most = 0;
    if (!m->n_steps)
        return;
    for (size_t i = 0; i < m->n_steps; i++)
        most = m->steps[i].seconds > most ? m->steps[i].seconds : most;
    oct_buf_puts(b, "<h2>Time of each step</h2>\n<div class=\"wrap\"><table><tr><th>step</th><th>op</th><th></th>"
                    "<th class=\"n\">ms</th><th class=\"n\">GMAC/s</th></tr>\n");
    for (size_t i = 0; i < m->n_steps; i++) {
        const oct_eval_step *s = &m->steps[i];
        oct_buf_puts(b, "<tr><td class=\"name\">");
        text(b, s->name);
        oct_buf_puts(b, "</td><td>");
        text(b, s->op);
        oct_buf_printf(b, "</td><td class=\"bar\"><div class=\"track\"><div class=\"fill %s\" style=\"width:%.1f%%\"></div></div></td>",
                       strcmp(s->scheme, "int8") == 0 ? "int8" : "float", most > 0 ? 100 * s->seconds / most : 0);
        oct_buf_printf(b, "<td class=\"n\">%.4f</td><td class=\"n\">", s->seconds * 1e3);
        if (s->macs && s->seconds > 0)
            oct_buf_printf(b, "%.1f", (double)s->macs / s->seconds * 1e-9);
        oct_buf_puts(b, "</td></tr>\n");
    }
    oct_buf_puts(b, "</table></div>\n");
}

/* Green and red say what is certain. */
static void put_gate(oct_buf *b, const oct_eval_result *r, const oct_gate_result *g)
{
    char words[OCT_GATE_TEXT];
    oct_buf_printf(b, "<p class=\"%s\">goal", g->unsure ? "mid" : g->met ? "good" : "bad");
    if (r->n_models > 2) {
        oct_buf_puts(b, " of ");
        text(b, base_name(r->models[g->model].name));
    }
    oct_buf_puts(b, ": ");
    text(b, oct_report_gate_result(words, g));
    oct_buf_puts(b, "</p>\n");
}

static void put_title(oct_buf *b, const oct_eval_result *r, const oct_report_context *c)
{
    oct_buf_puts(b, "<h1>");
    text(b, base_name(r->models[r->n_models > 1 ? 1 : 0].name));
    oct_buf_puts(b, "</h1>\n<p>");
    if (r->n_models > 1) {
        oct_buf_puts(b, "compared with ");
        text(b, base_name(r->models[0].name));
        oct_buf_puts(b, ", ");
    }
    oct_buf_printf(b, "%lld samples", (long long)r->samples);
    if (r->bad_samples)
        oct_buf_printf(b, ", %lld broken and left out", (long long)r->bad_samples);
    oct_buf_printf(b, ", %d thread%s", r->threads, r->threads == 1 ? "" : "s");
    if (r->isa)
        oct_buf_printf(b, ", %s", r->isa);
    oct_buf_puts(b, "</p>\n<p>");
    for (size_t i = 0; i < c->n_data; i++) {
        text(b, c->data[i]);
        oct_buf_puts(b, i + 1 < c->n_data ? ", " : "");
    }
    if (c->preprocess && c->preprocess[0]) {
        oct_buf_puts(b, "; ");
        text(b, c->preprocess);
    }
    oct_buf_puts(b, "</p>\n");
    char shared[OCT_BATCH_TEXT], runner[OCT_RUNNER_TEXT];
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_runner(runner, &r->models[k])) {
            oct_buf_puts(b, "<p>");
            text(b, base_name(r->models[k].name));
            oct_buf_puts(b, " ");
            text(b, runner);
            oct_buf_puts(b, "</p>\n");
        }
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_batch(shared, r, k)) {
            oct_buf_puts(b, "<p class=\"mid\">");
            text(b, base_name(r->models[k].name));
            oct_buf_printf(b, " %s</p>\n", shared);
        }
    for (size_t i = 0; i < c->n_gates; i++)
        put_gate(b, r, &c->gates[i]);
}

void oct_report_html(const oct_eval_result *r, const oct_report_context *c, oct_buf *out)
{
    oct_buf_puts(out, head);
    put_title(out, r, c);
    if (r->n_models > 1)
        put_cards(out, r, 1);
    oct_buf_puts(out, "<h2>Comparison</h2>\n");
    summary_head(out, r);
    for (size_t i = 0; i < r->n_scores; i++)
        score_row(out, r, i);
    cost_rows(out, r);
    for (size_t k = 0; k < r->n_models; k++) {
        const oct_eval_model_result *m = &r->models[k];
        if (r->n_models > 2 && k > 0) {
            oct_buf_puts(out, "<h1 style=\"margin-top:3rem\">");
            text(out, base_name(m->name));
            oct_buf_puts(out, "</h1>\n");
        }
        if (k > 0 && r->n_outputs > 1)
            put_outputs(out, r, m);
        if (k > 0)
            put_layers(out, m, r->layer_samples);
        put_steps(out, m);
    }
    oct_buf_puts(out, "<p style=\"margin-top:2.5rem\">");
    text(out, c->version ? c->version : "octet");
    oct_buf_puts(out, "</p>\n</main>\n</body>\n</html>\n");
}
