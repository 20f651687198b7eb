/* lib/eval/classes.h -- a class for each sample: what was right and what was taken for what. */
#ifndef OCT_EVAL_CLASSES_H
#define OCT_EVAL_CLASSES_H

#include "base/mem.h"
#include "eval/sample_set.h"

extern const oct_set_type oct_set_of_classes;

/* The class of scores v[n]: the largest, of equal ones the first, NaN last; of one score alone 1 above the threshold, else 0. */
size_t oct_class_of(const float *v, size_t n, double threshold);

/* Means over the classes that are there or were found; of two classes, class 1's, unless the rule says macro. */
double oct_classes_precision(const oct_set *s, const double *draws, double *scratch);
double oct_classes_recall(const oct_set *s, const double *draws, double *scratch);
double oct_classes_f1(const oct_set *s, const double *draws, double *scratch);

/* A class that is there or was found. */
typedef struct oct_class_row {
    int64_t class_number;
    uint64_t samples; /* that are of it */
    double precision, recall, f1;
} oct_class_row;
/* Samples of one class that were taken for one class. */
typedef struct oct_confused {
    int64_t label, taken_for;
    uint64_t samples;
} oct_confused;
typedef struct oct_class_table {
    oct_class_row *row; /* by class */
    size_t n_rows;
    oct_confused *cell; /* by label, then class taken for; those of no sample are left out */
    size_t n_cells;
} oct_class_table;
/* In arena. */
oct_status oct_classes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);

#endif
