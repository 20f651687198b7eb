/* Errors layer by layer: a chart in the order of the network, and a table whose rows can be opened. */
#include "eval/report/page_int.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DRAWN = 400
}; /* how many layers have drawings of values and weights, those with the largest error; limits the size of the page */

bool ev_is_has_layers(const ev_page *p)
{
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        if (oct_item_count(m, "layers") || oct_item_count(m, "nodes"))
            return true;
    return false;
}

/* The layer's own error, or that of everything before it too; NaN: it was not compared. */
static double error_of(const oct_item *layer)
{
    return oct_item_number(layer, oct_item_at(layer, "own_sqnr_db") ? "own_sqnr_db" : "sqnr_db");
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
    const bool own = oct_item_at(row->e, "own_sqnr_db");
    oct_buf_puts(p->b, "<title>");
    ev_page_text(p, ev_page_row_name(row->e, row->n));
    oct_buf_puts(p->b, " (");
    ev_page_text(p, ev_page_row_op(row->e, row->n));
    oct_buf_puts(p->b, ")");
    if (own) {
        oct_buf_puts(p->b, ": own ");
        ev_page_db(p, oct_item_number(row->e, "own_sqnr_db"));
    }
    oct_buf_puts(p->b, own ? ", with all before it " : ": ");
    ev_page_db(p, oct_item_number(row->e, "sqnr_db"));
    oct_buf_puts(p->b, "</title>");
}

static void put_bars(const ev_page *p, const ev_page_row *rows, size_t n)
{
    size_t x = 0;
    for (size_t i = 0; i < n; i++) {
        const double h = height(error_of(rows[i].e));
        if (!rows[i].e)
            continue;
        oct_buf_printf(
            p->b,
            "<a href=\"#m%zu-%zu\" tabindex=\"-1\"><rect class=\"%s\" x=\"%zu\" y=\"%.1f\" width=\"8\" height=\"%.1f\"/>",
            p->k, i, ev_page_row_kind(rows[i].e, rows[i].n), 10 * x + 1, 100 - h, h);
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
            oct_buf_printf(p->b, "%s%zu %.1f", x ? "L" : "M", 10 * x + 5,
                           100 - height(oct_item_number(rows[i].e, "sqnr_db")));
            x++;
        }
    oct_buf_puts(p->b, "\"/>");
}

