/* lib/eval/run/outputs.h -- runs a model over samples and writes all its outputs. */
#ifndef OCT_EVAL_OUTPUTS_H
#define OCT_EVAL_OUTPUTS_H

#include "base/progress.h"
#include "data/data.h"
#include "eval/engines/engine.h"
#include "graph/graph.h"
#include "runtime/carry.h"

/* Writes all outputs of the graph, in the model's element types, to an .npz file. Each is joined along axis 0 over the
 * samples. Memory does not depend on their number. how: the runtime. path: the file, which is written under a temporary
 * name and renamed. *samples (may be NULL): how many samples ran. */
oct_status oct_write_outputs(const oct_graph *g, const oct_state *states, size_t n_states, const oct_engine_opts *how,
                             oct_source *src, const char *path, size_t batch, oct_progress_fn progress,
                             void *progress_arg, int64_t *samples, oct_err *err);

/* The same for a model that the caller runs, batch by batch. */
typedef struct oct_output_writer oct_output_writer;
/* Outputs have the names of those of g. from[i] (NULL: i): the output of the running model that is the i-th of g.
 * samples: the file also gets `sample_names` and `sample_labels` (-1: none). OCT_EUNSUPPORTED: an output has such a
 * name. */
oct_status oct_output_writer_open(const oct_graph *g, const size_t *from, const char *path, bool samples,
                                  oct_output_writer **w, oct_err *err);
/* Appends the outputs for a batch of src. OCT_EUNSUPPORTED: .npz does not support a type. */
oct_status oct_output_writer_add(oct_output_writer *w, const oct_engine *e, const oct_source *src, const oct_batch *b,
                                 oct_err *err);
oct_status oct_output_writer_commit(oct_output_writer *w, oct_err *err); /* closes w in any case */
void oct_output_writer_abort(oct_output_writer *w);                      /* w may be NULL; no file is left */

#endif
