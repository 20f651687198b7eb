/* lib/eval/remote.h -- a model that another runtime runs: a command of the user, started once for the model and kept running, which gets
 * arrays and gives arrays and times. docs/runner.md is the protocol. The process must ignore SIGPIPE. */
#ifndef OCT_EVAL_REMOTE_H
#define OCT_EVAL_REMOTE_H

#include "base/array.h"
#include "graph/graph.h"
#include "ops/op.h"

typedef struct oct_remote_opts {
    const char *command; /* for /bin/sh; the model's path is put behind it */
    int threads;         /* that the runtime is to use */
    double timeout;      /* seconds for each answer */
} oct_remote_opts;

typedef struct oct_remote oct_remote;

/* Starts the command for the model `path`, of which g has the names of inputs and outputs; feed as for oct_model_inputs_match. o, path and g
 * are borrowed until it is stopped. OCT_EIO: the command cannot be run, ended early, said an error or nothing in time; OCT_EMALFORMED: it
 * said something else; OCT_EUNSUPPORTED for inputs that .npy cannot hold. Messages name the command. */
oct_status oct_remote_start(const oct_remote_opts *o, const char *path, const oct_graph *g, const oct_input_desc *feed, size_t n_feed,
                            oct_remote **r, oct_err *err);
/* What it calls itself: "onnxruntime 1.32.0". Borrowed. */
const char *oct_remote_name(const oct_remote *r);
/* Runs the arrays. *seconds: what the command says that the run alone took. Statuses as above. */
oct_status oct_remote_run(oct_remote *r, const oct_array *arrays, double *seconds, oct_err *err);
/* Output i of g, of the last run; borrowed until the next. */
const oct_operand *oct_remote_output(const oct_remote *r, size_t i);
/* Says the end; NULL allowed. */
void oct_remote_stop(oct_remote *r);

#endif
