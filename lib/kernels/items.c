/* lib/kernels/items.c -- the cost model of work items.
 *
 * A thread takes items that follow each other (base/pool.h), ceil(items / threads) of one size. Smaller items leave
 * fewer threads without work in the last round, and less to wait for at the end; but rows may have to be made ready on
 * several threads, and panels are fetched more often. */
#include "kernels/items.h"

static size_t up(size_t v, size_t by)
{
    return (v + by - 1) / by;
}

/* Different rows that a thread sees in `rounds` items. */
static size_t blocks(size_t rounds, size_t col_items)
{
    if (rounds % col_items == 0)
        return rounds / col_items;
    return col_items % rounds == 0 ? 1 : (rounds - 2) / col_items + 2;
}

double oct_items_cost(const oct_work *w, const oct_items *i, size_t threads)
{
    const double tail = threads > 1 ? 0.25 : 0; /* of an item: the wait for the last thread */
    const size_t rounds = up(i->n, threads);
    const double rows = (double)i->rows, item = (double)i->panels * (rows + w->panel);
    return (double)blocks(rounds, i->col_items) * rows * w->row + ((double)rounds + tail) * item;
}

/* About that many of each; rows in whole units. */
static oct_items cut(const oct_work *w, size_t row_items, size_t col_items)
{
    oct_items i = { .rows = up(up(w->rows, row_items), w->unit) * w->unit,
                    .panels = up(w->panels, col_items),
                    .all_rows = w->rows,
                    .all_panels = w->panels };
    i.row_items = up(w->rows, i.rows);
    i.col_items = up(w->panels, i.panels);
    i.n = w->groups * i.row_items * i.col_items;
    return i;
}

oct_items oct_items_cut(const oct_work *w, size_t threads)
{
    enum { ROUNDS = 8 }; /* more items a thread than that gain nothing */
    const size_t fewest = up(w->rows, w->most), most = up(w->rows, w->unit);
    oct_items best = cut(w, fewest, 1);
    if (threads < 2)
        return best;
    double least = oct_items_cost(w, &best, threads);
    for (size_t c = 1; c <= w->panels && (c == 1 || (c - 1) * fewest * w->groups < ROUNDS * threads); c += up(c, 4)) {
        const size_t first = up(fewest * c * w->groups, threads);
        for (size_t round = first, before = 0; round < first + ROUNDS; round++) {
            const size_t wanted = round * threads / (c * w->groups), r = wanted < fewest ? fewest
                                                                         : wanted > most ? most
                                                                                         : wanted;
            if (r == before)
                continue;
            before = r;
            const oct_items i = cut(w, r, c);
            const double cost = oct_items_cost(w, &i, threads);
            if (cost < least) {
                least = cost;
                best = i;
            }
        }
    }
    return best;
}
