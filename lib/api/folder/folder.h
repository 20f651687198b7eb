/* lib/api/folder/folder.h -- folders of models, as programs that load them want them. */
#ifndef OCT_API_FOLDER_H
#define OCT_API_FOLDER_H

#include "api/folder/folder_plan.h"
#include "api/evaluation.h"
#include "api/session.h"

/* Converts the folder x->model by a recipe (NULL: "auto") into the new folder x->output, and makes the report, of
 * schema octet-folder-1. The other options hold for each model; x->scheme, where it is given, in place of the recipe's.
 * Samples are "NAME=SPEC" for the model of that name, or "SPEC" for all. The folder appears complete, or not at all.
 *   OCT_EUSAGE         an option that no folder has; something is at x->output already; there is no such recipe, or
 *                      the folder fits none
 *   OCT_EUNSUPPORTED   the folder has no float model
 *   OCT_EGOAL          a goal was missed: nothing was written, and there is a report
 * and the errors of conversions, which name the file. */
oct_status oct_folder_convert(const octet_convert_options *x, const char *recipe, const oct_session_host *h,
                              oct_document *to, oct_err *err);

/* Judges other variants of the models of the folder x->model: those of the folder x->quantized, or, if that is empty,
 * those in the same folder, as others have published them. Makes the report, of schema octet-audit-1: of each whether
 * it loads, whether it has the float model's inputs and outputs, and with samples (as above) what it costs.
 * OCT_EGOAL: there is a report, and a variant does not load, has other ends, computes something else or misses a
 * gate. Where the samples suit no variant, the error is that of the first, and there is no report. */
oct_status oct_folder_audit(const octet_evaluate_options *x, const char *recipe, const oct_evaluation_host *h,
                            oct_document *to, oct_err *err);

/* For the files that implement these: the samples for a model; none where all are for others. The list is made in the
 * arena. */
oct_status oct_folder_samples(const oct_folder *f, const oct_folder_model *m, const octet_samples *given,
                              octet_samples *samples, oct_err *err);

#endif
