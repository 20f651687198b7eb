/* Metrics with their paired intervals. */
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

/* The limit of a gate on the metric for model k, as a change of the value; NaN: there is no such gate. */
static double limit_of(const ev_page *p, size_t k)
{
    const oct_item *gates = oct_item_at(p->report, "gates");
    const char *name = oct_item_text(p->metric, "name");
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));)
        if (oct_item_at(g, "allowed_change") && oct_item_whole(g, "model_number") == (int64_t)k &&
            strcmp(oct_item_text(g, "metric"), name) == 0)
            return oct_item_number(g, "allowed_change");
    return NAN;
}

static void widen(strip *s, double v)
{
    s->lo = v < s->lo ? v : s->lo;
    s->hi = v > s->hi ? v : s->hi;
}

static bool has_interval(const oct_item *drop)
{
    return isfinite(oct_item_number(drop, "low")) && isfinite(oct_item_number(drop, "high")) &&
           isfinite(oct_item_number(drop, "value"));
}

/* Chooses one scale for all models. False: no score has an interval. */
static bool make_strip(const ev_page *p, strip *s)
{
    ev_page of = *p;
    const bool points = oct_item_true(p->metric, "percent");
    bool any = false;
    *s = (strip){ .unit = points ? 100 : 1, .of = points ? " points" : "" };
    of.k = 0;
    for (of.model = NULL; (of.model = oct_item_next(p->models, of.model)); of.k++) {
        const oct_item *drop = ev_page_drop(&of);
        const double limit = limit_of(p, of.k);
        if (!has_interval(drop))
            continue;
        any = true;
        widen(s, oct_item_number(drop, "change.low") * s->unit);
        widen(s, oct_item_number(drop, "change.high") * s->unit);
        widen(s, oct_item_number(drop, "change.value") * s->unit);
        if (isfinite(limit))
            widen(s, limit * s->unit);
    }
    const double room = (s->hi - s->lo) * 0.06;
    s->lo -= room;
    s->hi += room;
    return any && s->hi > s->lo;
}

void ev_put_strip(ev_page *p)
{
    strip s;
    const oct_item *drop = ev_page_drop(p), *change = oct_item_at(drop, "change");
    const double limit = limit_of(p, p->k);
    if (!make_strip(p, &s) || isnan(oct_item_number(drop, "low")) || !isfinite(oct_item_number(drop, "value"))) {
        oct_buf_puts(p->b, "<td class=\"strip none\"></td>");
        return;
    }
    const double v = oct_item_number(change, "value") * s.unit, low = oct_item_number(change, "low") * s.unit,
                 high = oct_item_number(change, "high") * s.unit, lo = place(&s, low), hi = place(&s, high),
                 at = place(&s, limit * s.unit);
    oct_buf_printf(
        p->b,
        "<td class=\"strip\"><svg height=\"28\" role=\"img\" aria-label=\"%.3g, 95 %% interval %.3g to %.3g%s\">"
        "<line x1=\"2%%\" x2=\"98%%\" y1=\"14\" y2=\"14\"/><line class=\"zero\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"3\" y2=\"25\"/>",
        v, low, high, s.of, place(&s, 0), place(&s, 0));
    if (isfinite(limit))
        oct_buf_printf(p->b, "<line class=\"limit\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"1\" y2=\"27\"/>", at, at);
    oct_buf_printf(
        p->b,
        "<line class=\"span\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"14\" y2=\"14\"/><line class=\"end\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"10\" y2=\"18\"/>"
        "<line class=\"end\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"10\" y2=\"18\"/><circle cx=\"%.2f%%\" cy=\"14\" r=\"4.5\"/></svg></td>",
        lo, hi, lo, lo, hi, hi, place(&s, v));
}

void ev_put_axis(ev_page *p)
{
    strip s;
    if (make_strip(p, &s))
        oct_buf_printf(p->b,
                       "<span class=\"axis\"><span>%+.3g%s</span><span>%s is better</span><span>%+.3g</span></span>",
                       s.lo, s.of, oct_item_true(p->metric, "larger_is_better") ? "right" : "left", s.hi);
}

/* A quantized model has a row also if it has no value. */
bool ev_is_scored(const ev_page *p)
{
    return p->k || !isnan(ev_page_score(p));
}

void ev_put_score(ev_page *p)
{
    ev_page_value(p, p->metric, ev_page_score(p));
}

void ev_put_drop(ev_page *p)
{
    ev_page_text(p, oct_item_text(ev_page_drop(p), "text"));
}

/* The method of the intervals of the metric, where it has any. */
void ev_put_method(ev_page *p)
{
    ev_page of = *p;
    for (of.model = NULL; (of.model = oct_item_next(p->models, of.model));) {
        const oct_item *drop = ev_page_drop(&of);
        if (!oct_item_text(drop, "interval") || isnan(oct_item_number(drop, "low")))
            continue;
        oct_buf_puts(p->b, "; ");
        ev_page_text(p, oct_item_text(drop, "interval"));
        return;
    }
}

/* Whether an output has numbers that were compared. */
bool ev_is_numbers(const ev_page *p)
{
    return !isnan(oct_item_number(p->x, "sqnr_db")) || oct_item_whole(p->x, "broken");
}