static void put_chart(const ev_page *p, const ev_page_row *rows, size_t n)
{
    static const struct {
        int db;
        const char *share;
    } ticks[] = { { 0, "100 %" }, { 20, "10 %" }, { 40, "1 %" }, { 60, "0.1 %" }, { 80, "0.01 %" } };
    size_t shown = 0;
    bool own = false;
    for (size_t i = 0; i < n; i++) {
        shown += rows[i].e != NULL;
        own |= oct_item_at(rows[i].e, "own_sqnr_db") != NULL;
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
    put_bars(p, rows, n);
    if (own)
        put_sum(p, rows, n);
    oct_buf_printf(
        p->b,
        "</svg></div>\n<figcaption>Error as a share of the signal (20 dB is 10 %%), in the order of the network. %s</figcaption></figure>\n",
        own ? "Bars: own, with inputs as in the float model. Line: total, with the error of everything before."
            : "Total, with the error of everything before.");
}

/* ---- the table ---- */

void ev_put_row(ev_page *p)
{
    oct_buf_printf(p->b, "%zu", p->i);
}

void ev_put_row_number(ev_page *p)
{
    oct_buf_printf(p->b, "%zu", p->i + 1);
}

void ev_put_row_name(ev_page *p)
{
    ev_page_name(p, ev_page_row_name(p->x, p->node));
}

void ev_put_row_op(ev_page *p)
{
    ev_page_name(p, ev_page_row_op(p->x, p->node));
}

void ev_put_row_kind(ev_page *p)
{
    oct_buf_puts(p->b, ev_page_row_kind(p->x, p->node));
}

void ev_put_row_scheme(ev_page *p)
{
    ev_page_text(p, ev_page_row_scheme(p->x, p->node));
}

bool ev_is_row_scheme(const ev_page *p)
{
    return *ev_page_row_scheme(p->x, p->node) != '\0';
}

void ev_put_row_scheme_name(ev_page *p)
{
    ev_page_name(p, ev_page_row_scheme(p->x, p->node));
}

bool ev_is_renamed(const ev_page *p)
{
    return p->x && strcmp(oct_item_text(p->x, "value"), oct_item_text(p->x, "name")) != 0;
}

bool ev_is_paired(const ev_page *p)
{
    return p->x && strcmp(oct_item_text(p->x, "paired_by"), oct_pair_word(OCT_PAIR_NAME)) != 0;
}

bool ev_is_drawn(const ev_page *p)
{
    return p->drawn && (oct_item_at(p->x, "histogram") || oct_item_count(p->x, "weights.channels.scale"));
}

/* "int8, per channel, 1000 values": of what was compared, or else of what was decided. */
void ev_put_weights_said(ev_page *p)
{
    const oct_item *w = oct_item_at(p->x, "weights"), *from = w ? w : p->node;
    const char *type = oct_item_text(from, w ? "type" : "weights");
    if (!type)
        return;
    oct_buf_puts(p->b, "<div><dt>weights</dt><dd>");
    ev_page_name(p, type);
    if (oct_item_whole(from, "block"))
        oct_buf_printf(p->b, ",<wbr> blocks of %.0f", oct_item_number(from, "block"));
    else if (w || oct_item_true(from, "integer"))
        oct_buf_printf(p->b, ",<wbr> per %s", oct_item_true(from, "per_channel") ? "channel" : "tensor");
    if (w)
        oct_buf_printf(p->b, ",<wbr> %.0f values", oct_item_number(w, "count"));
    oct_buf_puts(p->b, "</dd></div>");
}

void ev_put_range_said(ev_page *p)
{
    const oct_item *r = oct_item_at(p->x, "range");
    oct_buf_puts(p->b, "<div><dt>output</dt><dd>");
    ev_page_name(p, oct_item_text(r, "type"));
    if (isnan(oct_item_number(r, "scale")))
        oct_buf_puts(p->b, ",<wbr> a scale for each channel");
    else
        oct_buf_printf(p->b, ",<wbr> scale %.4g,<wbr> zero point %.0f", oct_item_number(r, "scale"),
                       oct_item_number(r, "zero_point"));
    oct_buf_puts(p->b, "</dd></div>");
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
        if (!isnan(error_of(rows[i].e)))
            db[known++] = error_of(rows[i].e);
    if (known > MOST_DRAWN) {
        qsort(db, known, sizeof *db, by_number);
        limit = db[MOST_DRAWN - 1];
    }
    oct_free(db);
    return limit;
}

void ev_put_layers(ev_page *p)
{
    ev_page in = *p;
    ev_page_row *rows;
    size_t n;
    ev_page_rows(p, p->model, &rows, &n);
    if (n) {
        const double limit = drawn_limit(p, rows, n);
        ev_page_block(p, "model_title");
        put_chart(p, rows, n);
        ev_page_block(p, "layers_head");
        for (in.i = 0; in.i < n; in.i++) {
            in.x = rows[in.i].e;
            in.node = rows[in.i].n;
            in.drawn = !(error_of(in.x) > limit);
            ev_page_block(&in, "layer");
        }
        oct_buf_puts(p->b, "</table>\n");
    }
    oct_free(rows);
}

/* ---- times ---- */

typedef struct timed {
    const oct_item *row;
    double ms;
    size_t at;
} timed;

static int by_time(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    const double p = isnan(x->ms) ? 0 : x->ms, q = isnan(y->ms) ? 0 : y->ms;
    return p != q ? (p > q ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* The rows of the table, those that take longest first. */
void ev_put_costs(ev_page *p)
{
    const oct_item *costs = oct_item_at(p->model, "costs");
    timed *sorted = oct_calloc(oct_item_count(costs, "") + 1, sizeof *sorted);
    ev_page in = *p;
    size_t n = 0;
    p->b->failed |= !sorted;
    for (const oct_item *c = NULL; sorted && (c = oct_item_next(costs, c)); n++)
        sorted[n] = (timed){ c, oct_item_number(c, "quant.ms"), n };
    if (sorted)
        qsort(sorted, n, sizeof *sorted, by_time);
    for (size_t i = 0; i < n; i++) {
        in.x = sorted[i].row;
        ev_page_block(&in, "cost");
    }
    oct_free(sorted);
}
