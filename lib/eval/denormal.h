/* lib/eval/denormal.h -- whether a float model computes with denormal numbers, and what that costs. */
#ifndef OCT_EVAL_DENORMAL_H
#define OCT_EVAL_DENORMAL_H

#include "eval/eval.h"

typedef struct oct_denormals {
    uint64_t weights;       /* denormal float32 numbers among the constants */
    uint64_t values;        /* and among all that nodes compute for one sample */
    oct_eval_speed flushed; /* how many times faster the model runs with denormal numbers as zeros; runs 0: not measured */
} oct_denormals;

/* Constants of g alone. O(constants). */
uint64_t oct_denormal_weights(const oct_graph *g);

/* Runs g over the next sample of src, opened for its inputs, and, where there are denormal numbers and the CPU can flush them, times
 * pairs of runs on it, one with and one without, on the calling thread. Errors as of the data and the runtime. */
oct_status oct_denormals_find(const oct_graph *g, oct_source *src, oct_denormals *d, oct_err *err);

#endif
