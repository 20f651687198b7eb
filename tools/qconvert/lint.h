/* tools/qconvert/lint.h -- reports of qconvert lint. */
#ifndef OCT_TOOLS_QCONVERT_LINT_H
#define OCT_TOOLS_QCONVERT_LINT_H

#include "qconvert/qconvert.h"

#include "quant/lint/examine.h"

/* sarif.c: writes the findings about `model` for the target t to a file, as SARIF 2.1.0. */
oct_status lint_sarif(const char *file, const char *model, const oct_lint *l, const oct_target *t,
                      const oct_lint_verdict *v, oct_err *err);

#endif
