/* Prints what a run without --dry-run takes. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"

void dry_report_print(const session *s, FILE *f)
{
    if (!s->a->x.dry_run)
        return;
    char seconds[32], memory[32];
    const oct_estimate x = oct_session_estimate(&s->of);
    oct_print(f, "Estimate: to convert it takes about %s and %s of memory here.\n", oct_fmt_seconds(seconds, x.seconds),
              oct_fmt_bytes(memory, (uint64_t)x.memory));
}
