/* lib/api/page_findings.h -- findings of lint, for the page of a report. */
#ifndef OCT_API_PAGE_FINDINGS_H
#define OCT_API_PAGE_FINDINGS_H

#include "base/json.h"
#include "quant/lint/examine.h"

/* Puts a finding into a list. node: NULL if it concerns no single node. */
void oct_put_finding(oct_json *j, const char *kind, const char *node, const char *text);
/* Puts those that concern the target. */
void oct_put_findings(oct_json *j, const oct_lint *l, const oct_lint_verdict *v, const oct_target *t);

#endif
