/* Reports how long a run is expected to take by the target's tables of costs: in all, and for the layers that change
 * most. The time on this machine is measured at the end, and is part of the summary. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 8 };
#define LEAST_TIME 500.0 /* us: shorter runs are not reported */
#define LEAST_SHARE 0.01 /* share of a run's time */
#define SLOWER 1.05      /* a factor; tables are not more exact */

static double change(const oct_item *layer)
{
    return fabs(oct_item_number(layer, "expected_float_us") - oct_item_number(layer, "expected_us"));
}

static int by_change(const void *a, const void *b)
{
    const oct_item *x = *(const oct_item *const *)a, *y = *(const oct_item *const *)b;
    const double p = change(x), q = change(y);
    return p != q ? (p > q ? -1 : 1) : x < y ? -1 : x > y;
}

/* least: the table by which the model gains least. */
static oct_status print_changes(const oct_item *report, const oct_item *least, bool every, FILE *f, oct_err *err)
{
    const oct_item *layers = oct_item_at(report, "layers");
    const double whole = oct_item_number(least, "float_us");
    const oct_item **order = oct_calloc(oct_item_count(layers, "") + 1, sizeof *order);
    if (!order)
        return oct_nomem(err);
    size_t n = 0;
    for (const oct_item *l = NULL; (l = oct_item_next(layers, l));)
        if (!oct_item_true(l, "in_body") && change(l) >= LEAST_SHARE * whole)
            order[n++] = l;
    qsort(order, n, sizeof *order, by_change);
    oct_table *t = oct_table_of("llrr", (const char *[]){ "layer", "scheme", "in float", "as decided" });
    for (size_t i = 0; i < n && (every || i < SHOWN); i++) {
        char before[32], after[32];
        snprintf(before, sizeof before, "%.1f %%", 100 * oct_item_number(order[i], "expected_float_us") / whole);
        snprintf(after, sizeof after, "%.1f %%", 100 * oct_item_number(order[i], "expected_us") / whole);
        oct_table_texts(t, (const char *[]){ oct_item_text(order[i], "name"), oct_item_text(order[i], "scheme"), before,
                                             after });
    }
    if (n)
        oct_print(f, "\nEstimated to change most, in shares of a run in float by %s:\n", oct_item_text(least, "costs"));
    const oct_status st = n ? oct_table_print(t, f, err) : OCT_OK;
    oct_table_destroy(t);
    oct_free(order);
    return st;
}

oct_status times_report_print(const oct_item *report, bool every, FILE *f, oct_err *err)
{
    const oct_item *expected = oct_item_at(report, "expected"), *layers = oct_item_at(report, "layers"), *least = NULL;
    char before[32], after[32];
    bool any = false, slower = false, bodies = false, blocks = false;
    for (const oct_item *x = NULL; (x = oct_item_next(expected, x));) {
        const double on_floats = oct_item_number(x, "float_us"), decided = oct_item_number(x, "us");
        least = oct_item_true(x, "least_gain") ? x : least;
        if (!(on_floats >= LEAST_TIME))
            continue;
        fputs(
            any ? ""
                : "\nEstimated, not measured here: by the target's tables of costs, which come from other machines, on one thread a run takes\n",
            f);
        oct_print(f, "  by %s %s in float, %s as decided\n", oct_item_text(x, "costs"),
                  oct_fmt_seconds(before, on_floats / 1e6), oct_fmt_seconds(after, decided / 1e6));
        any = true;
        slower |= decided > SLOWER * on_floats;
    }
    if (!any)
        return OCT_OK;
    for (const oct_item *l = NULL; (l = oct_item_next(layers, l));) {
        bodies |= oct_item_true(l, "in_body");
        blocks |= oct_item_at(l, "weight_count") && oct_item_at(l, "block") &&
                  oct_item_number(l, "expected_us") > oct_item_number(l, "expected_float_us");
    }
    if (bodies)
        fputs(
            "  without the layers in If, Loop and Scan, whose runs are not known: costs choose of each body by itself\n",
            f);
    if (slower && blocks)
        fputs(
            "  slower than float, as the target makes reals of weights in blocks in each run: --accuracy-level 4 lets it compute by them,\n"
            "  and --scheme stored takes a byte a weight and the time of float\n",
            f);
    return print_changes(report, least, every, f, err);
}

void times_report_provider(const oct_item *report, FILE *f)
{
    const oct_item *x = oct_item_at(report, "in_onnxruntime");
    if (x)
        oct_print(
            f,
            "Estimated for CPUs with AVX-512 VNNI, one thread: %.2f of the float model's time in ONNX Runtime, %.2f with Octet's provider (docs/provider.md)\n",
            oct_item_number(x, "own"), oct_item_number(x, "with_provider"));
}
