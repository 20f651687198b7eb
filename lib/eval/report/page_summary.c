/* The top of the page: the result in a sentence, and the key figures. */
#include "eval/report/page_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t count_missed(const ev_page *p, size_t k, size_t *n, size_t *unsure, size_t *failed)
{
    size_t missed = 0;
    *n = 0;
    *unsure = 0;
    *failed = 0;
    for (size_t i = 0; i < p->c->n_gates; i++) {
        const oct_gate_result *g = &p->c->gates[i];
        *n += g->model == k;
        *unsure += g->model == k && g->unsure;
        missed += g->model == k && !g->met;
        *failed += g->model == k && !g->met && !g->unsure;
    }
    return missed;
}

/* "Meets all 3 gates; for 1 the measurement does not suffice to be certain." Green and red are used only for certain
 * results: one gate that is missed for certain makes it red. */
static void put_gates(const ev_page *p, size_t k)
{
    size_t n, unsure, failed;
    const size_t missed = count_missed(p, k, &n, &unsure, &failed);
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

/* The score that counts: the first one, as for a limit that names none. */
static const oct_eval_score *main_score(const ev_page *p, size_t k)
{
    return p->r->n_scores && !isnan(p->r->models[k].scores[0].drop) ? &p->r->models[k].scores[0] : NULL;
}

/* "3.67 times smaller than" */
static void put_size(const ev_page *p, const oct_eval_model_result *f, const oct_eval_model_result *m)
{
    if (!f->size_bytes || !m->size_bytes)
        return;
    const double ratio = (double)f->size_bytes / (double)m->size_bytes;
    if (fabs(ratio - 1) < 0.005)
        oct_buf_puts(p->b, " is as large as ");
    else
        oct_buf_printf(p->b, " is %.2f times %s than ", ratio < 1 ? 1 / ratio : ratio,
                       ratio < 1 ? "larger" : "smaller");
    ev_page_text(p, ev_page_base(f->name));
}

static void put_speed(const ev_page *p, const oct_eval_model_result *m)
{
    char words[OCT_SPEED_TEXT];
    if (!m->speed.runs)
        return;
    oct_buf_puts(p->b, oct_eval_speed_judge(&m->speed) == OCT_SPEED_UNKNOWN ? "; " : ", and ");
    ev_page_text(p, oct_report_speed(words, &m->speed));
}

static void put_verdict(const ev_page *p, size_t k)
{
    char words[OCT_DROP_TEXT];
    const oct_eval_model_result *f = &p->r->models[0], *m = &p->r->models[k];
    const oct_eval_score *s = main_score(p, k);
    oct_buf_puts(p->b, "<p class=\"verdict\">");
    put_gates(p, k);
    ev_page_text(p, ev_page_base(m->name));
    put_size(p, f, m);
    put_speed(p, m);
    if (s) {
        oct_buf_puts(p->b, f->size_bytes && m->size_bytes ? "; " : ": ");
        ev_page_text(p, s->metric->name);
        oct_buf_puts(p->b, " is ");
        ev_page_value(p, s->metric, s->value);
        if (!s->metric->relative) {
            oct_buf_puts(p->b, " against ");
            ev_page_value(p, s->metric, s->reference);
        }
        oct_buf_puts(p->b, ", ");
        ev_page_text(p, oct_report_drop(words, s));
    }
    oct_buf_puts(p->b, ".</p>\n");
}

static void open_figure(const ev_page *p, const char *term)
{
    oct_buf_puts(p->b, "<div><dt>");
    ev_page_text(p, term);
    oct_buf_puts(p->b, "</dt><dd>");
}

static void close_figure(const ev_page *p)
{
    oct_buf_puts(p->b, "</small></dd></div>\n");
}

static void size_figure(const ev_page *p, const oct_eval_model_result *f, const oct_eval_model_result *m)
{
    if (!m->size_bytes)
        return;
    open_figure(p, "File size");
    ev_page_bytes(p, (double)m->size_bytes);
    oct_buf_puts(p->b, "<small>");
    if (m != f && f->size_bytes) {
        oct_buf_printf(p->b, "%.1f %% of ", 100 * (double)m->size_bytes / (double)f->size_bytes);
        ev_page_bytes(p, (double)f->size_bytes);
    }
    close_figure(p);
}

static void time_figure(const ev_page *p, const oct_eval_model_result *f, const oct_eval_model_result *m)
{
    if (!m->latency.runs)
        return;
    char words[OCT_SPEED_TEXT];
    open_figure(p, "Latency");
    ev_page_ms(p, m->latency.median);
    oct_buf_puts(p->b, "<small>");
    if (m != f) {
        oct_buf_puts(p->b, "float ");
        ev_page_ms(p, f->latency.median);
        if (m->speed.runs && oct_eval_speed_judge(&m->speed) == OCT_SPEED_UNKNOWN)
            oct_buf_printf(p->b, "; <span class=\"mid\">%s</span>", oct_report_speed(words, &m->speed));
    }
    close_figure(p);
}

static void score_figure(const ev_page *p, const oct_eval_score *s)
{
    open_figure(p, s->metric->name);
    ev_page_value(p, s->metric, s->value);
    oct_buf_puts(p->b, "<small>");
    if (!isnan(s->drop) && !s->metric->relative) {
        oct_buf_puts(p->b, "float ");
        ev_page_value(p, s->metric, s->reference);
    }
    if (!isnan(s->lo))
        oct_buf_printf(p->b, "%s<span class=\"%s\">%s</span>", s->metric->relative ? "" : "; ",
                       s->within_noise ? "good"
                       : s->drop > 0   ? "bad"
                                       : "good",
                       s->within_noise ? "within noise"
                       : s->drop > 0   ? "beyond noise"
                                       : "better");
    close_figure(p);
}

enum { MOST_SCORES = 2 }; /* others are only in the table */

static void put_figures(const ev_page *p, size_t k)
{
    const oct_eval_model_result *f = &p->r->models[0], *m = &p->r->models[k];
    size_t shown = 0;
    oct_buf_puts(p->b, "<dl class=\"figures\">\n");
    for (size_t i = 0; i < p->r->n_scores && shown < MOST_SCORES; i++)
        if (!isnan(m->scores[i].value) && strcmp(m->scores[i].metric->name, "sqnr") != 0) {
            score_figure(p, &m->scores[i]);
            shown++;
        }
    if (k && p->r->samples > 0) {
        open_figure(p, "Output SQNR");
        ev_page_db(p, m->sqnr_db);
        oct_buf_puts(p->b, p->r->n_outputs > 1 ? "<small>worst output" : "<small>");
        close_figure(p);
    }
    size_figure(p, f, m);
    time_figure(p, f, m);
    if (k && m->weighted_steps) {
        open_figure(p, "Layers on integers");
        oct_buf_printf(p->b, "%zu<small>of %zu with weights", m->integer_steps, m->weighted_steps);
        close_figure(p);
    }
    oct_buf_puts(p->b, "</dl>\n");
}

/* What was run: samples, preprocessing, machine. */
static void put_setting(const ev_page *p)
{
    const oct_eval_result *r = p->r;
    char shared[OCT_BATCH_TEXT], runner[OCT_RUNNER_TEXT];
    if (r->samples > 0)
        oct_buf_printf(p->b, "<p class=\"soft\">%lld sample%s", (long long)r->samples, r->samples == 1 ? "" : "s");
    else
        oct_buf_puts(p->b, "<p class=\"soft\">Without samples");
    if (p->c->page && p->c->page->samples)
        oct_buf_printf(p->b, " %s", p->c->page->samples);
    if (r->bad_samples)
        oct_buf_printf(p->b, ", %lld broken and left out", (long long)r->bad_samples);
    for (size_t i = 0; i < p->c->n_data; i++) {
        oct_buf_puts(p->b, i ? ", " : ", from ");
        ev_page_name(p, p->c->data[i]);
    }
    if (p->c->preprocess && *p->c->preprocess) {
        oct_buf_puts(p->b, ", prepared with ");
        ev_page_name(p, p->c->preprocess);
    }
    oct_buf_printf(p->b, "; %d thread%s", r->threads, r->threads == 1 ? "" : "s");
    if (r->isa)
        oct_buf_printf(p->b, ", %s", r->isa);
    oct_buf_puts(p->b, "</p>\n");
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_runner(runner, &r->models[k])) {
            oct_buf_puts(p->b, "<p class=\"soft\">");
            ev_page_text(p, ev_page_base(r->models[k].name));
            oct_buf_puts(p->b, " ");
            ev_page_text(p, runner);
            oct_buf_puts(p->b, "</p>\n");
        }
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_batch(shared, r, k)) {
            oct_buf_puts(p->b, "<p class=\"mid\">");
            ev_page_text(p, ev_page_base(r->models[k].name));
            oct_buf_printf(p->b, " %s</p>\n", shared);
        }
}

