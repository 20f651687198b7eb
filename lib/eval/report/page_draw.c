/* Draws a layer: its values with the range that was chosen for them, and the scales of its weights. */
#include "eval/report/page_int.h"

#include "kernels/math.h"

#include <math.h>

enum { WIDTH = 64, HEIGHT = 96, COLUMNS = 96 }; /* one unit of height is one pixel */

/* ---- values ---- */

/* The height for a count is logarithmic, so that the tails are visible. */
static double tall(uint64_t count, uint64_t most)
{
    return count ? 1 + (HEIGHT - 2) * (double)(oct_logf(1 + (float)count) / oct_logf(1 + (float)most)) : 0;
}

static double across(const oct_eval_histogram *h, double v)
{
    const double x = WIDTH * (v - h->lo) / (h->hi - h->lo);
    return x < 0 ? 0 : x > WIDTH ? WIDTH : x;
}

/* Draws the bins inside the range, or those outside: the outline of adjacent bins. */
static void put_bins(const ev_page *p, const oct_eval_layer *l, uint64_t most, bool beyond)
{
    const oct_eval_histogram *h = &l->histogram;
    bool open = false;
    oct_buf_printf(p->b, "<path class=\"%s\" d=\"", beyond ? "cut" : "held");
    for (int i = 0; i < OCT_LAYER_BINS; i++) {
        const double middle = h->lo + (h->hi - h->lo) * (i + 0.5) / OCT_LAYER_BINS;
        const bool out = !isnan(l->range.lo) && (middle < l->range.lo || middle > l->range.hi),
                   mine = h->bin[i] && out == beyond;
        if (mine && !open)
            oct_buf_printf(p->b, "M%d %d", i, HEIGHT);
        if (mine)
            oct_buf_printf(p->b, "V%.0fH%d", HEIGHT - tall(h->bin[i], most), i + 1);
        else if (open)
            oct_buf_printf(p->b, "V%dz", HEIGHT);
        open = mine;
    }
    oct_buf_printf(p->b, open ? "V%dz\"/>" : "\"/>", HEIGHT);
}

static void put_range(const ev_page *p, const oct_eval_layer *l)
{
    const oct_eval_histogram *h = &l->histogram;
    if (isnan(l->range.lo))
        return;
    const double lo = across(h, l->range.lo), hi = across(h, l->range.hi);
    oct_buf_printf(p->b, "<rect class=\"in\" x=\"%.2f\" width=\"%.2f\" y=\"0\" height=\"%d\"/>", lo, hi - lo, HEIGHT);
    oct_buf_printf(p->b, "<path class=\"edge\" d=\"M%.2f 0v%dM%.2f 0v%d\"/>", lo, HEIGHT, hi, HEIGHT);
}

void ev_page_draw_values(const ev_page *p, const oct_eval_layer *l)
{
    const oct_eval_histogram *h = &l->histogram;
    char text[EV_SHARE_TEXT];
    uint64_t most = 1;
    if (!h->n || !(h->hi > h->lo))
        return;
    for (int i = 0; i < OCT_LAYER_BINS; i++)
        most = h->bin[i] > most ? h->bin[i] : most;
    oct_buf_printf(
        p->b,
        "<figure class=\"draw\"><svg viewBox=\"0 0 %d %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Histogram of the values\">",
        WIDTH, HEIGHT, HEIGHT);
    put_range(p, l);
    put_bins(p, l, most, false);
    put_bins(p, l, most, true);
    oct_buf_printf(
        p->b,
        "<path class=\"base\" d=\"M0 %dh%d\"/></svg><div class=\"axis\"><span>%.4g</span><span>%.4g</span></div><figcaption>Float values, counts by logarithm: %.4g to %.4g",
        HEIGHT, WIDTH, h->lo, h->hi, h->min, h->max);
    if (!isnan(l->range.lo))
        oct_buf_printf(p->b, "; the range holds %.4g to %.4g, and clips %s", l->range.lo, l->range.hi,
                       l->clipped > 0 ? ev_page_share(text, l->clipped) : "none");
    if (h->below + h->above)
        oct_buf_printf(p->b, "; %llu values lie outside of the drawing", (unsigned long long)(h->below + h->above));
    oct_buf_puts(p->b, "</figcaption></figure>");
}

