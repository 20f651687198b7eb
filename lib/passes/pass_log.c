/* What passes report of their changes. */
#include "passes/pass.h"

void oct_pass_note(const oct_pass_log *log, const oct_pass *p, const char *what, const char *node)
{
    if (log && log->change)
        log->change(log->arg, p->name, what, node);
}
