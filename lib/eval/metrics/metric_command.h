/* lib/eval/metrics/metric_command.h -- a metric that a program of the user computes from a model's outputs.
 *
 * /bin/sh runs the command once for each model. Its last argument is the path of an .npz file. The file has the model's
 * outputs, joined along the first dimension over the samples, with the names that they have in the float model;
 * `sample_names`, as texts; and `sample_labels`, int64, -1 where there is no label. The command prints one number for
 * all samples, or one for each sample in this order, separated by white space; nan leaves a sample out. More is better
 * unless the options say otherwise. An exit status other than 0 is a failure. The file is removed afterwards. */
#ifndef OCT_EVAL_METRIC_COMMAND_H
#define OCT_EVAL_METRIC_COMMAND_H

#include "eval/metrics/metric.h"
#include "eval/run/outputs.h"

enum { OCT_COMMAND_SECONDS = 3600 };

typedef struct oct_metric_command {
    const char *command;
    bool smaller_is_better;
    double seconds; /* the time for the outputs of one model; 0: OCT_COMMAND_SECONDS */
} oct_metric_command;

#define OCT_COMMAND_METRIC "command"
/* The record of such a metric. Its name is `command`. It has neither `score` nor `whole`, because its values come from
 * the command. proportion: they are 0 or 1 for each sample. */
const oct_metric *oct_command_metric(const oct_metric_command *c, bool proportion);

typedef struct oct_command_run oct_command_run;
/* Begins the file with one model's outputs, in the folder for temporary files. g and from: as for
 * oct_output_writer_open. OCT_EIO. */
oct_status oct_command_open(const oct_graph *g, const size_t *from, oct_command_run **r, oct_err *err);
oct_status oct_command_add(oct_command_run *r, const oct_engine *e, const oct_source *src, const oct_batch *b,
                           oct_err *err);
/* Ends the file, runs the command and reads its numbers: *values has *n of them, in arena, where *n is 1 or the number
 * of samples. OCT_EIO: the command could not be run, failed, or took too long. OCT_EMALFORMED: it printed something
 * else. OCT_ESTOPPED. */
oct_status oct_command_finish(oct_command_run *r, const oct_metric_command *c, oct_arena *arena, double **values,
                              size_t *n, oct_err *err);
void oct_command_close(oct_command_run *r); /* NULL allowed */

#endif