/* ---- weights ---- */

/* What a column shows for the channels that share it: the largest scale and the worst SQNR. */
typedef struct column {
    double scale, db;
} column;

static size_t gather(const oct_eval_weights *w, column *c, double *least, double *most)
{
    const size_t n = w->n_channel < COLUMNS ? w->n_channel : COLUMNS;
    *least = INFINITY;
    *most = 0;
    for (size_t i = 0; i < n; i++)
        c[i] = (column){ NAN, INFINITY };
    for (size_t i = 0; i < w->n_channel; i++) {
        const oct_eval_channel *ch = &w->channel[i];
        column *to = &c[i * n / w->n_channel];
        if (!isnan(ch->scale)) {
            to->scale = isnan(to->scale) || ch->scale > to->scale ? ch->scale : to->scale;
            *least = ch->scale < *least ? ch->scale : *least;
            *most = ch->scale > *most ? ch->scale : *most;
        }
        to->db = ch->sqnr_db < to->db ? ch->sqnr_db : to->db;
    }
    return n;
}

#define DECADES 3.0f /* how many decades of scales are shown below the largest one */

/* The height for a scale is logarithmic, because the scales of channels differ by orders of magnitude. */
static double tall_scale(double scale, double most)
{
    const double h = scale > 0 ? 1 + (double)(oct_logf((float)(scale / most)) / (DECADES * 2.3025851f)) : 0;
    return HEIGHT * (h < 0.03 ? 0.03 : h);
}

#define BEST 60.0 /* dB at the top of the line */

static double depth(double db)
{
    const double d = isnan(db) || db < 0 ? 0 : db > BEST ? BEST : db;
    return HEIGHT * (1 - d / BEST);
}

static void put_columns(const ev_page *p, const column *c, size_t n, double most)
{
    oct_buf_puts(p->b, "<path class=\"scales\" transform=\"translate(.5)\" d=\"");
    for (size_t i = 0; i < n; i++)
        if (!isnan(c[i].scale) && most > 0)
            oct_buf_printf(p->b, "M%zu %dV%.0f", i, HEIGHT, HEIGHT - tall_scale(c[i].scale, most));
    oct_buf_puts(p->b, "\"/><path class=\"worst\" transform=\"translate(.5)\" d=\"");
    for (size_t i = 0; i < n; i++)
        oct_buf_printf(p->b, "%s%zu %.0f", i ? "L" : "M", i, depth(c[i].db));
    oct_buf_puts(p->b, "\"/>");
}

void ev_page_draw_weights(const ev_page *p, const oct_eval_weights *w)
{
    column c[COLUMNS];
    double least, most, worst = INFINITY, best = -INFINITY;
    if (w->n_channel < 2)
        return;
    const size_t n = gather(w, c, &least, &most);
    for (size_t i = 0; i < w->n_channel; i++) {
        worst = w->channel[i].sqnr_db < worst ? w->channel[i].sqnr_db : worst;
        best = w->channel[i].sqnr_db > best ? w->channel[i].sqnr_db : best;
    }
    oct_buf_printf(
        p->b,
        "<figure class=\"draw\"><svg viewBox=\"0 0 %zu %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Weights of %zu channels\">",
        n, HEIGHT, HEIGHT, w->n_channel);
    put_columns(p, c, n, most);
    oct_buf_printf(
        p->b,
        "<path class=\"base\" d=\"M0 %dh%zu\"/></svg><div class=\"axis\"><span>channel 0</span><span>%zu</span></div><figcaption>Weights by output channel. ",
        HEIGHT, n, w->n_channel - 1);
    if (most > 0)
        oct_buf_printf(p->b, "Bars: scale by logarithm, %.3g to %.3g. ", least, most);
    oct_buf_puts(p->b, "Line: SQNR, 0 to 60 dB, ");
    ev_page_db(p, worst);
    if (worst < best) {
        oct_buf_puts(p->b, " to ");
        ev_page_db(p, best);
    }
    oct_buf_puts(p->b, "</figcaption></figure>");
}
