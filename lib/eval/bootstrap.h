/* lib/eval/bootstrap.h -- what bootstraps share: draws by a counter, and the bounds that BCa takes from what resamples give. Private to lib/eval. */
#ifndef OCT_EVAL_BOOTSTRAP_H
#define OCT_EVAL_BOOTSTRAP_H

#include "base/status.h"

enum { OCT_BCA_LEAST = 10 }; /* samples below which resamples say too little */

/* 64 random bits for each counter: the same on every machine. */
uint64_t oct_draw_bits(uint64_t counter);

/* The point of the normal distribution that stands for the 97.5 % one of Student's, and for the deviation of n that is divided by n - 1
 * (Hesterberg, American Statistician 69, 2015). n >= 2. */
double oct_bootstrap_point(uint64_t n);

/* A sixth of the skewness of what single samples (or equal groups of them) add to a statistic, of the sums of squared and cubed deviations. */
double oct_bootstrap_acceleration(double m2, double m3);

/* The bounds of BCa (Efron, JASA 82, 1987): v[count] are the statistics of resamples of n samples, and are sorted; estimate: of the samples
 * themselves. */
void oct_bca_bounds(double *v, size_t count, double estimate, double acceleration, uint64_t n, double *lo, double *hi);

#endif
