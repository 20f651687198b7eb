/* Findings of lint, for a page. */
#include "common/page_findings.h"

static void take(oct_page_line *lines, size_t *n, const oct_finding *f)
{
    lines[(*n)++] = (oct_page_line){ oct_finding_name(f->kind), f->name, f->text };
}

oct_status tool_page_findings(const oct_lint *l, const oct_lint_verdict *v, const oct_target *t, size_t more,
                              oct_page_line **lines, size_t *n, oct_err *err)
{
    *n = 0;
    if (!(*lines = oct_arena_calloc(l->arena, l->n_finding + v->n_trap + more + 1, sizeof **lines)))
        return oct_nomem(err);
    for (size_t i = 0; i < v->n_trap; i++)
        take(*lines, n, &v->trap[i]);
    for (size_t i = 0; i < l->n_finding; i++)
        if (oct_finding_concerns(&l->finding[i], t))
            take(*lines, n, &l->finding[i]);
    return OCT_OK;
}
