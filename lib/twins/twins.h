/* lib/twins/twins.h -- what other runtimes compute of a .tflite model, to the bit: interpreters that have the
 * arithmetic of one runtime each. They are plain loops, made to be read and compared, not to be fast. */
#ifndef OCT_TWINS_TWINS_H
#define OCT_TWINS_TWINS_H

#include "tflite/tfl_model.h"

typedef struct oct_twin {
    const char *name;    /* as --as takes it */
    const char *runtime; /* whose arithmetic it is */
    const char *proof;   /* what it was compared with, to the bit; NULL: nothing, it follows what is published */
    /* Lists of operators, NULL behind the last; the first rule that fits an operator counts. */
    const struct oct_twin_rule *const *rules;
} oct_twin;

/* The i-th twin; NULL: there are fewer. */
const oct_twin *oct_twin_at(size_t i);
/* The twin of that name. OCT_EUSAGE suggests one. */
oct_status oct_twin_find(const char *name, const oct_twin **t, oct_err *err);

typedef struct oct_twin_run oct_twin_run;

/* What one run of a model takes at most, whatever its file says: bytes of tensors that are no constants; products, and
 * moves of elements, which count as eight. */
typedef struct oct_twin_cost {
    double bytes, steps;
} oct_twin_cost;
oct_twin_cost oct_twin_cost_of(const oct_tfl_model *m);

/* Prepares a model, which is borrowed and must outlive the run, and computes it once on zeros. OCT_EUNSUPPORTED names
 * the first operator that the twin does not have, or says that a run takes more than 2^39 steps or 16 GB, so that a
 * hostile file ends in minutes; OCT_EMALFORMED names an operator whose tensors do not fit. */
oct_status oct_twin_open(const oct_twin *t, const oct_tfl_model *m, oct_twin_run **r, oct_err *err);
void oct_twin_close(oct_twin_run *r); /* NULL allowed */
/* The elements of a tensor: inputs are written there before a run, all others can be read behind it. */
void *oct_twin_data(const oct_twin_run *r, int tensor);
oct_status oct_twin_compute(oct_twin_run *r, oct_err *err);
/* The same of operator i alone, on what its operands' tensors have. */
oct_status oct_twin_compute_one(oct_twin_run *r, size_t i, oct_err *err);

#endif
