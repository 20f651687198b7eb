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
    uint64_t samples; /* that are of it: samples, objects, or pixels */
    double precision, recall, f1;
    double own;       /* that of the table's own metric */
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
    const char *counts; /* what `samples` counts; NULL: samples */
    const char *own;    /* the name of the metric that classes of this task have beside the others, all in percent; NULL: none */
} oct_class_table;
/* Adds a class of which so much was right, found where it is not, and not found; nothing where all are 0. */
void oct_class_row_add(oct_class_table *t, int64_t class_number, double hit, double extra, double missed, double own);
/* In arena. */
oct_status oct_classes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);

#endif
