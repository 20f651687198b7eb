/* Time and bytes layer by layer, with the float and the quantized model side by side. */
#include "eval/report/page_int.h"

#include <math.h>
#include <string.h>

static bool has_rows(const ev_page *p)
{
    for (size_t k = 1; k < p->r->n_models; k++)
        if (p->r->models[k].n_costs)
            return true;
    return false;
}

/* Steps are shown for models whose layers cannot be compared with the float model's, and for a float model alone. */
static bool shows_steps(const ev_page *p, size_t k)
{
    const oct_eval_model_result *m = &p->r->models[k];
    return m->n_steps && !m->n_costs && (k || !has_rows(p));
}

bool ev_page_has_costs(const ev_page *p)
{
    for (size_t k = 0; k < p->r->n_models; k++)
        if (shows_steps(p, k))
            return true;
    return has_rows(p);
}

/* ---- the waterfall ---- */

enum { ROW = 10, PIXELS = 8, MOST_HEIGHT = 560, LEAST_HEIGHT = 60 }; /* ROW: height in units of the drawing */

static const char *name_of(const oct_eval_cost_row *c)
{
    return c->name && *c->name ? c->name : c->op;
}

static void put_step(const ev_page *p, const oct_eval_cost_row *c, const oct_eval_cost *x, double at, double whole,
                     size_t row, bool second, double thick)
{
    if (!(x->seconds > 0))
        return;
    oct_buf_printf(p->b, "<rect class=\"%s\" x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%.4g\"><title>",
                   second ? ev_page_kind(x->scheme, OCT_UNDEFINED) : "float", 1000 * at / whole,
                   row * ROW + (second ? 5 : 1), 1000 * x->seconds / whole < 0.6 ? 0.6 : 1000 * x->seconds / whole,
                   thick);
    ev_page_text(p, name_of(c));
    oct_buf_puts(p->b, second ? ": " : ", float: ");
    ev_page_ms(p, x->seconds);
    oct_buf_puts(p->b, "</title></rect>\n");
}

/* Each layer begins where the previous one ends: float above, quantized below. */
static void put_fall(const ev_page *p, const oct_eval_model_result *m)
{
    double was = 0, is = 0, whole = 0, sum = 0;
    for (size_t i = 0; i < m->n_costs; i++) {
        was += m->costs[i].was.seconds;
        is += m->costs[i].is.seconds;
    }
    whole = was > is ? was : is;
    if (!(whole > 0))
        return;
    /* Bars keep 3 pixels where rows are lower than that: they overlap those of the next rows, which begin elsewhere. */
    const size_t height = m->n_costs * PIXELS > MOST_HEIGHT    ? MOST_HEIGHT
                          : m->n_costs * PIXELS < LEAST_HEIGHT ? LEAST_HEIGHT
                                                               : m->n_costs * PIXELS;
    oct_buf_printf(
        p->b,
        "<figure><div class=\"chart fall\"><svg viewBox=\"0 0 1000 %zu\" height=\"%zu\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Time of %zu layers one after "
        "another\">\n",
        m->n_costs * ROW, height, m->n_costs);
    for (int i = 0; i <= 4; i++)
        oct_buf_printf(p->b, "<line x1=\"%d\" x2=\"%d\" y1=\"0\" y2=\"%zu\"/>", 250 * i, 250 * i, m->n_costs * ROW);
    const double thick = fmax(4, 3.0 * (double)(m->n_costs * ROW) / (double)height);
    was = 0;
    for (size_t i = 0; i < m->n_costs; i++) {
        put_step(p, &m->costs[i], &m->costs[i].was, was, whole, i, false, thick);
        put_step(p, &m->costs[i], &m->costs[i].is, sum, whole, i, true, thick);
        was += m->costs[i].was.seconds;
        sum += m->costs[i].is.seconds;
    }
    oct_buf_puts(p->b, "</svg><div class=\"axis\">");
    for (int i = 0; i <= 4; i++) {
        oct_buf_puts(p->b, i ? "<span>" : "<span>0");
        if (i)
            ev_page_ms(p, whole * i / 4);
        oct_buf_puts(p->b, "</span>");
    }
    oct_buf_puts(
        p->b,
        "</div></div>\n<figcaption>A run from top to bottom: each layer begins where the one before it ends. Grey: the float model, ");
    ev_page_ms(p, was);
    oct_buf_puts(p->b, "; coloured: this one, ");
    ev_page_ms(p, sum);
    oct_buf_puts(
        p->b,
        ". Each time is the median over runs in which steps were timed one by one; latency is that of whole runs.</figcaption></figure>\n");
}

/* ---- tables ---- */

#define SCATTERED_MARK "<span title=\"spread widely\">~</span>"

