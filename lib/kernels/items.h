/* lib/kernels/items.h -- cuts a product into work items for threads, by a cost model. Results do not depend on the cut.
 * Internal. */
#ifndef OCT_KERNELS_ITEMS_H
#define OCT_KERNELS_ITEMS_H

#include <stddef.h>

/* `groups` matrix products of `rows` rows by `panels` panels of columns, all above 0. The unit of costs is the product
 * of one row and one panel. */
typedef struct oct_work {
    size_t rows, panels, groups;
    size_t most, unit; /* rows of an item: at most `most`, in multiples of `unit`; most is a multiple of unit */
    double row; /* cost of preparing a row (pointers, a copy, a transform), once for all items of a thread with the same
                   rows */
    double panel; /* cost of loading a panel of weights, once per item */
} oct_work;

/* Items of one size; the last of the rows, and of the panels, may be smaller. */
typedef struct oct_items {
    size_t rows, row_items, panels, col_items;
    size_t n;                    /* in all: groups * row_items * col_items */
    size_t all_rows, all_panels; /* of the product */
} oct_items;

oct_items oct_items_cut(const oct_work *w, size_t threads);
/* The expected time of the threads, in units of cost. */
double oct_items_cost(const oct_work *w, const oct_items *i, size_t threads);

/* Item i. Items with the same rows are neighbours. */
typedef struct oct_item {
    size_t block; /* index of the block of rows, over all groups */
    size_t group, row, rows, panel, panels;
} oct_item;

static inline oct_item oct_item_at(const oct_items *d, size_t i)
{
    const size_t block = i / d->col_items, row = block % d->row_items * d->rows, panel = i % d->col_items * d->panels;
    const size_t rows = d->all_rows - row, panels = d->all_panels - panel;
    return (oct_item){ .block = block,
                       .group = block / d->row_items,
                       .row = row,
                       .rows = rows < d->rows ? rows : d->rows,
                       .panel = panel,
                       .panels = panels < d->panels ? panels : d->panels };
}

#endif
