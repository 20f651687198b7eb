/* lib/api/convert_targets.h -- one model converted for each of several targets, and a table that compares what became
 * of it. */
#ifndef OCT_API_CONVERT_TARGETS_H
#define OCT_API_CONVERT_TARGETS_H

#include "api/session.h"

/* What stands for the name of the target in the name of an output: "model.TARGET.onnx". */
#define OCT_TARGET_WORD "TARGET"

/* Converts x->model for each target and writes the files that x->output names by that word; without it beside the
 * model. With x->dry_run, or x->in_memory, all is made and measured, and nothing is written. Makes the report, of
 * schema octet-targets-1. Errors: those of conversions, which name the target, and
 *   OCT_EUSAGE   there is no target, or one is named twice; x->output has no such word; an option is about one model
 *   OCT_EGOAL    a goal was missed for a target: there is a report */
oct_status oct_targets_convert(const octet_convert_options *x, octet_texts targets, const oct_session_host *h,
                               oct_document *to, oct_err *err);

#endif
