/* Errors layer by layer: a chart in the order of the network, and a table whose rows can be opened. */
#include "eval/report/page_int.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DRAWN = 400
}; /* how many layers have drawings of values and weights, those with the largest error; limits the size of the page */

bool ev_page_has_layers(const ev_page *p)
{
    for (size_t k = 1; k < p->r->n_models; k++)
        if (p->r->models[k].n_layers || ev_page_model(p, k)->n_layers)
            return true;
    return false;
}

/* ---- the chart ---- */

#define QUIET 80.0 /* dB at the bottom: 0.01 % of the signal */

static double height(double db)
{
    const double h = isnan(db) ? 100 : 100 * (QUIET - db) / QUIET;
    return h < 0 ? 0 : h > 100 ? 100 : h;
}

/* "conv3 (Conv): own 42.1 dB, with all before 31.0 dB" */
static void put_tip(const ev_page *p, const ev_page_row *row)
{
    oct_buf_puts(p->b, "<title>");
    ev_page_text(p, ev_page_row_name(row));
    oct_buf_puts(p->b, " (");
    ev_page_text(p, ev_page_row_op(row));
    oct_buf_puts(p->b, ")");
    if (row->e->has_own) {
        oct_buf_puts(p->b, ": own ");
        ev_page_db(p, row->e->own_sqnr_db);
    }
    oct_buf_puts(p->b, row->e->has_own ? ", with all before it " : ": ");
    ev_page_db(p, row->e->sqnr_db);
    oct_buf_puts(p->b, "</title>");
}

static void put_bars(const ev_page *p, size_t k, const ev_page_row *rows, size_t n)
{
    size_t x = 0;
    for (size_t i = 0; i < n; i++) {
        const double h = rows[i].e ? height(rows[i].e->has_own ? rows[i].e->own_sqnr_db : rows[i].e->sqnr_db) : 0;
        if (!rows[i].e)
            continue;
        oct_buf_printf(
            p->b,
            "<a href=\"#m%zu-%zu\" tabindex=\"-1\"><rect class=\"%s\" x=\"%zu\" y=\"%.1f\" width=\"8\" height=\"%.1f\"/>",
            k, i, ev_page_row_kind(&rows[i]), 10 * x + 1, 100 - h, h);
        put_tip(p, &rows[i]);
        oct_buf_puts(p->b, "</a>\n");
        x++;
    }
}

/* Draws the SQNR that includes the error of everything before, as a line. */
static void put_sum(const ev_page *p, const ev_page_row *rows, size_t n)
{
    size_t x = 0;
    oct_buf_puts(p->b, "<path class=\"sum\" d=\"");
    for (size_t i = 0; i < n; i++)
        if (rows[i].e) {
            oct_buf_printf(p->b, "%s%zu %.1f", x ? "L" : "M", 10 * x + 5, 100 - height(rows[i].e->sqnr_db));
            x++;
        }
    oct_buf_puts(p->b, "\"/>");
}

static void put_chart(const ev_page *p, size_t k, const ev_page_row *rows, size_t n)
{
    static const struct {
        int db;
        const char *share;
    } ticks[] = { { 0, "100 %" }, { 20, "10 %" }, { 40, "1 %" }, { 60, "0.1 %" }, { 80, "0.01 %" } };
    size_t shown = 0;
    bool own = false;
    for (size_t i = 0; i < n; i++) {
        shown += rows[i].e != NULL;
        own |= rows[i].e && rows[i].e->has_own;
    }
    if (!shown)
        return;
    oct_buf_puts(p->b, "<figure><div class=\"chart\">");
    for (size_t i = 0; i < OCT_COUNT(ticks); i++)
        oct_buf_printf(p->b, "<span class=\"y\" style=\"top:%.0f%%\">%s</span>", 100 - height(ticks[i].db),
                       ticks[i].share);
    oct_buf_printf(
        p->b,
        "<svg viewBox=\"0 0 %zu 100\" height=\"220\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Error of %zu layers in the order of the network\">\n",
        10 * shown, shown);
    for (size_t i = 0; i < OCT_COUNT(ticks); i++)
        oct_buf_printf(p->b, "<line x1=\"0\" x2=\"%zu\" y1=\"%.0f\" y2=\"%.0f\"/>", 10 * shown,
                       100 - height(ticks[i].db), 100 - height(ticks[i].db));
    put_bars(p, k, rows, n);
    if (own)
        put_sum(p, rows, n);
    oct_buf_printf(
        p->b,
        "</svg></div>\n<figcaption>Error as a share of the signal (20 dB is 10 %%), in the order of the network. %s</figcaption></figure>\n",
        own ? "Bars: own, with inputs as in the float model. Line: total, with the error of everything before."
            : "Total, with the error of everything before.");
}

/* ---- the table ---- */

static void fact(const ev_page *p, const char *term, const char *text)
{
    if (!text || !*text)
        return;
    oct_buf_printf(p->b, "<div><dt>%s</dt><dd>", term);
    ev_page_name(p, text);
    oct_buf_puts(p->b, "</dd></div>");
}

