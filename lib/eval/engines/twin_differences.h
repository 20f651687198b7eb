/* lib/eval/engines/twin_differences.h -- where another runtime, by its twin, computes other integers than ours, which
 * computes as ONNX Runtime does. Each operator of the twin is compared twice: on what ours has computed before it, so
 * that the difference is its own, and on what the twin has. */
#ifndef OCT_EVAL_TWIN_DIFFERENCES_H
#define OCT_EVAL_TWIN_DIFFERENCES_H

#include "base/pool.h"
#include "eval/engines/twin_engine.h"

typedef struct oct_twin_difference {
    const char *value;      /* the operator's result: of the graph, or of the file */
    const char *op;         /* as .tflite names it */
    uint64_t values;        /* how many were compared */
    uint64_t own, all;      /* how many differ: on equal operands; with what differs before it */
    int own_most, all_most; /* by how many steps at most */
} oct_twin_difference;

typedef struct oct_twin_output_difference {
    uint64_t values, differ;
    double most; /* in the output's unit */
} oct_twin_output_difference;

typedef struct oct_twin_differences oct_twin_differences;

/* e must outlive d. feed: as for oct_runner_create. */
oct_status oct_twin_differences_open(oct_twin_engine *e, oct_pool *pool, const oct_input_desc *feed, size_t n_feed,
                                     oct_twin_differences **d, oct_err *err);
void oct_twin_differences_close(oct_twin_differences *d); /* NULL allowed */
/* Compares the first n samples of a batch. The outputs of e's last run are lost. */
oct_status oct_twin_differences_add(oct_twin_differences *d, const oct_array *arrays, int64_t n, oct_err *err);
/* The i-th compared result, in the model's order; NULL: there are fewer. Borrowed. */
const oct_twin_difference *oct_twin_differences_at(const oct_twin_differences *d, size_t i);
const oct_twin_output_difference *oct_twin_differences_output(const oct_twin_differences *d, size_t i);

#endif
