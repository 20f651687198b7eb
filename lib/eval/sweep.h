/* lib/eval/sweep.h -- latency by the number of threads and the batch. */
#ifndef OCT_EVAL_SWEEP_H
#define OCT_EVAL_SWEEP_H

#include "eval/eval.h"

/* Times all models in turn with 1, 2, 4 ... threads up to `threads`, and 1, 4 and 16 of the first samples at a time, as far as there are so many of one
 * shape and the models take them. src is of oct_eval_inputs of the same models, and at its first sample; it is used up. The cells are in r->sweep, by
 * threads and then by batch; other members of r are left alone. Errors as of oct_eval. */
oct_status oct_eval_sweep(const oct_eval_model *models, size_t n_models, oct_source *src, int threads, oct_eval_result *r, oct_err *err);

#endif
