/* Words for the answer and for messages. */
#include "api/convert/session_int.h"

#include <string.h>

void oct_session_samples(const oct_session *s, uint64_t n, oct_buf *b)
{
    const bool one = n == 1;
    oct_buf_printf(b, " on %s%llu %ssample%s%s", s->c.judged == OCT_JUDGED_SAME ? "the " : "", (unsigned long long)n,
                   s->c.o.synthetic ? "synthetic " : "", one ? "" : "s",
                   s->c.judged == OCT_JUDGED_SAME     ? " it was calibrated with"
                   : s->c.judged == OCT_JUDGED_OTHERS ? " that calibration did not see"
                                                      : "");
}

void oct_session_reason(const char *why, oct_buf *b)
{
    static const char built_in[] = "built-in:";
    const char *place = oct_policy_place(why);
    if (place && strncmp(place, built_in, sizeof built_in - 1) == 0) {
        const char *line = place + sizeof built_in - 1, *end = strchr(line, ')');
        oct_buf_printf(b, "by the rule '%.*s' (line %.*s of the built-in policy)%s", (int)(place - why - 2), why,
                       (int)(end - line), line, end + 1);
    } else {
        oct_buf_printf(b, "%s%s", place ? "by the rule " : "", why);
    }
}
