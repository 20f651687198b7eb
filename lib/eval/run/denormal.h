/* lib/eval/run/denormal.h -- finds out whether a float model computes with denormal numbers, and how much time that
 * costs. */
#ifndef OCT_EVAL_DENORMAL_H
#define OCT_EVAL_DENORMAL_H

#include "eval/run/eval.h"

typedef struct oct_denormals {
    uint64_t weights; /* denormal float32 numbers among the constants */
    uint64_t values;  /* denormal numbers among all that nodes compute for one sample */
    oct_eval_speed
        flushed; /* how many times faster the model runs with denormal numbers as zeros; runs 0: not measured */
} oct_denormals;

/* Counts those among the constants of g. O(number of constants). */
uint64_t oct_denormal_weights(const oct_graph *g);

/* Runs g on the next sample of src, which must be opened for g's inputs. If there are denormal numbers and the CPU can
 * treat them as zeros, measures pairs of runs on that sample, with and without that, on the calling thread. Errors are
 * those of the data and of the runtime. */
oct_status oct_denormals_find(const oct_graph *g, oct_source *src, oct_denormals *d, oct_err *err);

/* Whether the calling thread treats denormal numbers as zeros from now on. Returns false where the CPU cannot. */
bool oct_flush_denormals(bool on);

#endif
