/* lib/eval/run/sweep.h -- latency for several numbers of threads and batch sizes. */
#ifndef OCT_EVAL_SWEEP_H
#define OCT_EVAL_SWEEP_H

#include "eval/run/eval.h"

/* Measures all models in turn with 1, 2, 4 ... threads up to `threads`, and with 1, 4 and 16 of the first samples at a
 * time, if there are so many with the same shape and the models accept them. src must be opened for oct_eval_inputs of
 * the same models and be positioned at its first sample; samples are consumed. The results are in r->sweep, by threads
 * and then by batch size; other members of r do not change. Errors are those of oct_eval. */
oct_status oct_eval_sweep(const oct_eval_model *models, size_t n_models, oct_source *src, int threads,
                          oct_eval_result *r, oct_err *err);

#endif
