/* Time and bytes layer by layer, with the float and the quantized model side by side. */
#include "eval/report/page_int.h"

#include <math.h>
#include <string.h>

static bool has_rows(const ev_page *p)
{
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        if (oct_item_count(m, "costs"))
            return true;
    return false;
}

/* Steps are shown for models whose layers cannot be compared with the float model's, and for a float model alone. */
bool ev_is_shows_steps(const ev_page *p)
{
    return oct_item_count(p->model, "profile") && !oct_item_count(p->model, "costs") && (p->k || !has_rows(p));
}

bool ev_is_has_times(const ev_page *p)
{
    ev_page of = *p;
    of.k = 0;
    for (of.model = NULL; (of.model = oct_item_next(p->models, of.model)); of.k++)
        if (ev_is_shows_steps(&of))
            return true;
    return has_rows(p);
}

/* 0 where no step of the model belongs to the row. */
static double time_of(const oct_item *cost, const char *model)
{
    const double ms = oct_item_number(oct_item_member(cost, model), "ms");
    return isnan(ms) ? 0 : ms;
}

/* ---- the waterfall ---- */

enum { ROW = 10, PIXELS = 8, MOST_HEIGHT = 560, LEAST_HEIGHT = 60 }; /* ROW: height in units of the drawing */

static void put_step(const ev_page *p, const oct_item *c, double at, double whole, size_t row, bool second,
                     double thick)
{
    const double ms = time_of(c, second ? "quant" : "float");
    const char *name = oct_item_text(c, "name");
    if (!(ms > 0))
        return;
    oct_buf_printf(p->b, "<rect class=\"%s\" x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%.4g\"><title>",
                   second ? ev_page_kind(oct_item_text(c, "quant.scheme"), NULL) : "float", 1000 * at / whole,
                   row * ROW + (second ? 5 : 1), 1000 * ms / whole < 0.6 ? 0.6 : 1000 * ms / whole, thick);
    ev_page_text(p, name && *name ? name : oct_item_text(c, "op"));
    oct_buf_puts(p->b, second ? ": " : ", float: ");
    ev_page_ms(p, ms);
    oct_buf_puts(p->b, "</title></rect>\n");
}

/* Each layer begins where the previous one ends: float above, quantized below. */
void ev_put_fall(ev_page *p)
{
    const oct_item *costs = oct_item_at(p->model, "costs");
    const size_t n = oct_item_count(costs, "");
    double was = 0, is = 0, whole = 0, sum = 0;
    size_t i = 0;
    for (const oct_item *c = NULL; (c = oct_item_next(costs, c));) {
        was += time_of(c, "float");
        is += time_of(c, "quant");
    }
    whole = was > is ? was : is;
    if (!(whole > 0))
        return;
    /* Bars keep 3 pixels where rows are lower than that: they overlap those of the next rows, which begin elsewhere. */
    const size_t height = n * PIXELS > MOST_HEIGHT    ? MOST_HEIGHT
                          : n * PIXELS < LEAST_HEIGHT ? LEAST_HEIGHT
                                                      : n * PIXELS;
    oct_buf_printf(
        p->b,
        "<figure><div class=\"chart fall\"><svg viewBox=\"0 0 1000 %zu\" height=\"%zu\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Time of %zu layers one after "
        "another\">\n",
        n * ROW, height, n);
    for (int tick = 0; tick <= 4; tick++)
        oct_buf_printf(p->b, "<line x1=\"%d\" x2=\"%d\" y1=\"0\" y2=\"%zu\"/>", 250 * tick, 250 * tick, n * ROW);
    const double thick = fmax(4, 3.0 * (double)(n * ROW) / (double)height);
    was = 0;
    for (const oct_item *c = NULL; (c = oct_item_next(costs, c)); i++) {
        put_step(p, c, was, whole, i, false, thick);
        put_step(p, c, sum, whole, i, true, thick);
        was += time_of(c, "float");
        sum += time_of(c, "quant");
    }
    oct_buf_puts(p->b, "</svg><div class=\"axis\">");
    for (int tick = 0; tick <= 4; tick++) {
        oct_buf_puts(p->b, tick ? "<span>" : "<span>0");
        if (tick)
            ev_page_ms(p, whole * tick / 4);
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

/* Chooses one unit for a table, so that its cells can be compared: microseconds if a whole run takes less than a
 * millisecond. */
static bool is_in_us(const oct_item *model)
{
    const bool rows = oct_item_count(model, "costs");
    const oct_item *list = oct_item_at(model, rows ? "costs" : "profile");
    double sum = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(list, x));)
        sum += rows ? time_of(x, "float") : oct_item_number(x, "ms");
    return sum < 1;
}

void ev_put_unit(ev_page *p)
{
    oct_buf_puts(p->b, p->in_us ? "µs" : "ms");
}

/* words: the digits of milliseconds; of microseconds two less are shown. */
void ev_form_time(const ev_page *p, const oct_item *x, const char *words)
{
    if (x)
        oct_buf_printf(p->b, "%.*f", *words - '0' - (p->in_us ? 2 : 0), oct_item_number(x, "") * (p->in_us ? 1e3 : 1));
}

/* Of a time that spreads widely nothing is said. */
void ev_form_rate(const ev_page *p, const oct_item *x, const char *words)
{
    const double macs = oct_item_number(x, "macs"), ms = oct_item_number(x, "ms");
    if (macs > 0 && ms > 0 && !oct_item_true(x, "wide"))
        oct_buf_printf(p->b, "%.1f", 2 * macs / ms * 1e-6);
}

void ev_put_share_of_slowest(ev_page *p)
{
    double most = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(p->list, x));)
        most = fmax(most, oct_item_number(x, "ms"));
    oct_buf_printf(p->b, "%.1f", most > 0 ? 100 * oct_item_number(p->x, "ms") / most : 0);
}

/* ---- bytes ---- */

static double bytes_of(const oct_item *cost, const char *model)
{
    const double bytes = oct_item_number(oct_item_member(cost, model), "weight_bytes");
    return isnan(bytes) ? 0 : bytes;
}

/* The bytes of the largest layer. */
static double most_bytes(const oct_item *model)
{
    const oct_item *costs = oct_item_at(model, "costs");
    double most = 0;
    for (const oct_item *c = NULL; (c = oct_item_next(costs, c));)
        most = fmax(most, fmax(bytes_of(c, "float"), bytes_of(c, "quant")));
    return most;
}

void ev_page_measure(ev_page *p)
{
    p->most_bytes = most_bytes(p->model);
    p->in_us = is_in_us(p->model);
}

bool ev_is_weighty(const ev_page *p)
{
    return p->most_bytes > 0;
}

bool ev_is_has_sizes(const ev_page *p)
{
    for (const oct_item *m = NULL; (m = oct_item_next(p->models, m));)
        if (most_bytes(m) > 0)
            return true;
    return false;
}

bool ev_is_has_weights(const ev_page *p)
{
    return bytes_of(p->x, "float") > 0 || bytes_of(p->x, "quant") > 0;
}

void ev_put_weights_left(ev_page *p)
{
    const double was = bytes_of(p->x, "float");
    ev_page_share_cell(p, was > 0 ? bytes_of(p->x, "quant") / was : NAN, "");
}

void ev_form_of_largest(const ev_page *p, const oct_item *x, const char *words)
{
    oct_buf_printf(p->b, "%.1f", x ? 100 * oct_item_number(x, "") / p->most_bytes : 0);
}
