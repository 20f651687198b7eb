/* The curve of a model that was made for a size: the gain of more bytes, and the position of the model. */
#include "eval/report/page_int.h"

#include <math.h>

enum { WIDTH = 640, HEIGHT = 160, MOST_STEPS = 400 }; /* size in units of the drawing; the most steps that are drawn */

typedef struct scale {
    double least, most, worst, best; /* in bytes; in dB */
} scale;

bool ev_page_has_curve(const ev_page *p)
{
    for (size_t k = 0; k < p->r->n_models; k++)
        if (ev_page_model(p, k)->n_curve > 1)
            return true;
    return false;
}

static scale scale_of(const oct_page_model *m)
{
    scale s = { m->curve[0].bytes, m->limit, INFINITY, -INFINITY };
    for (size_t i = 0; i < m->n_curve; i++) {
        const oct_page_point *x = &m->curve[i];
        s.least = fmin(s.least, x->bytes);
        s.most = fmax(s.most, x->bytes);
        s.worst = isfinite(x->sqnr) ? fmin(s.worst, x->sqnr) : s.worst;
        s.best = isfinite(x->sqnr) ? fmax(s.best, x->sqnr) : s.best;
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

/* The last step of the curve that the model has taken. It includes all steps before. */
static const oct_page_point *taken_of(const oct_page_model *m)
{
    const oct_page_point *last = &m->curve[0];
    for (size_t i = 0; i < m->n_curve; i++)
        last = m->curve[i].taken ? &m->curve[i] : last;
    return last;
}

static void put_drawing(const ev_page *p, const oct_page_model *m, const scale *s)
{
    const size_t each = 1 + m->n_curve / MOST_STEPS;
    const oct_page_point *at = taken_of(m);
    oct_buf_printf(
        p->b,
        "<figure><div class=\"chart fall curve\"><svg viewBox=\"0 0 %d %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"Expected SQNR of the outputs by the size of the file\"><line x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>",
        WIDTH, HEIGHT, HEIGHT, WIDTH, HEIGHT, HEIGHT);
    if (m->limit > 0)
        oct_buf_printf(p->b, "<line class=\"limit\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>", x_of(s, m->limit),
                       x_of(s, m->limit), HEIGHT);
    oct_buf_puts(p->b, "<path class=\"sum\" d=\"");
    for (size_t i = 0; i < m->n_curve; i++)
        if (i % each == 0 || i + 1 == m->n_curve)
            oct_buf_printf(p->b, "%c%.1f %.1f", i ? 'L' : 'M', x_of(s, m->curve[i].bytes), y_of(s, m->curve[i].sqnr));
    oct_buf_printf(p->b, "\"/><path class=\"here\" d=\"M%.1f %.1fh0\"/></svg></div>\n<div class=\"axis\"><span>",
                   x_of(s, at->bytes), y_of(s, at->sqnr));
    ev_page_bytes(p, s->least);
    oct_buf_puts(p->b, ", ");
    ev_page_db(p, m->curve[0].sqnr);
    oct_buf_puts(p->b, "</span><span>");
    ev_page_bytes(p, s->most);
    oct_buf_puts(p->b, ", ");
    ev_page_db(p, s->best);
    oct_buf_puts(
        p->b,
        "</span></div>\n<figcaption>Signal to quantization noise expected at the outputs, by the size of the file. Point: this model, ");
    ev_page_bytes(p, at->bytes);
    oct_buf_puts(p->b, " and ");
    ev_page_db(p, at->sqnr);
    if (m->limit > 0) {
        oct_buf_puts(p->b, ". Dashed: what was allowed, ");
        ev_page_bytes(p, m->limit);
    }
    oct_buf_puts(p->b, ".</figcaption></figure>\n");
}

static void put_steps(const ev_page *p, const oct_page_model *m)
{
    oct_buf_printf(
        p->b,
        "<details><summary>All %zu steps</summary>\n<table class=\"sort\">\n<thead><tr><th scope=\"col\" class=\"n\">size</th><th scope=\"col\" class=\"n\">SQNR, dB</th>"
        "<th scope=\"col\">and then</th><th scope=\"col\">becomes</th><th scope=\"col\">taken</th></tr></thead>\n<tbody>\n",
        m->n_curve);
    for (size_t i = 0; i < m->n_curve; i++) {
        const oct_page_point *x = &m->curve[i];
        oct_buf_printf(p->b, "<tr><td class=\"n\" data-v=\"%.0f\">", x->bytes);
        ev_page_bytes(p, x->bytes);
        oct_buf_puts(p->b, "</td>");
        ev_page_db_cell(p, x->sqnr, "n");
        oct_buf_puts(p->b, "<td class=\"name\">");
        ev_page_name(p, *x->layer ? x->layer : "all in the fewest bytes");
        oct_buf_puts(p->b, "</td><td>");
        ev_page_text(p, x->form);
        oct_buf_printf(p->b, "</td><td>%s</td></tr>\n", x->taken ? "yes" : "");
    }
    oct_buf_puts(p->b, "</tbody>\n</table>\n</details>\n");
}

void ev_page_curve(const ev_page *p)
{
    if (!ev_page_has_curve(p))
        return;
    ev_page_section(p, "curve", "Size against loss");
    oct_buf_puts(
        p->b,
        "<p>From the smallest file on, each step gives one layer more bytes: the layer that gains most for them.</p>\n");
    for (size_t k = 0; k < p->r->n_models; k++) {
        const oct_page_model *m = ev_page_model(p, k);
        if (m->n_curve < 2)
            continue;
        const scale s = scale_of(m);
        ev_page_model_title(p, k);
        put_drawing(p, m, &s);
        put_steps(p, m);
    }
    ev_page_section_end(p);
}