/* Chooses one unit for a table, so that its cells can be compared: microseconds if a whole run takes less than a
 * millisecond. */
static bool in_us(const oct_eval_model_result *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_costs; i++)
        sum += m->costs[i].was.seconds;
    for (size_t i = 0; !m->n_costs && i < m->n_steps; i++)
        sum += m->steps[i].seconds;
    return sum < 1e-3;
}

static const char *unit(bool us)
{
    return us ? "µs" : "ms";
}

/* Cells with numbers are sorted by milliseconds. */
static void time_cell(const ev_page *p, const oct_eval_cost *c, bool us)
{
    oct_buf_printf(p->b, "<td class=\"n%s\" data-v=\"%.9g\">", c->scattered ? " soft" : "", c->seconds * 1e3);
    if (c->scheme)
        oct_buf_printf(p->b, us ? "%.1f%s" : "%.3f%s", c->seconds * (us ? 1e6 : 1e3),
                       c->scattered ? SCATTERED_MARK : "");
    oct_buf_puts(p->b, "</td>");
}

static void ratio_cell(const ev_page *p, const oct_eval_cost_row *c)
{
    oct_buf_puts(p->b, "<td class=\"n\">");
    const double faster = oct_eval_cost_faster(&c->was, &c->is);
    if (!isnan(faster))
        oct_buf_printf(p->b, "%.2f", faster);
    oct_buf_puts(p->b, "</td>");
}

static void rate_cell(const ev_page *p, const oct_eval_cost *c)
{
    oct_buf_puts(p->b, "<td class=\"n wide\">");
    if (c->macs && c->seconds > 0 && !c->scattered)
        oct_buf_printf(p->b, "%.1f", 2 * (double)c->macs / c->seconds * 1e-9);
    oct_buf_puts(p->b, "</td>");
}

static void name_cell(const ev_page *p, const oct_eval_cost_row *c)
{
    oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"name dotted\"><span class=\"dot %s\"></span>",
                   ev_page_kind(c->is.scheme, OCT_UNDEFINED));
    ev_page_name(p, name_of(c));
    if (c->name && *c->name) {
        oct_buf_puts(p->b, " <small>");
        ev_page_name(p, c->op);
        oct_buf_puts(p->b, "</small>");
    }
    oct_buf_puts(p->b, "</th>");
}

static void time_table(const ev_page *p, const oct_eval_model_result *m)
{
    const bool us = in_us(m);
    oct_buf_printf(
        p->b,
        "<table class=\"sort\">\n<thead><tr><th scope=\"col\">layer</th><th scope=\"col\" class=\"n\">float, %s</th><th scope=\"col\" class=\"n\">here, %s</th>"
        "<th scope=\"col\" class=\"n\">speedup</th><th scope=\"col\" class=\"n wide\">float, GOP/s</th><th scope=\"col\" class=\"n wide\">here, GOP/s</th>"
        "<th scope=\"col\" class=\"n wide\">of the roof</th></tr></thead>\n<tbody>\n",
        unit(us), unit(us));
    for (size_t i = 0; i < m->n_costs; i++) {
        const oct_eval_cost_row *c = &m->costs[i];
        name_cell(p, c);
        time_cell(p, &c->was, us);
        time_cell(p, &c->is, us);
        ratio_cell(p, c);
        rate_cell(p, &c->was);
        rate_cell(p, &c->is);
        ev_page_share_cell(p, c->is.scattered ? NAN : c->is.roof,
                           "wide"); /* of a time that spreads widely nothing is said */
        oct_buf_puts(p->b, "</tr>\n");
    }
    oct_buf_puts(p->b, "</tbody></table>\n");
}

static void steps_table(const ev_page *p, const oct_eval_model_result *m)
{
    double most = 0;
    const bool us = in_us(m);
    for (size_t i = 0; i < m->n_steps; i++)
        most = m->steps[i].seconds > most ? m->steps[i].seconds : most;
    oct_buf_puts(p->b, "<table class=\"sort\">\n<caption>");
    ev_page_name(p, ev_page_base(m->name));
    oct_buf_printf(
        p->b,
        "</caption>\n<thead><tr><th scope=\"col\">step</th><th scope=\"col\" class=\"n\">%s</th><th scope=\"col\" class=\"n\">GOP/s</th>"
        "<th scope=\"col\" class=\"strip wide\">time</th></tr></thead>\n<tbody>\n",
        unit(us));
    for (size_t i = 0; i < m->n_steps; i++) {
        const oct_eval_step *s = &m->steps[i];
        const char *kind = ev_page_kind(s->scheme, OCT_UNDEFINED);
        oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"name dotted\"><span class=\"dot %s\"></span>", kind);
        ev_page_name(p, s->name);
        oct_buf_puts(p->b, " <small>");
        ev_page_text(p, s->op);
        oct_buf_printf(p->b, "</small></th><td class=\"n%s\" data-v=\"%.9g\">", s->scattered ? " soft" : "",
                       s->seconds * 1e3);
        oct_buf_printf(p->b, us ? "%.2f%s</td><td class=\"n\">" : "%.4f%s</td><td class=\"n\">",
                       s->seconds * (us ? 1e6 : 1e3), s->scattered ? SCATTERED_MARK : "");
        if (s->macs && s->seconds > 0 && !s->scattered)
            oct_buf_printf(p->b, "%.1f", 2 * (double)s->macs / s->seconds * 1e-9);
        oct_buf_printf(
            p->b,
            "</td><td class=\"strip wide\" data-v=\"%.9g\"><span class=\"bar %s\" style=\"width:%.1f%%\"></span></td></tr>\n",
            s->seconds * 1e3, kind, most > 0 ? 100 * s->seconds / most : 0);
    }
    oct_buf_puts(p->b, "</tbody></table>\n");
}

