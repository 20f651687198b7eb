/* lib/eval/outputs.h -- runs a model over samples and writes all its outputs. */
#ifndef OCT_EVAL_OUTPUTS_H
#define OCT_EVAL_OUTPUTS_H

#include "base/progress.h"
#include "data/data.h"
#include "eval/engine.h"
#include "graph/graph.h"
#include "runtime/carry.h"

/* Writes every graph output, in the model's element type, to an .npz: arrays joined on axis 0 over the samples. Memory
 * does not depend on their number. how: what runs it. path: the file, written beside and renamed. *samples (may be NULL): how many ran. */
oct_status oct_write_outputs(const oct_graph *g, const oct_state *states, size_t n_states, const oct_engine_opts *how, oct_source *src, const char *path, size_t batch,
                             oct_progress_fn progress, void *progress_arg, int64_t *samples, oct_err *err);

/* The same, batch by batch, of a model that the caller runs. */
typedef struct oct_output_writer oct_output_writer;
/* Outputs are called as those of g; from[i] (NULL: i): which output of the model that runs is the i-th. samples: the file also gets
 * `sample_names` and `sample_labels` (-1: none); OCT_EUNSUPPORTED where an output has such a name. */
oct_status oct_output_writer_open(const oct_graph *g, const size_t *from, const char *path, bool samples, oct_output_writer **w, oct_err *err);
/* What the model made of a batch of src. OCT_EUNSUPPORTED for a type that .npz does not have. */
oct_status oct_output_writer_add(oct_output_writer *w, const oct_engine *e, const oct_source *src, const oct_batch *b, oct_err *err);
oct_status oct_output_writer_commit(oct_output_writer *w, oct_err *err); /* closes w either way */
void oct_output_writer_abort(oct_output_writer *w);                      /* NULL allowed; nothing is left behind */

#endif
