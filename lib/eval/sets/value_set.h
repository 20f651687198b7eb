/* lib/eval/sets/value_set.h -- squared differences from the float model's numbers, relative to their range. */
#ifndef OCT_EVAL_VALUE_SET_H
#define OCT_EVAL_VALUE_SET_H

#include "eval/sets/sample_set.h"

extern const oct_set_type oct_set_of_values;

/* 10 log10(peak^2 / mean squared difference), for the output that the rule names, or the first one. The peak is that of
 * the rule, or the range of the float model's values over all samples. INFINITY: the values are equal. */
double oct_values_psnr(const oct_set *s, const double *draws, double *scratch);
/* The mean squared difference as a share of peak^2. */
double oct_values_share(const oct_set *s, const double *draws, double *scratch);

#endif