static void put_title(const ev_page *p)
{
    const oct_eval_result *r = p->r;
    oct_buf_puts(p->b, "<p class=\"over\">");
    ev_page_text(p, p->c->page && p->c->page->title ? p->c->page->title : "Evaluation");
    oct_buf_puts(p->b, "</p>\n<h1>");
    if (r->n_models > 2)
        oct_buf_printf(p->b, "%zu models against ", r->n_models - 1);
    ev_page_name(p, ev_page_base(r->models[r->n_models == 2].name));
    oct_buf_puts(p->b, "</h1>\n");
}

void ev_page_summary(const ev_page *p)
{
    const size_t n = p->r->n_models;
    put_title(p);
    if (n == 2)
        put_verdict(p, 1);
    put_setting(p);
    if (n <= 2) {
        put_figures(p, n - 1);
        return;
    }
    oct_buf_puts(p->b, "<div class=\"models\">\n");
    for (size_t k = 1; k < n; k++) {
        oct_buf_puts(p->b, "<div class=\"model\">\n<h2>");
        ev_page_text(p, ev_page_base(p->r->models[k].name));
        oct_buf_puts(p->b, "</h2>\n");
        put_verdict(p, k);
        put_figures(p, k);
        oct_buf_puts(p->b, "</div>\n");
    }
    oct_buf_puts(p->b, "</div>\n");
}
