/* lib/kernels/cost.h -- chooses among kernel records by their expected time on a CPU of this class (costs.inc). Results
 * do not depend on the choice. Internal.
 *
 * A record computes tiles of rows by columns in steps over the depth. Its time is a sum of terms, each a count that
 * follows from the shape times measured picoseconds: 1; whole tiles; those with fewer columns; rows of tiles; steps of
 * tiles; steps of rows. In the last three, a tile with fewer columns counts as a fraction, by the units that it needs.
 */
#ifndef OCT_KERNELS_COST_H
#define OCT_KERNELS_COST_H

#include <stdbool.h>
#include <stddef.h>

/* A product, as far as costs depend on it. */
typedef struct oct_extent {
    size_t rows, n, depth; /* rows 0: unknown */
    double more;           /* picoseconds of the work of a record besides the product, set by the caller */
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

/* Offers a record that may run. The cheapest one is kept; if the table knows none of them, the last one. */
void oct_choice_offer(oct_choice *p, const void *record, const char *name, const oct_extent *e, oct_cost_tile t);

/* Whether b is preferred to a, which may have no record: because it was demanded (below), or is cheaper by the table.
 */
bool oct_choice_is_better(const oct_choice *b, const oct_choice *a);

/* Picoseconds of other work that has a line in the table, but does not choose a record; 0: there is no line. */
double oct_cost_of(const char *name, const oct_extent *e, oct_cost_tile t);

/* For measurements: the record of that name is chosen wherever it can run, and its counts are written to `terms` when
 * it is offered. name NULL: by cost again. terms may be NULL. Not while plans are made on other threads. */
void oct_choice_want(const char *name, double terms[OCT_COST_TERMS]);

/* For tests: uses the costs of a CPU of that class; NULL: of this CPU. Not while plans are made on other threads. */
void oct_cost_assume(const char *class);

/* Of which machine the costs of a class are, and when it was measured (a year and a month at least). */
typedef struct oct_cost_origin {
    const char *class, *machine, *date;
} oct_cost_origin;

/* What this CPU's costs come from: its own class, else the nearest of its family that was measured; NULL: none was. */
const oct_cost_origin *oct_cost_measured(void);

/* The class of this CPU, regardless of restrictions: its highest level, followed by "-zen4" on Zen 4 and "-amd" on
 * other CPUs of AMD. */
const char *oct_cost_class(void);

#endif
