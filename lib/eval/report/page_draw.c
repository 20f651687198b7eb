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

typedef struct axis {
    double lo, hi;      /* of the histogram */
    double least, most; /* of the range; NaN: there is none */
} axis;

static double across(const axis *a, double v)
{
    const double x = WIDTH * (v - a->lo) / (a->hi - a->lo);
    return x < 0 ? 0 : x > WIDTH ? WIDTH : x;
}

/* Draws the bins inside the range, or those outside: the outline of adjacent bins. */
static void put_bins(const ev_page *p, const oct_item *bins, const axis *a, uint64_t most, bool beyond)
{
    const int n = (int)oct_item_count(bins, "");
    bool open = false;
    int i = 0;
    oct_buf_printf(p->b, "<path class=\"%s\" d=\"", beyond ? "cut" : "held");
    for (const oct_item *bin = NULL; (bin = oct_item_next(bins, bin)); i++) {
        const double middle = a->lo + (a->hi - a->lo) * (i + 0.5) / n;
        const uint64_t count = (uint64_t)oct_item_whole(bin, "");
        const bool out = !isnan(a->least) && (middle < a->least || middle > a->most), mine = count && out == beyond;
        if (mine && !open)
            oct_buf_printf(p->b, "M%d %d", i, HEIGHT);
        if (mine)
            oct_buf_printf(p->b, "V%.0fH%d", HEIGHT - tall(count, most), i + 1);
        else if (open)
            oct_buf_printf(p->b, "V%dz", HEIGHT);
        open = mine;
    }
    oct_buf_printf(p->b, open ? "V%dz\"/>" : "\"/>", HEIGHT);
}

static void put_range(const ev_page *p, const axis *a)
{
    if (isnan(a->least))
        return;
    const double lo = across(a, a->least), hi = across(a, a->most);
    oct_buf_printf(p->b, "<rect class=\"in\" x=\"%.2f\" width=\"%.2f\" y=\"0\" height=\"%d\"/>", lo, hi - lo, HEIGHT);
    oct_buf_printf(p->b, "<path class=\"edge\" d=\"M%.2f 0v%dM%.2f 0v%d\"/>", lo, HEIGHT, hi, HEIGHT);
}

void ev_page_draw_values(const ev_page *p, const oct_item *histogram, const oct_item *range)
{
    const oct_item *bins = oct_item_at(histogram, "bins");
    const double clipped = oct_item_number(range, "clipped"),
                 outside = oct_item_number(histogram, "below") + oct_item_number(histogram, "above");
    const axis a = { oct_item_number(histogram, "low"), oct_item_number(histogram, "high"),
                     oct_item_number(range, "low"), oct_item_number(range, "high") };
    char text[EV_SHARE_TEXT];
    uint64_t most = 1;
    if (!(a.hi > a.lo))
        return;
    for (const oct_item *bin = NULL; (bin = oct_item_next(bins, bin));)
        most = (uint64_t)oct_item_whole(bin, "") > most ? (uint64_t)oct_item_whole(bin, "") : most;
    oct_buf_printf(
        p->b,
        "<figure class=\"draw\"><svg viewBox=\"0 0 %d %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Histogram of the values\">",
        WIDTH, HEIGHT, HEIGHT);
    put_range(p, &a);
    put_bins(p, bins, &a, most, false);
    put_bins(p, bins, &a, most, true);
    oct_buf_printf(
        p->b,
        "<path class=\"base\" d=\"M0 %dh%d\"/></svg><div class=\"axis\"><span>%.4g</span><span>%.4g</span></div><figcaption>Float values, counts by logarithm: %.4g to %.4g",
        HEIGHT, WIDTH, a.lo, a.hi, oct_item_number(histogram, "min"), oct_item_number(histogram, "max"));
    if (!isnan(a.least))
        oct_buf_printf(p->b, "; the range holds %.4g to %.4g, and clips %s", a.least, a.most,
                       clipped > 0 ? ev_page_share(text, clipped) : "none");
    if (outside > 0)
        oct_buf_printf(p->b, "; %.0f values lie outside of the drawing", outside);
    oct_buf_puts(p->b, "</figcaption></figure>");
}

void ev_form_values_drawing(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_draw_values(p, x, oct_item_at(p->x, "range"));
}

/* ---- weights ---- */

/* What a column shows for the channels that share it: the largest scale and the worst SQNR. */
typedef struct column {
    double scale, db;
} column;

static size_t gather(const oct_item *weights, size_t n_channel, column *c, column *least, column *most)
{
    const oct_item *scales = oct_item_at(weights, "channels.scale"), *dbs = oct_item_at(weights, "channels.sqnr_db"),
                   *scale = NULL, *sqnr = NULL;
    const size_t n = n_channel < COLUMNS ? n_channel : COLUMNS;
    *least = (column){ INFINITY, INFINITY };
    *most = (column){ 0, -INFINITY };
    for (size_t i = 0; i < n; i++)
        c[i] = (column){ NAN, INFINITY };
    for (size_t i = 0; i < n_channel; i++) {
        scale = oct_item_next(scales, scale);
        sqnr = oct_item_next(dbs, sqnr);
        const column ch = { oct_item_number(scale, ""), oct_item_number(sqnr, "") };
        column *to = &c[i * n / n_channel];
        if (!isnan(ch.scale)) {
            to->scale = isnan(to->scale) || ch.scale > to->scale ? ch.scale : to->scale;
            least->scale = fmin(least->scale, ch.scale);
            most->scale = fmax(most->scale, ch.scale);
        }
        to->db = ch.db < to->db ? ch.db : to->db;
        least->db = ch.db < least->db ? ch.db : least->db;
        most->db = ch.db > most->db ? ch.db : most->db;
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

void ev_page_draw_weights(const ev_page *p, const oct_item *weights)
{
    column c[COLUMNS], least, most;
    const size_t n_channel = oct_item_count(weights, "channels.scale");
    if (n_channel < 2)
        return;
    const size_t n = gather(weights, n_channel, c, &least, &most);
    oct_buf_printf(
        p->b,
        "<figure class=\"draw\"><svg viewBox=\"0 0 %zu %d\" height=\"%d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Weights of %zu channels\">",
        n, HEIGHT, HEIGHT, n_channel);
    put_columns(p, c, n, most.scale);
    oct_buf_printf(
        p->b,
        "<path class=\"base\" d=\"M0 %dh%zu\"/></svg><div class=\"axis\"><span>channel 0</span><span>%zu</span></div><figcaption>Weights by output channel. ",
        HEIGHT, n, n_channel - 1);
    if (most.scale > 0)
        oct_buf_printf(p->b, "Bars: scale by logarithm, %.3g to %.3g. ", least.scale, most.scale);
    oct_buf_puts(p->b, "Line: SQNR, 0 to 60 dB, ");
    ev_page_db(p, least.db);
    if (least.db < most.db) {
        oct_buf_puts(p->b, " to ");
        ev_page_db(p, most.db);
    }
    oct_buf_puts(p->b, "</figcaption></figure>");
}

void ev_form_weights_drawing(const ev_page *p, const oct_item *x, const char *words)
{
    ev_page_draw_weights(p, x);
}