static void number_fact(const ev_page *p, const char *term, const char *format, double v)
{
    char text[64];
    snprintf(text, sizeof text, format, v);
    if (!isnan(v))
        fact(p, term, isinf(v) ? "exact" : text);
}

static void share_fact(const ev_page *p, const char *term, double share)
{
    char text[EV_SHARE_TEXT];
    fact(p, term, ev_page_share(text, share));
}

static void range_facts(const ev_page *p, const oct_eval_layer *l)
{
    char text[96];
    const oct_eval_range *r = &l->range;
    if (r->dtype == OCT_UNDEFINED)
        return;
    if (isnan(r->scale))
        snprintf(text, sizeof text, "%s, a scale for each channel", oct_dtype_name(r->dtype));
    else
        snprintf(text, sizeof text, "%s, scale %.4g, zero point %d", oct_dtype_name(r->dtype), r->scale, (int)r->zero);
    fact(p, "output", text);
    share_fact(p, "beyond the range in float", l->clipped);
    share_fact(p, "saturated", l->saturated);
    share_fact(p, "quantized values in use", l->used);
    if (l->dead) {
        snprintf(text, sizeof text, "%lld of %lld", (long long)l->dead, (long long)l->channels);
        fact(p, "channels that became constant", text);
    }
}

static void weight_facts(const ev_page *p, const ev_page_row *row)
{
    char text[96];
    const oct_eval_weights *w = row->e ? &row->e->weights : NULL;
    if (w && w->name) {
        if (w->block)
            snprintf(text, sizeof text, "%s, blocks of %lld, %lld values", oct_dtype_name(w->dtype),
                     (long long)w->block, (long long)w->count);
        else
            snprintf(text, sizeof text, "%s, per %s, %lld values", oct_dtype_name(w->dtype),
                     w->per_channel ? "channel" : "tensor", (long long)w->count);
        fact(p, "weights", text);
        number_fact(p, "SQNR of the weights", "%.1f dB", w->sqnr_db);
        share_fact(p, "weights clipped", w->clipped);
    } else if (row->n) {
        fact(p, "weights", row->n->weights);
        number_fact(p, "SQNR of the weights", "%.1f dB", row->n->sqnr_weights);
    }
}

static void put_facts(const ev_page *p, const ev_page_row *row)
{
    char text[64];
    oct_buf_puts(p->b, "<dl class=\"facts\">");
    fact(p, "type", ev_page_row_scheme(row));
    fact(p, "why", row->n ? row->n->why : NULL);
    weight_facts(p, row);
    fact(p, "saturation", row->n ? row->n->remedy : NULL);
    if (row->e)
        range_facts(p, row->e);
    fact(p, "range found by", row->n ? row->n->observer : NULL);
    number_fact(p, "expected of the output's rounding", "%.1f dB", row->n ? row->n->sqnr_output : NAN);
    share_fact(p, "of the loss at the outputs", row->n && row->n->loss > 0 ? row->n->loss : NAN);
    if (row->n && row->n->macs) {
        snprintf(text, sizeof text, "%.3g million", (double)row->n->macs * 1e-6);
        fact(p, "multiply-accumulates", text);
    }
    if (row->e && strcmp(row->e->value, row->e->name) != 0)
        fact(p, "value", row->e->value);
    if (row->e && row->e->how != OCT_PAIR_NAME) {
        fact(p, "in this model", row->e->other);
        fact(p, "paired by", oct_pair_word(row->e->how));
    }
    oct_buf_puts(p->b, "</dl>");
}

static void put_details(const ev_page *p, size_t k, const ev_page_row *row, size_t i, bool drawn)
{
    oct_buf_printf(p->b, "<tr class=\"more\" id=\"m%zu-%zu\"><td colspan=\"7\">", k, i);
    put_facts(p, row);
    if (row->e && drawn && (row->e->histogram.n || row->e->weights.n_channel)) {
        oct_buf_puts(p->b, "<div class=\"draws\">");
        ev_page_draw_values(p, row->e);
        ev_page_draw_weights(p, &row->e->weights);
        oct_buf_puts(p->b, "</div>");
    }
    oct_buf_puts(p->b, "</td></tr></tbody>\n");
}

static const char *weight_of(double db)
{
    return isnan(db) || db < 10 ? "bad" : db < 20 ? "mid" : "";
}

static void db_or_nothing(const ev_page *p, bool known, double db)
{
    if (known)
        ev_page_db_cell(p, db, weight_of(db));
    else
        oct_buf_puts(p->b, "<td class=\"n\"></td>");
}

