/* lib/eval/metrics/correlation.h -- correlations of pairs of numbers, each of which counts as often as it is drawn.
 * Private to lib/eval. */
#ifndef OCT_EVAL_CORRELATION_H
#define OCT_EVAL_CORRELATION_H

#include "base/status.h"

/* Pearson's r of x[n] and y[n], where each pair counts w[i] times (w NULL: once). NaN: x or y does not vary. */
double oct_pearson(const double *x, const double *y, const double *w, size_t n);
/* The ranks of v[n], into rank[n], where v[i] occurs w[i] times. Equal values get the mean of their ranks. order[n]:
 * indices in ascending order of values. */
void oct_ranks(const double *v, const uint32_t *order, const double *w, size_t n, double *rank);
/* Fills order[n] with the indices of v[n] in ascending order of values; equal values in ascending order of index.
 * OCT_ENOMEM. */
oct_status oct_order_of(const double *v, size_t n, uint32_t *order, oct_err *err);

#endif
