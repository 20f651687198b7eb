/* lib/eval/class_sums.h -- precision, recall and the like from counts of each class. Private to lib/eval. */
#ifndef OCT_EVAL_CLASS_SUMS_H
#define OCT_EVAL_CLASS_SUMS_H

#include "base/status.h"

/* Of each of n classes: how often it was rightly found, found where it is not, and not found where it is. */
typedef struct oct_class_sums {
    double *hit, *extra, *missed; /* [n] each */
    size_t n;
} oct_class_sums;

enum { OCT_SUMS_OF_CLASS = 3 }; /* doubles that a class takes */
/* In scratch, zeroed: f64[3 n]. */
oct_class_sums oct_class_sums_in(double *scratch, size_t n);

typedef enum oct_share { OCT_SHARE_PRECISION, OCT_SHARE_RECALL, OCT_SHARE_F1, OCT_SHARE_IOU } oct_share;

/* Of one class; what would be divided by 0 is 0 (NaN for the IoU). */
double oct_share_of(oct_share what, double hit, double extra, double missed);
/* The mean over the classes that are there or were found, as scikit-learn has it. NaN: there are none. */
double oct_share_mean(oct_share what, const oct_class_sums *s);

#endif
