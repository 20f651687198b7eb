/* Metrics with their paired intervals, and gates. */
#include "eval/report/page_int.h"

#include <math.h>
#include <string.h>

/* How a strip shows a score: the change from the float model, in the units in which it is printed. */
typedef struct strip {
    double lo, hi; /* the ends of the drawing */
    double unit;
    const char *of; /* the unit after a number */
} strip;

static double place(const strip *s, double v)
{
    return 2 + 96 * (v - s->lo) / (s->hi - s->lo);
}

/* The limit of a gate on this score, as a change of the value; NaN: there is no such gate. */
static double limit_of(const ev_page *p, size_t k, size_t i)
{
    for (size_t g = 0; g < p->c->n_gates; g++) {
        const oct_gate_result *x = &p->c->gates[g];
        if (x->model != k || x->score != &p->r->models[k].scores[i] || x->subject)
            continue;
        if (x->gate->kind == OCT_GATE_DROP)
            return oct_eval_change(&(oct_eval_score){ .metric = x->score->metric, .drop = x->limit }).mean;
        if (x->gate->kind == OCT_GATE_AGREEMENT)
            return x->limit - x->score->reference;
    }
    return NAN;
}

static void widen(strip *s, double v)
{
    s->lo = v < s->lo ? v : s->lo;
    s->hi = v > s->hi ? v : s->hi;
}

/* Chooses one scale for all models. False: no score has an interval. */
static bool make_strip(const ev_page *p, size_t i, strip *s)
{
    const oct_metric *m = p->r->models[0].scores[i].metric;
    bool any = false;
    *s = (strip){ .unit = oct_metric_in_percent(m) ? 100 : 1, .of = oct_metric_in_percent(m) ? " points" : "" };
    for (size_t k = 1; k < p->r->n_models; k++) {
        const oct_eval_score *x = &p->r->models[k].scores[i];
        const double limit = limit_of(p, k, i);
        const oct_interval change = oct_eval_change(x);
        if (isnan(x->lo) || isinf(x->lo) || isinf(x->hi) || isnan(x->hi) || !isfinite(x->drop))
            continue;
        any = true;
        widen(s, change.lo * s->unit);
        widen(s, change.hi * s->unit);
        widen(s, change.mean * s->unit);
        if (isfinite(limit))
            widen(s, limit * s->unit);
    }
    const double room = (s->hi - s->lo) * 0.06;
    s->lo -= room;
    s->hi += room;
    return any && s->hi > s->lo;
}

static void put_strip(const ev_page *p, const strip *s, size_t k, size_t i)
{
    const oct_eval_score *x = &p->r->models[k].scores[i];
    const double limit = limit_of(p, k, i);
    if (isnan(x->lo) || !isfinite(x->drop)) {
        oct_buf_puts(p->b, "<td class=\"strip none\"></td>");
        return;
    }
    const oct_interval change = oct_eval_change(x);
    const double lo = place(s, change.lo * s->unit), hi = place(s, change.hi * s->unit), at = place(s, limit * s->unit);
    oct_buf_printf(
        p->b,
        "<td class=\"strip\"><svg height=\"28\" role=\"img\" aria-label=\"%.3g, 95 %% interval %.3g to %.3g%s\">"
        "<line x1=\"2%%\" x2=\"98%%\" y1=\"14\" y2=\"14\"/><line class=\"zero\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"3\" y2=\"25\"/>",
        change.mean * s->unit, change.lo * s->unit, change.hi * s->unit, s->of, place(s, 0), place(s, 0));
    if (isfinite(limit))
        oct_buf_printf(p->b, "<line class=\"limit\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"1\" y2=\"27\"/>", at, at);
    oct_buf_printf(
        p->b,
        "<line class=\"span\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"14\" y2=\"14\"/><line class=\"end\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"10\" y2=\"18\"/>"
        "<line class=\"end\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"10\" y2=\"18\"/><circle cx=\"%.2f%%\" cy=\"14\" r=\"4.5\"/></svg></td>",
        lo, hi, lo, lo, hi, hi, place(s, change.mean * s->unit));
}

static void put_row(const ev_page *p, const strip *s, bool drawn, size_t k, size_t i)
{
    char words[OCT_DROP_TEXT];
    const oct_eval_score *x = &p->r->models[k].scores[i];
    if (k == 0 && isnan(x->value))
        return;
    oct_buf_printf(p->b, "<tr><th scope=\"row\" class=\"name dotted\"><span class=\"dot %s\"></span>",
                   ev_page_model_kind(p, k));
    ev_page_name(p, ev_page_base(p->r->models[k].name));
    oct_buf_puts(p->b, "</th><td class=\"n\">");
    ev_page_value(p, x->metric, x->value);
    oct_buf_printf(p->b, "</td><td class=\"said%s\">", k ? "" : " none");
    ev_page_text(p, k ? oct_report_drop(words, x) : "");
    oct_buf_puts(p->b, "</td>");
    if (drawn && k)
        put_strip(p, s, k, i);
    else
        oct_buf_puts(p->b, "<td class=\"strip none\"></td>");
    oct_buf_puts(p->b, "</tr>\n");
}

