/* lib/quant/methods/by_metric.h -- what the current decisions are worth by a metric, on the samples that check choices
 * (the second half of those that calibrate). */
#ifndef OCT_QUANT_BY_METRIC_H
#define OCT_QUANT_BY_METRIC_H

#include "quant/convert/convert.h"

/* Whether the metric of the conversion decides between choices: labels or a truth say what is right, a rule what
 * outputs mean, or a metric was asked for. False for the metric of a command, which has no interval, and of pairs,
 * which are not divided; and with labels alone if there are fewer samples than can tell choices apart. */
bool oct_metric_decides(const oct_conversion *c);

/* Compares the quantized graph as it is decided with the float model, by the metric of the conversion. score->metric
 * NULL: none is defined, or has an interval. */
oct_status oct_metric_measure(oct_conversion *c, oct_eval_score *score, oct_err *err);
/* Of two such scores: 1 if the second one is better, -1 if it is worse, and 0 if the samples do not tell. */
int oct_metric_compare(const oct_eval_score *before, const oct_eval_score *after);

/* Whether the class or answer differs from the float model's on more samples than close decisions explain. False if
 * there are no classes, or too few samples within the time of a trial. */
oct_status oct_metric_disagrees(oct_conversion *c, bool *disagrees, oct_err *err);

#endif
