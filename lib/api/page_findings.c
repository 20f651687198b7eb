/* Findings of lint, for a page. */
#include "api/page_findings.h"

void oct_put_finding(oct_json *j, const char *kind, const char *node, const char *text)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "kind", kind);
    oct_json_str(j, "node", node);
    oct_json_str(j, "text", text);
    oct_json_close(j);
}

void oct_put_findings(oct_json *j, const oct_lint *l, const oct_lint_verdict *v, const oct_target *t)
{
    for (size_t i = 0; i < v->n_trap; i++)
        oct_put_finding(j, oct_finding_name(v->trap[i].kind), v->trap[i].name, v->trap[i].text);
    for (size_t i = 0; i < l->n_finding; i++)
        if (oct_finding_concerns(&l->finding[i], t))
            oct_put_finding(j, oct_finding_name(l->finding[i].kind), l->finding[i].name, l->finding[i].text);
}
