/* lib/eval/metrics/class_sums.h -- precision, recall and similar metrics from the counts of each class. Private to
 * lib/eval. */
#ifndef OCT_EVAL_CLASS_SUMS_H
#define OCT_EVAL_CLASS_SUMS_H

#include "base/status.h"

/* Counts for each of n classes: true positives, false positives and false negatives. */
typedef struct oct_class_sums {
    double *hit, *extra, *missed; /* [n] each */
    size_t n;
} oct_class_sums;

enum { OCT_SUMS_OF_CLASS = 3 }; /* how many doubles a class needs */
/* Places the counts in scratch, f64[3 n], and zeroes them. */
oct_class_sums oct_class_sums_in(double *scratch, size_t n);

typedef enum oct_share { OCT_SHARE_PRECISION, OCT_SHARE_RECALL, OCT_SHARE_F1, OCT_SHARE_IOU } oct_share;

/* Metrics of one class. A division by 0 gives 0 (NaN for the IoU). */
double oct_share_of(oct_share what, double hit, double extra, double missed);
/* The mean over the classes that occur in the truth or in the predictions, as in scikit-learn. NaN: there are none. */
double oct_share_mean(oct_share what, const oct_class_sums *s);

#endif
