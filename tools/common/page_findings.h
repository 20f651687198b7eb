/* tools/common/page_findings.h -- findings of lint about a model, as lines of a page. */
#ifndef OCT_TOOLS_PAGE_FINDINGS_H
#define OCT_TOOLS_PAGE_FINDINGS_H

#include "eval/report/page.h"
#include "quant/lint/examine.h"

/* The findings of l that concern the target t, and the nodes that it does not load (v). There is room for `more` lines
 * after them, which the caller fills. In the arena of l. */
oct_status tool_page_findings(const oct_lint *l, const oct_lint_verdict *v, const oct_target *t, size_t more,
                              oct_page_line **lines, size_t *n, oct_err *err);

#endif
