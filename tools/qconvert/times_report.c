/* Reports how long a run is expected to take by the target's tables of costs: in all, and for the layers that change
 * most. The time on this machine is measured at the end, and is part of the summary. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 8 };
#define LEAST_TIME 500e3 /* ns: shorter runs are not reported */
#define LEAST_SHARE 0.01 /* share of a run's time */
#define SLOWER 1.05      /* a factor; tables are not more exact */

static double change(const oct_layer *l)
{
    return fabs(l->d.on_floats - l->d.expected);
}

static int by_change(const void *a, const void *b)
{
    const oct_layer *x = *(const oct_layer *const *)a, *y = *(const oct_layer *const *)b;
    const double p = change(x), q = change(y);
    return p != q ? (p > q ? -1 : 1) : x < y ? -1 : x > y;
}

static oct_status print_changes(const session *s, const oct_target_times *x, FILE *f, oct_err *err)
{
    const double whole = x->on_floats[x->least];
    const oct_layer **order = oct_calloc(s->c.n_layers + 1, sizeof *order);
    if (!order)
        return oct_nomem(err);
    size_t n = 0;
    for (size_t i = 0; i < s->c.n_layers; i++)
        if (!*s->c.layers[i].d.where && change(&s->c.layers[i]) >= LEAST_SHARE * whole)
            order[n++] = &s->c.layers[i];
    qsort(order, n, sizeof *order, by_change);
    oct_table *t = oct_table_of("llrr", (const char *[]){ "layer", "scheme", "in float", "as decided" });
    for (size_t i = 0; i < n && (s->cli->verbose || i < SHOWN); i++) {
        char before[32], after[32];
        snprintf(before, sizeof before, "%.1f %%", 100 * order[i]->d.on_floats / whole);
        snprintf(after, sizeof after, "%.1f %%", 100 * order[i]->d.expected / whole);
        const char *cells[] = { order[i]->name, oct_scheme_name(order[i]->d.scheme), before, after };
        oct_table_texts(t, cells);
    }
    if (n)
        oct_print(f, "\nEstimated to change most, in shares of a run in float by %s:\n",
                  oct_target_costs_name(s->target, x->least));
    const oct_status st = n ? oct_table_print(t, f, err) : OCT_OK;
    oct_table_destroy(t);
    oct_free(order);
    return st;
}

static bool has_bodies(const session *s)
{
    for (size_t i = 0; i < s->c.n_layers; i++)
        if (*s->c.layers[i].d.where)
            return true;
    return false;
}

static bool has_blocks(const session *s)
{
    for (size_t i = 0; i < s->c.n_layers; i++)
        if (s->c.layers[i].product && s->c.layers[i].d.block && s->c.layers[i].d.expected > s->c.layers[i].d.on_floats)
            return true;
    return false;
}

oct_status times_report_print(const session *s, FILE *f, oct_err *err)
{
    const oct_target_times x = oct_qjob_expected(s->c.job);
    char before[32], after[32];
    bool any = false, slower = false;
    for (size_t i = 0; i < x.n; i++)
        if (x.on_floats[i] >= LEAST_TIME) {
            fputs(
                any ? ""
                    : "\nEstimated, not measured here: by the target's tables of costs, which come from other machines, on one thread a run takes\n",
                f);
            oct_print(f, "  by %s %s in float, %s as decided\n", oct_target_costs_name(s->target, i),
                      oct_fmt_seconds(before, x.on_floats[i] / 1e9), oct_fmt_seconds(after, x.decided[i] / 1e9));
            any = true;
            slower |= x.decided[i] > SLOWER * x.on_floats[i];
        }
    if (!any)
        return OCT_OK;
    if (has_bodies(s))
        fputs(
            "  without the layers in If, Loop and Scan, whose runs are not known: costs choose of each body by itself\n",
            f);
    if (slower && has_blocks(s))
        fputs(
            "  slower than float, as the target makes reals of weights in blocks in each run: --accuracy-level 4 lets it compute by them,\n"
            "  and --scheme stored takes a byte a weight and the time of float\n",
            f);
    return print_changes(s, &x, f, err);
}
