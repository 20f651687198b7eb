/* lib/api/inspect.h -- what is said of a model without writing one: the options are those of a conversion, the answer
 * is a document. */
#ifndef OCT_API_INSPECT_H
#define OCT_API_INSPECT_H

#include "api/session.h"

/* session_lint.c: how a target runs each node of a finished model, what goes wrong, and which targets the file fits; of
 * a float model what a conversion would make of it. Of schema octet-lint-2. */
oct_status oct_session_lint(const octet_convert_options *x, const oct_session_host *h, oct_document *to, oct_err *err);
/* session_explain.c: all that is known of the node of that name, or that computes the value of that name. Of schema
 * octet-explain-1. OCT_EUSAGE: there is none; with a hint to what became of it, or to the nearest name. */
oct_status oct_session_explain(const octet_convert_options *x, const oct_session_host *h, const char *node,
                               oct_document *to, oct_err *err);
/* verification.c: makes the model x->model again from what its record names, and compares: of schema octet-verify-1.
 * The other options name the files that its command names, as they are now, and threads; source: the float model.
 * OCT_EGOAL: another model was made; there is a report, too. statement: gets an in-toto statement of a model that is
 * the same, with the metrics of evaluation, a report of qeval; both may be NULL. */
oct_status oct_session_verify(const octet_convert_options *x, const oct_session_host *h, const char *source,
                              const char *evaluation, oct_document *to, oct_document *statement, oct_err *err);

#endif
