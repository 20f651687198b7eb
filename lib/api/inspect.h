/* lib/api/inspect.h -- what is said of a model without converting it: the options are those of a conversion, the answer
 * is a document. Nothing is written. */
#ifndef OCT_API_INSPECT_H
#define OCT_API_INSPECT_H

#include "api/session.h"

/* session_lint.c: how a target runs each node of a finished model, what goes wrong, and which targets the file fits; of
 * a float model what a conversion would make of it. Of schema octet-lint-2. */
oct_status oct_session_lint(const octet_convert_options *x, const oct_session_host *h, oct_document *to, oct_err *err);

#endif
