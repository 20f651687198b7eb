/* lib/eval/metrics/error_sum.h -- exact sums of errors of many samples. The result does not depend on their order, or
 * on how they were divided among runs. */
#ifndef OCT_EVAL_ERROR_SUM_H
#define OCT_EVAL_ERROR_SUM_H

#include "eval/metrics/metric.h"
#include "observers/xsum.h"

/* All zero is the empty sum. */
typedef struct oct_error_sum {
    oct_xsum signal, noise, other, dot;
    double max_abs;
    uint64_t n, broken;
} oct_error_sum;

void oct_error_sum_add(oct_error_sum *s, const oct_error *e);
void oct_error_sum_merge(oct_error_sum *s, const oct_error_sum *o);
/* The sums, each rounded once. */
oct_error oct_error_sum_value(const oct_error_sum *s);

#endif
