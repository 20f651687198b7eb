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

/* Runs g on the next sample of src, which must be opened for g's inputs. If there are denormal numbers and the CPU can flush them, times
 * pairs of runs on that sample, one with and one without flushing, on the calling thread. Fails as the data and the runtime do. */
oct_status oct_denormals_find(const oct_graph *g, oct_source *src, oct_denormals *d, oct_err *err);

#endif
