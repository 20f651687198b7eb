/* lib/eval/metric_command.h -- a metric that a program of the user computes from a model's outputs.
 *
 * The command is run by /bin/sh once for each model, with the path of an .npz behind it as its last argument: the model's outputs under the
 * names that they have in the float model, joined on the first dimension over the samples; `sample_names`, texts; `sample_labels`, int64, -1
 * where there is none. It prints either one number for all samples, or one for each sample in this order, between white space; nan leaves a
 * sample out. More is better unless said otherwise. An exit status other than 0 is a failure. The file is removed afterwards. */
#ifndef OCT_EVAL_METRIC_COMMAND_H
#define OCT_EVAL_METRIC_COMMAND_H

#include "eval/metric.h"
#include "eval/outputs.h"

typedef struct oct_metric_command {
    const char *command;
    bool smaller_is_better;
} oct_metric_command;

#define OCT_COMMAND_METRIC "command"
/* The record of such a metric, called `command`. It has neither score nor whole: its values come from the command. proportion: they are
 * 0 or 1 for each sample. */
const oct_metric *oct_command_metric(const oct_metric_command *c, bool proportion);

typedef struct oct_command_run oct_command_run;
/* Begins the file of one model's outputs, in the folder of temporary files; g and from as for oct_output_writer_open. OCT_EIO. */
oct_status oct_command_open(const oct_graph *g, const size_t *from, oct_command_run **r, oct_err *err);
oct_status oct_command_add(oct_command_run *r, const oct_engine *e, const oct_source *src, const oct_batch *b, oct_err *err);
/* Ends the file, runs the command and reads its numbers: *values, in arena, *n of them, which is 1 or the number of samples.
 * OCT_EIO: it cannot be run, or failed; OCT_EMALFORMED: it printed something else. */
oct_status oct_command_finish(oct_command_run *r, const char *command, oct_arena *arena, double **values, size_t *n, oct_err *err);
void oct_command_close(oct_command_run *r); /* NULL allowed */

#endif
