/* lib/quant/tune.h -- chooses the observer by the measured error of the outputs. */
#ifndef OCT_QUANT_TUNE_H
#define OCT_QUANT_TUNE_H

#include "data/data.h"
#include "quant/quant.h"
#include "runtime/plan.h"

/* Tries the candidates for all layers whose policy row names no observer. Their ranges come from table c; they are run on at most
 * `samples` (1 or more) of the `count` samples of a calibration pass (0: it is not known how many), spread over them, and c must not
 * hold these: ranges look better the more they clip on the samples they come from. *t is NULL where no layer has a choice. Before
 * oct_qjob_decide. The job's graph is not changed; job and table are borrowed. Costs three quantized runs a sample. */
typedef struct oct_tuner oct_tuner;
oct_status oct_tuner_create(oct_qjob *j, const oct_calib *c, int64_t count, int64_t samples, oct_tuner **t, oct_err *err);
void oct_tuner_destroy(oct_tuner *t); /* NULL allowed */
/* The oct_sample_fn to calibrate with, its argument the tuner. */
oct_status oct_tuner_sample(void *tuner, int64_t at, const oct_batch *b, const oct_plan *real, oct_err *err);
/* After the pass: sets the job's observer to the best. The result does not depend on threads. */
oct_status oct_tuner_choose(oct_tuner *t, oct_err *err);

/* Measures the means of product inputs as their grids round them, on at most `samples` samples of src, and corrects the
 * biases by them (weights.c). After oct_qjob_decide with the same table c. */
oct_status oct_qjob_correct(oct_qjob *j, const oct_calib *c, oct_source *src, int64_t samples, int threads, oct_err *err);

#endif
