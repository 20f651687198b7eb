/* lib/quant/tune.h -- chooses the observer by the measured error of the outputs. */
#ifndef OCT_QUANT_TUNE_H
#define OCT_QUANT_TUNE_H

#include "base/pool.h"
#include "data/data.h"
#include "quant/quant.h"

/* Tries the candidates for every layer whose policy row names no observer, on at most `samples` samples of src (best spread
 * over the data: open it with a shard), and sets the job's observer to the best. Before oct_qjob_decide, which then uses
 * it. Costs a float and three quantized runs a sample. The job's graph is not changed. */
oct_status oct_qjob_tune(oct_qjob *j, const oct_calib *c, oct_source *src, int64_t samples, oct_pool *pool, oct_err *err);

/* Measures the means of product inputs as their grids round them, on at most `samples` samples of src, and corrects the
 * biases by them (weights.c). After oct_qjob_decide with the same table c. */
oct_status oct_qjob_correct(oct_qjob *j, const oct_calib *c, oct_source *src, int64_t samples, int threads, oct_err *err);

#endif
