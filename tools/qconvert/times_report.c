/* Reports which layers are expected to change most by the target's tables of costs. The whole is part of the answer. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_TIME 500.0 /* us: shorter runs are not reported */
#define LEAST_SHARE 0.01 /* share of a run's time */

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
static oct_status print_changes(const oct_item *report, const oct_item *least, FILE *f, oct_err *err)
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
    for (size_t i = 0; i < n; i++) {
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

oct_status times_report_print(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *expected = oct_item_at(report, "expected"), *least = NULL;
    bool any = false;
    for (const oct_item *x = NULL; (x = oct_item_next(expected, x));) {
        least = oct_item_true(x, "least_gain") ? x : least;
        any |= oct_item_number(x, "float_us") >= LEAST_TIME;
    }
    return any ? print_changes(report, least, f, err) : OCT_OK;
}
