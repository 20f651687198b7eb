/* lib/kernels/cost.h -- chooses among kernel records by what they are expected to take on a CPU of this class
 * (costs.inc). Results do not depend on the choice. Internal.
 *
 * A record computes tiles of rows by columns in steps of some values of the depth. What it takes is the sum of terms,
 * each a number that follows from the shape times picoseconds that were measured: 1; whole tiles; those with fewer
 * columns; rows of tiles; steps of tiles; steps of rows. In the last three a tile with fewer columns counts as a part,
 * of as many units as it needs. */
#ifndef OCT_KERNELS_COST_H
#define OCT_KERNELS_COST_H

#include <stdbool.h>
#include <stddef.h>

/* A product, as far as costs depend on it. */
typedef struct oct_extent {
    size_t rows, n, depth; /* rows 0: unknown */
    double more;           /* picoseconds of what a record does beside the product; known to its caller */
} oct_extent;

/* A tile, as far as costs depend on it: rows, columns of it and of a unit, values of the depth a step. */
typedef struct oct_cost_tile {
    size_t mr, nr, unit, kr;
} oct_cost_tile;

enum { OCT_COST_TERMS = 6 };

/* The best of the records offered so far; begins as zeros. */
typedef struct oct_choice {
    const void *record;
    const char *name; /* of the record */
    double cost;      /* picoseconds; 0: the table does not know the record */
    bool wanted;
} oct_choice;

/* Offers a record that may run. The cheapest stays; of those that the table does not know the last, where it knows
 * none. */
void oct_choice_offer(oct_choice *p, const void *record, const char *name, const oct_extent *e, oct_cost_tile t);

/* Whether b goes before a, which may have no record: it is the one that is wanted (below), or the table says that it is
 * cheaper. */
bool oct_choice_is_better(const oct_choice *b, const oct_choice *a);

/* Picoseconds of work that no record is chosen by, by its line of the table; 0: there is none. */
double oct_cost_of(const char *name, const oct_extent *e, oct_cost_tile t);

/* For measuring: the record of that name is chosen wherever it may run, and its numbers go to `terms` when it is
 * offered. name NULL: by cost again. terms may be NULL. Not while plans are made on other threads. */
void oct_choice_want(const char *name, double terms[OCT_COST_TERMS]);

/* For tests: costs are those of a CPU of that class; NULL: of this one. Not while plans are made on other threads. */
void oct_cost_assume(const char *class);

/* The class of this CPU, whatever it is narrowed to: its highest level, with "-amd" behind it on AMD's. */
const char *oct_cost_class(void);

#endif
