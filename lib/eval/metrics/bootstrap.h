/* lib/eval/metrics/bootstrap.h -- shared by bootstraps: random numbers from a counter, and the bounds of BCa from the
 * statistics of resamples. Private to lib/eval. */
#ifndef OCT_EVAL_BOOTSTRAP_H
#define OCT_EVAL_BOOTSTRAP_H

#include "base/status.h"

enum { OCT_BCA_LEAST = 10 }; /* with fewer samples, a bootstrap says too little */

/* 64 random bits for each counter: the same on every machine. */
uint64_t oct_draw_bits(uint64_t counter);

/* The quantile of the normal distribution that replaces the 97.5 % quantile of Student's t, corrected for the standard
 * deviation of n samples, which divides by n - 1 (Hesterberg, American Statistician 69, 2015). n >= 2. */
double oct_bootstrap_point(uint64_t n);

/* The acceleration of BCa: a sixth of the skewness of the contributions of single samples (or of equal groups) to a
 * statistic, from the sums of their squared and cubed deviations. */
double oct_bootstrap_acceleration(double m2, double m3);

/* The bounds of BCa (Efron, JASA 82, 1987). v[count]: the statistics of resamples of n samples; they are sorted.
 * estimate: the statistic of the samples themselves. */
void oct_bca_bounds(double *v, size_t count, double estimate, double acceleration, uint64_t n, double *lo, double *hi);

#endif
