/* lib/eval/outputs.h -- runs a model over samples and writes all its outputs. */
#ifndef OCT_EVAL_OUTPUTS_H
#define OCT_EVAL_OUTPUTS_H

#include "base/pool.h"
#include "base/progress.h"
#include "data/data.h"
#include "graph/graph.h"

/* Writes every graph output, in the model's element type, to an .npz: arrays joined on axis 0 over the samples. Memory
 * does not depend on their number. path: the file, written beside and renamed. *samples (may be NULL): how many ran. */
oct_status oct_write_outputs(const oct_graph *g, oct_source *src, const char *path, size_t batch, oct_pool *pool,
                             oct_progress_fn progress, void *progress_arg, int64_t *samples, oct_err *err);

#endif
