/* tools/qconvert/lint.h -- reports of qconvert lint. */
#ifndef OCT_TOOLS_QCONVERT_LINT_H
#define OCT_TOOLS_QCONVERT_LINT_H

#include "qconvert/qconvert.h"

/* sarif.c: the findings about the model that concern the target, as SARIF 2.1.0. */
void lint_sarif(const oct_item *report, oct_buf *out);

#endif
