/* Prints the choice for a size, and the curve of size against loss. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>

enum { LINES = 20, BAR = 30 };

/* A bar for the remaining loss: its length is proportional to dB between the best and the worst. */
static const char *bar(char dst[BAR + 1], double sqnr, double least, double most)
{
    const double share = most > least && isfinite(sqnr) ? (sqnr - least) / (most - least) : 1;
    const int n = (int)(share * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        dst[i] = i < n ? '#' : ' ';
    dst[n < 0 ? 0 : n > BAR ? BAR : n] = '\0';
    return dst;
}

static void put_point(oct_table *t, const oct_item *p, double before, double least, double most)
{
    char bytes[32], share[32], db[32], chart[BAR + 1];
    const char *layer = oct_item_text(p, "layer");
    const double sqnr = oct_item_number(p, "sqnr_db");
    snprintf(share, sizeof share, "%.1f %%", 100 * oct_item_number(p, "bytes") / before);
    const char *cells[] = { oct_item_true(p, "taken") ? "*" : "",
                            oct_fmt_bytes(bytes, (uint64_t)oct_item_whole(p, "bytes")),
                            share,
                            oct_fmt_db(db, sqnr),
                            bar(chart, sqnr, least, most),
                            layer ? layer : "all in the fewest bytes",
                            oct_item_text(p, "form") };
    oct_table_texts(t, cells);
}

/* Prints the choice layer by layer beside one form for all layers. */
static oct_status print_rivals(const oct_item *size, FILE *f, oct_err *err)
{
    const oct_item *rivals = oct_item_at(size, "compared");
    const size_t samples = (size_t)oct_item_whole(size, "samples");
    int64_t i = 0;
    if (!oct_item_count(rivals, ""))
        return OCT_OK;
    oct_table *t =
        oct_table_of("llrr", (const char *[]){ "", "form", "size", samples ? "output SQNR" : "expected SQNR" });
    for (const oct_item *r = NULL; (r = oct_item_next(rivals, r)); i++) {
        char bytes[32], db[32];
        const char *form = oct_item_text(r, "form");
        const char *cells[] = { i == oct_item_whole(size, "taken") ? "*" : "",
                                form                                ? form
                                : oct_item_true(r, "float_between") ? "the same, float between layers"
                                                                    : "chosen layer by layer",
                                oct_fmt_bytes(bytes, (uint64_t)oct_item_whole(r, "bytes")),
                                oct_fmt_db(db, oct_item_number(r, "sqnr_db")) };
        oct_table_texts(t, cells);
    }
    if (samples)
        oct_print(f, "\nCompared with one form for all layers, by %zu samples that did not choose (* is taken):\n",
                  samples);
    else
        oct_print(f, "\nCompared with one form for all layers, as expected (* is taken):\n");
    const oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (samples && st == OCT_OK)
        oct_print(
            f,
            "  weights are rounded to the nearest values here; methods of rounding follow, for what is taken alone\n");
    return st;
}

oct_status size_report_print(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *size = oct_item_at(report, "size"), *curve = oct_item_at(size, "curve");
    const bool measured = oct_item_true(size, "measured");
    const size_t n = oct_item_count(curve, "");
    if (!n)
        return OCT_OK;
    char limit[32], after[32], db[32];
    const double least = oct_item_number(oct_item_of(curve, 0), "sqnr_db");
    double most = least;
    for (const oct_item *p = NULL; (p = oct_item_next(curve, p));)
        most = isfinite(oct_item_number(p, "sqnr_db")) ? fmax(most, oct_item_number(p, "sqnr_db")) : most;
    oct_table *t =
        oct_table_of("lrrrlll", (const char *[]){ "", "size", "of float", measured ? "output SQNR" : "expected SQNR",
                                                  "", "and then", "becomes" });
    for (const oct_item *p = NULL; (p = oct_item_next(curve, p));)
        put_point(t, p, oct_item_number(report, "size_bytes.before"), least, most);
    oct_print(f, "\nSize against loss, expected%s (* is what the model has; %s are allowed, it takes %s, with %s):\n",
              measured ? " from samples" : " from the rounding of weights and inputs alone",
              oct_fmt_bytes(limit, (uint64_t)oct_item_whole(size, "limit")),
              oct_fmt_bytes(after, (uint64_t)oct_item_whole(report, "size_bytes.after")),
              oct_fmt_db(db, oct_item_number(size, "sqnr_db")));
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return st == OCT_OK ? print_rivals(size, f, err) : st;
}
