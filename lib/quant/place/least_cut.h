/* lib/quant/place/least_cut.h -- minimum cut (Dinic's algorithm): makes one of two choices for each of many things.
 * Each choice has a price, and so has each pair of things whose choices differ; the sum of the prices is minimal.
 *
 *   oct_cut *c;
 *   OCT_TRY(oct_cut_create(arena, n, &c, err));          // things 0 .. n-1
 *   OCT_TRY(oct_cut_pay(c, i, here, there, err));        // the price of i on the first side, and on the second
 *   OCT_TRY(oct_cut_split(c, i, k, price, err));         // the price if i is on the first side and k on the second
 *   oct_cut_solve(c, first);                             // bool[n]: on the first side
 *
 * Prices are 0 or more; INFINITY forbids a choice. The result depends on the calls and their order alone, so it is the
 * same everywhere. */
#ifndef OCT_QUANT_LEAST_CUT_H
#define OCT_QUANT_LEAST_CUT_H

#include "base/mem.h"

typedef struct oct_cut oct_cut;

oct_status oct_cut_create(oct_arena *a, size_t n, oct_cut **cut, oct_err *err);
oct_status oct_cut_pay(oct_cut *c, int thing, double first, double second, oct_err *err);
oct_status oct_cut_split(oct_cut *c, int first, int second, double price, oct_err *err);
/* Solves. Among all cheapest cuts it finds the one with the fewest things on the first side. O(n^2 m) in the worst
 * case; near linear if few things depend on each other. */
void oct_cut_solve(oct_cut *c, bool *first);

#endif
