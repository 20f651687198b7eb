/* lib/eval/sets/classes.h -- metrics of a class for each sample: which predictions were right, and which classes were
 * confused. */
#ifndef OCT_EVAL_CLASSES_H
#define OCT_EVAL_CLASSES_H

#include "base/mem.h"
#include "eval/sets/sample_set.h"

extern const oct_set_type oct_set_of_classes;

/* The predicted class for scores v[n]: the largest score, the first of equal ones, NaN last. For a single score: 1 if
 * it is above the threshold, else 0. OCT_NO_CLASS: no score is a number, or there is none. */
#define OCT_NO_CLASS SIZE_MAX
size_t oct_class_of(const float *v, size_t n, double threshold);

/* Means over the classes that occur. For two classes: the metric of class 1, unless the rule says macro. */
double oct_classes_precision(const oct_set *s, const double *draws, double *scratch);
double oct_classes_recall(const oct_set *s, const double *draws, double *scratch);
double oct_classes_f1(const oct_set *s, const double *draws, double *scratch);

/* A class that occurs in the labels or the predictions. */
typedef struct oct_class_row {
    int64_t class_number;
    uint64_t samples; /* how many have it as their label: samples, objects, or pixels */
    double precision, recall, f1;
    double own; /* that of the table's own metric */
} oct_class_row;
/* How many samples with one label were predicted as one class. */
typedef struct oct_confused {
    int64_t label, taken_for;
    uint64_t samples;
} oct_confused;
typedef struct oct_class_table {
    oct_class_row *row; /* by class */
    size_t n_rows;
    oct_confused *cell; /* ordered by label, then by predicted class; pairs without samples are left out */
    size_t n_cells;
    const char *counts; /* what `samples` counts; NULL: samples */
    const char
        *own; /* the name of the metric that classes of this task have beside the others, all in percent; NULL: none */
} oct_class_table;
/* Adds a class with the counts of its hits, of wrong predictions and of misses; nothing where all are 0. */
void oct_class_row_add(oct_class_table *t, int64_t class_number, double hit, double extra, double missed, double own);
/* Fills the table; its memory is in arena. */
oct_status oct_classes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);

#endif
