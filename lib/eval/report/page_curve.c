/* The curve of a model that was made for a size: the gain of more bytes, and the position of the model. */
#include "eval/report/page_int.h"

#include <math.h>

enum { WIDTH = 640, HEIGHT = 160, MOST_STEPS = 400 }; /* size in units of the drawing; the most steps that are drawn */

typedef struct scale {
    double least, most, worst, best; /* in bytes; in dB */
} scale;

static scale scale_of(const oct_item *curve, double limit)
{
    scale s = { oct_item_number(oct_item_next(curve, NULL), "bytes"), limit, INFINITY, -INFINITY };
    for (const oct_item *x = NULL; (x = oct_item_next(curve, x));) {
        const double bytes = oct_item_number(x, "bytes"), db = oct_item_number(x, "sqnr_db");
        s.least = fmin(s.least, bytes);
        s.most = fmax(s.most, bytes);
        s.worst = isfinite(db) ? fmin(s.worst, db) : s.worst;
        s.best = isfinite(db) ? fmax(s.best, db) : s.best;
    }
    return s;
}

static double x_of(const scale *s, double bytes)
{
    return s->most > s->least ? WIDTH * (bytes - s->least) / (s->most - s->least) : 0;
}

/* A value that is not finite means no loss, and is at the top. */
static double y_of(const scale *s, double db)
{
    const double share = isfinite(db) && s->best > s->worst ? (db - s->worst) / (s->best - s->worst) : 1;
    return HEIGHT - 4 - (HEIGHT - 8) * share;
}

/* The place of a step in the drawing. */
static void put_point(const ev_page *p, const scale *s, const oct_item *step)
{
    oct_buf_printf(p->b, "%.1f %.1f", x_of(s, oct_item_number(step, "bytes")),
                   y_of(s, oct_item_number(step, "sqnr_db")));
}

void ev_put_curve(ev_page *p)
{
    const oct_item *curve = oct_item_at(p->model, "size.curve"), *first = oct_item_next(curve, NULL), *at = first;
    const double limit = oct_item_number(p->model, "size.limit");
    const scale of_all = scale_of(curve, limit), *s = &of_all;
    const size_t n = oct_item_count(curve, ""), each = 1 + n / MOST_STEPS;
    size_t i = 0;
    oct_buf_printf(
        p->b,
        "<figure><div class=\"chart fall curve\"><svg viewBox=\"0 0 %d %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"Expected SQNR of the outputs by the size of the file\"><line x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>",
        WIDTH, HEIGHT, HEIGHT, WIDTH, HEIGHT, HEIGHT);
    if (limit > 0)
        oct_buf_printf(p->b, "<line class=\"limit\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>", x_of(s, limit),
                       x_of(s, limit), HEIGHT);
    oct_buf_puts(p->b, "<path class=\"sum\" d=\"");
    for (const oct_item *x = NULL; (x = oct_item_next(curve, x)); i++) {
        at = oct_item_true(x, "taken") ? x : at; /* the last one that the model has includes all before */
        if (i % each && i + 1 < n)
            continue;
        oct_buf_puts(p->b, i ? "L" : "M");
        put_point(p, s, x);
    }
    oct_buf_puts(p->b, "\"/><path class=\"here\" d=\"M");
    put_point(p, s, at);
    oct_buf_puts(p->b, "h0\"/></svg></div>\n<div class=\"axis\"><span>");
    ev_page_bytes(p, s->least);
    oct_buf_puts(p->b, ", ");
    ev_page_db(p, oct_item_number(first, "sqnr_db"));
    oct_buf_puts(p->b, "</span><span>");
    ev_page_bytes(p, s->most);
    oct_buf_puts(p->b, ", ");
    ev_page_db(p, s->best);
    oct_buf_puts(
        p->b,
        "</span></div>\n<figcaption>Signal to quantization noise expected at the outputs, by the size of the file. Point: this model, ");
    ev_page_bytes(p, oct_item_number(at, "bytes"));
    oct_buf_puts(p->b, " and ");
    ev_page_db(p, oct_item_number(at, "sqnr_db"));
    if (limit > 0) {
        oct_buf_puts(p->b, ". Dashed: what was allowed, ");
        ev_page_bytes(p, limit);
    }
    oct_buf_puts(p->b, ".</figcaption></figure>\n");
}
