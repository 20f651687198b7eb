/* lib/cli: the progress line. */
#include "cli/progress_line.h"

#include "base/io.h"
#include "cli/textfmt.h"

#include <inttypes.h>
#include <string.h>

void oct_progress_init(oct_progress *p, FILE *out, int want)
{
    bool terminal = oct_term_width(out) > 0;
    *p = (oct_progress){ .out = out, .now = oct_now };
    p->mode = want == 0 ? OCT_PROGRESS_OFF
              : terminal ? OCT_PROGRESS_LINE
              : want == 1 ? OCT_PROGRESS_PLAIN
                          : OCT_PROGRESS_OFF;
}

void oct_progress_clear(oct_progress *p)
{
    if (p->drawn && p->out) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
    p->drawn = false;
}

static void step_begin(oct_progress *p, const char *what, int64_t done, double now)
{
    snprintf(p->what, sizeof p->what, "%s", what);
    p->start = now;
    p->first = done;
    p->last = -1;
    p->drawn_at = -1e9;
}

/* "calibrating 120/512 (23 %), 85.1/s, 0:05 left" */
static void describe(const oct_progress *p, oct_buf *b, int64_t done, int64_t total, double now)
{
    char clock[32];
    double took = now - p->start, rate = took > 0 ? (double)(done - p->first) / took : 0;
    oct_text_clean(b, p->what, false);
    oct_buf_printf(b, " %" PRId64, done);
    if (total > 0)
        oct_buf_printf(b, "/%" PRId64 " (%d %%)", total, (int)(100.0 * (double)done / (double)total));
    if (rate > 0)
        oct_buf_printf(b, ", %.*f/s", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
    if (rate > 0 && done < total)
        oct_buf_printf(b, ", %s left", oct_fmt_clock(clock, (double)(total - done) / rate));
}

void oct_progress_report(void *arg, const char *what, int64_t done, int64_t total)
{
    oct_progress *p = arg;
    if (!p || p->mode == OCT_PROGRESS_OFF)
        return;
    what = what ? what : "working";
    double now = p->now(), every = p->mode == OCT_PROGRESS_LINE ? 1.0 / 6 : 1.0;
    if (strncmp(what, p->what, sizeof p->what - 1) != 0 || done < p->last)
        step_begin(p, what, done, now);
    bool end = p->mode == OCT_PROGRESS_PLAIN && total > 0 && done >= total && p->last < total;
    p->last = done;
    if (!end && now - p->drawn_at < every)
        return;
    p->drawn_at = now;
    oct_buf b = OCT_BUF_INIT;
    describe(p, &b, done, total, now);
    const char *s = oct_buf_str(&b);
    if (p->mode == OCT_PROGRESS_PLAIN) {
        fprintf(p->out, "%s\n", s);
    } else {
        /* The last column stays free: writing there would wrap on some terminals. */
        int width = oct_term_width(p->out);
        size_t n = oct_utf8_fit(s, width > 1 ? width - 1 : 79);
        fprintf(p->out, "\r%.*s\033[K", (int)n, s);
        p->drawn = true;
    }
    fflush(p->out);
    oct_buf_free(&b);
}
