/* lib/quant/least_cut.h -- the least cut of a network with capacities, on arrays alone: which of two choices each of many things takes, where each choice has
 * a price and so has each pair that differs (Dinic's algorithm).
 *
 *   oct_cut *c;
 *   OCT_TRY(oct_cut_create(arena, n, &c, err));          // things 0 .. n-1
 *   OCT_TRY(oct_cut_pay(c, i, here, there, err));        // what i costs on the first side, and on the second
 *   OCT_TRY(oct_cut_split(c, i, k, price, err));         // where i is on the first side and k on the second
 *   oct_cut_solve(c, first);                             // bool[n]: on the first side
 *
 * Prices are 0 or more; INFINITY forbids. The result depends on the order of calls alone: the same bits everywhere. */
#ifndef OCT_QUANT_LEAST_CUT_H
#define OCT_QUANT_LEAST_CUT_H

#include "base/mem.h"

typedef struct oct_cut oct_cut;

oct_status oct_cut_create(oct_arena *a, size_t n, oct_cut **cut, oct_err *err);
oct_status oct_cut_pay(oct_cut *c, int thing, double first, double second, oct_err *err);
oct_status oct_cut_split(oct_cut *c, int first, int second, double price, oct_err *err);
/* Of all cheapest cuts the one with the fewest things on the first side. O(n^2 m) at worst, near linear where few things hang together. */
void oct_cut_solve(oct_cut *c, bool *first);

#endif