static void put_row(const ev_page *p, size_t k, const ev_page_row *row, size_t i)
{
    const char *kind = ev_page_row_kind(row);
    oct_buf_printf(
        p->b,
        "<tbody data-kind=\"%s\"><tr class=\"row\"><td class=\"n soft wide\">%zu</td><th scope=\"row\" class=\"name\"><a class=\"open\" href=\"#m%zu-%zu\">",
        kind, i + 1, k, i);
    ev_page_name(p, ev_page_row_name(row));
    oct_buf_puts(p->b, "</a> <small>");
    ev_page_name(p, ev_page_row_op(row));
    oct_buf_puts(p->b, "</small></th>");
    oct_buf_printf(p->b, "<td class=\"kind\"><span class=\"dot %s\"></span><span>", kind);
    ev_page_text(p, ev_page_row_scheme(row));
    oct_buf_puts(p->b, "</span></td>");
    db_or_nothing(p, row->e && row->e->has_own, row->e ? row->e->own_sqnr_db : NAN);
    db_or_nothing(p, row->e != NULL, row->e ? row->e->sqnr_db : NAN);
    ev_page_share_cell(p, row->e ? row->e->clipped : NAN, "wide");
    ev_page_share_cell(p, row->e ? row->e->used : NAN, "wide");
    oct_buf_puts(p->b, "</tr>\n");
}

static void put_tools(const ev_page *p, size_t k)
{
    oct_buf_printf(
        p->b,
        "<div class=\"tools\" hidden><label for=\"f%zu\">Filter</label><input id=\"f%zu\" type=\"search\" placeholder=\"layer, operator, reason\">"
        "<label for=\"k%zu\">Type</label><select id=\"k%zu\"><option value=\"\">all</option><option value=\"int8\">8 bits</option>"
        "<option value=\"int16\">16 bits</option><option value=\"half\">float16, bfloat16</option><option value=\"blocks\">weights only</option>"
        "<option value=\"float\">float</option></select><button type=\"button\">Open all</button><output for=\"f%zu k%zu\" aria-live=\"polite\"></output></div>\n",
        k, k, k, k, k, k);
}

/* NAN: it was not compared. */
static double error_of(const ev_page_row *row)
{
    return !row->e ? NAN : row->e->has_own ? row->e->own_sqnr_db : row->e->sqnr_db;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The SQNR above which rows have no drawings, because MOST_DRAWN others have a larger error. */
static double drawn_limit(const ev_page *p, const ev_page_row *rows, size_t n)
{
    double *db = n > MOST_DRAWN ? oct_alloc(n * sizeof *db) : NULL, limit = INFINITY;
    size_t known = 0;
    if (n <= MOST_DRAWN)
        return limit;
    p->b->failed |= !db;
    for (size_t i = 0; db && i < n; i++)
        if (!isnan(error_of(&rows[i])))
            db[known++] = error_of(&rows[i]);
    if (known > MOST_DRAWN) {
        qsort(db, known, sizeof *db, by_number);
        limit = db[MOST_DRAWN - 1];
    }
    oct_free(db);
    return limit;
}

static void put_table(const ev_page *p, size_t k, const ev_page_row *rows, size_t n)
{
    put_tools(p, k);
    oct_buf_puts(
        p->b,
        "<table class=\"layers sort\">\n<thead><tr><th scope=\"col\" class=\"n wide\">#</th><th scope=\"col\">layer</th><th scope=\"col\">type</th>"
        "<th scope=\"col\" class=\"n\">own, dB</th><th scope=\"col\" class=\"n\">total, dB</th><th scope=\"col\" class=\"n wide\">clipped</th>"
        "<th scope=\"col\" class=\"n wide\">values used</th></tr></thead>\n");
    const double limit = drawn_limit(p, rows, n);
    for (size_t i = 0; i < n; i++) {
        put_row(p, k, &rows[i], i);
        put_details(p, k, &rows[i], i, !(error_of(&rows[i]) > limit));
    }
    oct_buf_puts(p->b, "</table>\n");
}

void ev_page_layers(const ev_page *p)
{
    if (!ev_page_has_layers(p))
        return;
    ev_page_section(p, "layers", "Layers");
    if (p->r->layer_samples)
        oct_buf_printf(
            p->b,
            "<p>Signal to quantization noise over %lld sample%s. Own: of the layer alone; total: with the error of everything before it. A layer opens to show why "
            "it is what it is, its values and its weights.</p>\n",
            (long long)p->r->layer_samples, p->r->layer_samples == 1 ? "" : "s");
    oct_buf_puts(
        p->b,
        "<ul class=\"legend\"><li><span class=\"dot int8\"></span>8 bits</li><li><span class=\"dot int16\"></span>16 bits</li>"
        "<li><span class=\"dot half\"></span>float16, bfloat16</li><li><span class=\"dot blocks\"></span>weights only</li><li><span class=\"dot float\"></span>float</li>"
        "<li><span class=\"line\"></span>total</li></ul>\n");
    for (size_t k = 1; k < p->r->n_models; k++) {
        ev_page_row *rows;
        size_t n;
        ev_page_rows(p, k, &rows, &n);
        if (n) {
            ev_page_model_title(p, k);
            put_chart(p, k, rows, n);
            put_table(p, k, rows, n);
        }
        oct_free(rows);
    }
    ev_page_section_end(p);
}
