/* tests/check/check_items.c -- work items: each row and panel in exactly one, and the cost model; what it expects of
 * many threads. */
#include "check.h"
#include "kernels/items.h"

#include <string.h>

/* The definition of items.c by walking the rounds of every thread: each takes items that follow each other. */
static double walked_cost(const oct_work *w, const oct_items *d, size_t threads)
{
    const size_t rounds = (d->n + threads - 1) / threads;
    double most = 0;
    for (size_t t = 0; t < threads && t * rounds < d->n; t++) {
        double cost = 0;
        for (size_t i = t * rounds, before = SIZE_MAX; i < (t + 1) * rounds && i < d->n; i++) {
            const size_t block = oct_item_at(d, i).block;
            cost += (double)d->panels * ((double)d->rows + w->panel) + (block == before ? 0 : (double)d->rows * w->row);
            before = block;
        }
        most = cost > most ? cost : most;
    }
    return most + (threads > 1 ? 0.25 * (double)d->panels * ((double)d->rows + w->panel) : 0);
}

static void check_cover(oct_check *t, const oct_work *w, const oct_items *d, size_t threads)
{
    uint8_t *seen = oct_check_buffer(t, w->groups * w->rows * w->panels),
            *once = oct_check_buffer(t, w->groups * w->rows * w->panels);
    memset(seen, 0, w->groups * w->rows * w->panels);
    memset(once, 1, w->groups * w->rows * w->panels);
    size_t wrong = 0;
    for (size_t i = 0; i < d->n; i++) {
        const oct_item e = oct_item_at(d, i);
        wrong += e.rows > w->most || e.rows == 0 || e.panels == 0 || e.row % w->unit != 0;
        for (size_t r = e.row; r < e.row + e.rows; r++)
            for (size_t p = e.panel; p < e.panel + e.panels; p++)
                seen[(e.group * w->rows + r) * w->panels + p]++;
    }
    oct_check_wrong(t, wrong, "%zu of %zu items are empty or too large", wrong, d->n);
    oct_check_same(t, once, seen, w->groups * w->rows * w->panels, 1, "rows %zu panels %zu groups %zu threads %zu",
                   w->rows, w->panels, w->groups, threads);
}

void check_items(oct_check *t)
{
    static const size_t threads[] = { 1, 2, 3, 8, 64 };
    for (int i = 0; i < 400; i++) {
        const size_t unit = 1 + oct_check_below(t, 6);
        const oct_work w = { .rows = 1 + oct_check_below(t, i % 2 ? 60 : 2000),
                             .panels = 1 + oct_check_below(t, 40),
                             .groups = 1 + (i % 5 == 0) * oct_check_below(t, 9),
                             .unit = unit,
                             .most = unit * (1 + oct_check_below(t, 16)),
                             .row = 0.7,
                             .panel = 3 };
        const oct_items one = oct_items_cut(&w, 1);
        oct_check_wrong(t, one.col_items != 1 || one.row_items != (w.rows + w.most - 1) / w.most,
                        "one thread: %zu by %zu items", one.row_items, one.col_items);
        for (size_t k = 0; k < OCT_COUNT(threads); k++) {
            const oct_items d = oct_items_cut(&w, threads[k]);
            const double cost = oct_items_cost(&w, &d, threads[k]), walked = walked_cost(&w, &d, threads[k]);
            check_cover(t, &w, &d, threads[k]);
            /* a last item is no larger than others, and what straddles two blocks of rows is counted for every
             * thread */
            oct_check_wrong(t, cost < walked - 1e-6 * walked || cost > walked + (double)d.rows * w.row + 1e-6 * walked,
                            "cost %g, walked %g", cost, walked);
            oct_check_wrong(t, cost > oct_items_cost(&w, &one, threads[k]),
                            "%zu threads: one thread's items would be better", threads[k]);
            oct_check_release(t);
        }
    }
}
