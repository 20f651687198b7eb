/* lib/eval/engines/remote.h -- a model that another runtime runs. A command of the user is started once for the model
 * and kept running; it receives arrays and returns arrays and times. docs/runner.md describes the protocol. The process
 * must ignore SIGPIPE. */
#ifndef OCT_EVAL_REMOTE_H
#define OCT_EVAL_REMOTE_H

#include "base/array.h"
#include "graph/graph.h"
#include "ops/op.h"

typedef struct oct_remote_opts {
    const char *command; /* for /bin/sh; the path of the model is appended */
    int threads;         /* how many threads the runtime is to use */
    double timeout;      /* time limit in seconds for each answer */
} oct_remote_opts;

typedef struct oct_remote oct_remote;

/* Starts the command for the model `path`; g has the names of its inputs and outputs. feed: as for
 * oct_model_inputs_match. o, path and g are borrowed until the command is stopped. OCT_EIO: the command could not be
 * run, ended early, reported an error, or did not answer in time. OCT_EMALFORMED: the answer was not valid.
 * OCT_EUNSUPPORTED: .npy does not support an input. Messages name the command. */
oct_status oct_remote_start(const oct_remote_opts *o, const char *path, const oct_graph *g, const oct_input_desc *feed,
                            size_t n_feed, oct_remote **r, oct_err *err);
/* The name and version that it reports: "onnxruntime 1.32.0". Borrowed. */
const char *oct_remote_name(const oct_remote *r);
/* Runs the model on the arrays. *seconds: the time of the run as the command reports it. Errors as above. */
oct_status oct_remote_run(oct_remote *r, const oct_array *arrays, double *seconds, oct_err *err);
/* Output i of g from the last run; borrowed until the next run. */
const oct_operand *oct_remote_output(const oct_remote *r, size_t i);
/* Asks the command to end, and ends it. r may be NULL. */
void oct_remote_stop(oct_remote *r);

#endif