/* The method of the intervals of metric i; NULL: it has none. */
static const char *method_of(const ev_page *p, size_t i)
{
    for (size_t k = 1; k < p->r->n_models; k++)
        if (p->r->models[k].scores[i].method && !isnan(p->r->models[k].scores[i].lo))
            return p->r->models[k].scores[i].method;
    return NULL;
}

/* Writes the rows of a metric, with the scale of their drawings. */
static void put_metric(const ev_page *p, size_t i)
{
    strip s;
    const oct_metric *m = p->r->models[0].scores[i].metric;
    const bool drawn = make_strip(p, i, &s);
    oct_buf_puts(p->b, "<tbody><tr class=\"group\"><th colspan=\"3\" scope=\"rowgroup\">");
    ev_page_text(p, m->name);
    oct_buf_puts(p->b, " <small>");
    ev_page_text(p, m->summary);
    oct_buf_puts(p->b, method_of(p, i) ? "; " : "");
    ev_page_text(p, method_of(p, i));
    oct_buf_puts(p->b, "</small></th><td class=\"strip\">");
    if (drawn)
        oct_buf_printf(p->b,
                       "<span class=\"axis\"><span>%+.3g%s</span><span>%s is better</span><span>%+.3g</span></span>",
                       s.lo, s.of, m->larger_is_better ? "right" : "left", s.hi);
    oct_buf_puts(p->b, "</td></tr>\n");
    for (size_t k = 0; k < p->r->n_models; k++)
        put_row(p, &s, drawn, k, i);
    oct_buf_puts(p->b, "</tbody>\n");
}

static void put_outputs(const ev_page *p, size_t k)
{
    oct_buf_puts(p->b, "<table class=\"sort\">\n<caption>Outputs");
    if (p->r->n_models > 2) {
        oct_buf_puts(p->b, " of ");
        ev_page_text(p, ev_page_base(p->r->models[k].name));
    }
    oct_buf_puts(
        p->b,
        "</caption>\n<thead><tr><th scope=\"col\">output</th><th scope=\"col\" class=\"n\">SQNR, dB</th><th scope=\"col\" class=\"n\">cosine</th>"
        "<th scope=\"col\" class=\"n\">largest error</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < p->r->n_outputs; i++) {
        const oct_eval_output *o = &p->r->models[k].outputs[i];
        oct_buf_puts(p->b, "<tr><th scope=\"row\" class=\"name\">");
        ev_page_text(p, o->name);
        oct_buf_puts(p->b, "</th>");
        if (isnan(o->sqnr_db) && !o->broken) { /* no numbers to compare */
            oct_buf_puts(p->b, "<td class=\"n\"></td><td class=\"n\"></td><td class=\"n\"></td></tr>\n");
            continue;
        }
        ev_page_db_cell(p, o->sqnr_db, "");
        oct_buf_printf(p->b, "<td class=\"n\">%.6f</td><td class=\"n\">%.4g</td></tr>\n", o->cosine, o->max_abs);
    }
    oct_buf_puts(p->b, "</tbody></table>\n");
}

void ev_page_accuracy(const ev_page *p)
{
    if (!p->r->n_scores)
        return;
    ev_page_section(p, "accuracy", "Accuracy");
    if (p->r->n_models > 1)
        oct_buf_puts(
            p->b,
            "<p>All models see the same samples, so intervals are of paired differences: where one holds the line of no change, the samples do not "
            "show a difference. A dashed line is a gate.</p>\n");
    oct_buf_puts(
        p->b,
        "<table class=\"forest\">\n<thead><tr><th scope=\"col\">model</th><th scope=\"col\" class=\"n\">value</th><th scope=\"col\">against float</th>"
        "<th scope=\"col\" class=\"strip\">change, 95 % interval</th></tr></thead>\n");
    for (size_t i = 0; i < p->r->n_scores; i++)
        put_metric(p, i);
    oct_buf_puts(p->b, "</table>\n");
    for (size_t k = 1; k < p->r->n_models && p->r->n_outputs > 1; k++)
        put_outputs(p, k);
    ev_page_section_end(p);
}

void ev_page_gates(const ev_page *p)
{
    char title[OCT_GATE_TITLE], words[OCT_GATE_TEXT];
    if (!p->c->n_gates)
        return;
    ev_page_section(p, "gates", "Gates");
    oct_buf_puts(
        p->b,
        "<table>\n<thead><tr><th scope=\"col\">gate</th><th scope=\"col\">result</th><th scope=\"col\">why</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < p->c->n_gates; i++) {
        const oct_gate_result *g = &p->c->gates[i];
        oct_buf_puts(p->b, "<tr><th scope=\"row\">");
        ev_page_text(p, oct_report_gate_title(title, g));
        if (p->r->n_models > 2) {
            oct_buf_puts(p->b, "<br><small>");
            ev_page_text(p, ev_page_base(p->r->models[g->model].name));
            oct_buf_puts(p->b, "</small>");
        }
        oct_buf_printf(p->b, "</th><td><span class=\"mark %s\">%s%s</span></td><td>",
                       !g->met     ? "bad"
                       : g->unsure ? "mid"
                                   : "good",
                       g->met ? "met" : "missed", g->unsure ? "?" : "");
        ev_page_text(p, oct_report_gate_result(words, g));
        oct_buf_puts(p->b, "</td></tr>\n");
    }
    oct_buf_puts(p->b, "</tbody></table>\n");
    ev_page_section_end(p);
}
