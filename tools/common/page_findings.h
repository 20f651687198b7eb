/* tools/common/page_findings.h -- what lint finds of a model, as lines of a page. */
#ifndef OCT_TOOLS_PAGE_FINDINGS_H
#define OCT_TOOLS_PAGE_FINDINGS_H

#include "eval/page.h"
#include "quant/examine.h"

/* Findings of l, and what the target of v does not load; room for `more` lines behind them, which the caller fills. In the arena of l. */
oct_status tool_page_findings(const oct_lint *l, const oct_lint_verdict *v, bool saturates, size_t more, oct_page_line **lines, size_t *n, oct_err *err);

#endif