void ev_page_time(const ev_page *p)
{
    if (!ev_page_has_costs(p))
        return;
    ev_page_section(p, "time", "Time by layer");
    oct_buf_printf(
        p->b,
        "<p>%sPale numbers, marked ~, spread too widely to conclude from. The roof is the shortest time that this machine could take.</p>\n",
        has_rows(p) ? "A line holds all steps that lead to a layer's result. " : "");
    for (size_t k = 0; k < p->r->n_models; k++) {
        const oct_eval_model_result *m = &p->r->models[k];
        if (shows_steps(p, k)) {
            steps_table(p, m);
        } else if (m->n_costs) {
            ev_page_model_title(p, k);
            put_fall(p, m);
            time_table(p, m);
        }
    }
    ev_page_section_end(p);
}

/* ---- bytes ---- */

static void bytes_cell(const ev_page *p, const oct_eval_cost *c)
{
    oct_buf_printf(p->b, "<td class=\"n\" data-v=\"%llu\">", (unsigned long long)c->weights);
    if (c->scheme)
        ev_page_bytes(p, (double)c->weights);
    oct_buf_puts(p->b, "</td>");
}

static void size_table(const ev_page *p, const oct_eval_model_result *m, uint64_t most)
{
    oct_buf_puts(
        p->b,
        "<table class=\"sort\">\n<thead><tr><th scope=\"col\">layer</th><th scope=\"col\" class=\"n\">float</th><th scope=\"col\" class=\"n\">here</th>"
        "<th scope=\"col\" class=\"n\">share</th><th scope=\"col\" class=\"strip wide\">bytes</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < m->n_costs; i++) {
        const oct_eval_cost_row *c = &m->costs[i];
        if (!c->was.weights && !c->is.weights)
            continue;
        name_cell(p, c);
        bytes_cell(p, &c->was);
        bytes_cell(p, &c->is);
        ev_page_share_cell(p, c->was.weights ? (double)c->is.weights / (double)c->was.weights : NAN, "");
        oct_buf_printf(
            p->b,
            "<td class=\"strip wide\" data-v=\"%llu\"><span class=\"bar float\" style=\"width:%.1f%%\"></span><span class=\"bar %s\" style=\"width:%.1f%%\"></span></td></tr>\n",
            (unsigned long long)c->was.weights, 100 * (double)c->was.weights / (double)most,
            ev_page_kind(c->is.scheme, OCT_UNDEFINED), 100 * (double)c->is.weights / (double)most);
    }
    oct_buf_puts(p->b, "</tbody></table>\n");
}

/* The bytes of the largest layer. */
static uint64_t most_bytes(const oct_eval_model_result *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->n_costs; i++) {
        most = m->costs[i].was.weights > most ? m->costs[i].was.weights : most;
        most = m->costs[i].is.weights > most ? m->costs[i].is.weights : most;
    }
    return most;
}

bool ev_page_has_sizes(const ev_page *p)
{
    for (size_t k = 1; k < p->r->n_models; k++)
        if (most_bytes(&p->r->models[k]))
            return true;
    return false;
}

void ev_page_sizes(const ev_page *p)
{
    if (!ev_page_has_sizes(p))
        return;
    ev_page_section(p, "sizes", "Size by layer");
    oct_buf_puts(p->b, "<p>Bytes of the constants that a layer reads, as the file stores them.</p>\n");
    for (size_t k = 1; k < p->r->n_models; k++) {
        const oct_eval_model_result *m = &p->r->models[k];
        if (!most_bytes(m))
            continue;
        ev_page_model_title(p, k);
        size_table(p, m, most_bytes(m));
    }
    ev_page_section_end(p);
}
