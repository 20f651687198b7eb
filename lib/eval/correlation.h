/* lib/eval/correlation.h -- correlations of pairs of numbers that count as often as they are drawn. Private to lib/eval. */
#ifndef OCT_EVAL_CORRELATION_H
#define OCT_EVAL_CORRELATION_H

#include "base/status.h"

/* Pearson's r of x[n] and y[n], each pair counted w[i] times (w NULL: once). NaN where one of them does not vary. */
double oct_pearson(const double *x, const double *y, const double *w, size_t n);
/* Ranks of v[n] into rank[n], where v[i] stands there w[i] times; equal values have the mean of their ranks. order[n]: indices by ascending value. */
void oct_ranks(const double *v, const uint32_t *order, const double *w, size_t n, double *rank);
/* Fills order[n] for v[n], by ascending value, of equal ones by index. OCT_ENOMEM. */
oct_status oct_order_of(const double *v, size_t n, uint32_t *order, oct_err *err);

#endif
