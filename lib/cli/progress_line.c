/* lib/cli: the progress line. */
#include "cli/progress_line.h"

#include "base/io.h"
#include "cli/textfmt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ERASE "\r\033[K"

void oct_progress_init(oct_progress *p, FILE *out, int want)
{
    const char *term = getenv("TERM");
    bool terminal = oct_term_width(out) > 0 && !(term && strcmp(term, "dumb") == 0); /* that one cannot erase a line */
    *p = (oct_progress){ .out = out, .now = oct_now };
    p->mode = want == 0   ? OCT_PROGRESS_OFF
              : terminal  ? OCT_PROGRESS_LINE
              : want == 1 ? OCT_PROGRESS_PLAIN
                          : OCT_PROGRESS_OFF;
}

void oct_progress_clear(oct_progress *p)
{
    if (p->drawn && p->out) {
        fputs(ERASE, p->out);
        fflush(p->out);
    }
    if (p->drawn && p->out == stderr)
        oct_io_farewell(NULL);
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
    oct_text_clean(b, p->what, oct_term_ascii(p->out));
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
    bool done_all = total > 0 && done >= total, end = p->mode == OCT_PROGRESS_PLAIN && done_all && p->last < total;
    p->last = done;
    if (done_all && p->mode == OCT_PROGRESS_LINE) {
        oct_progress_clear(p);
        return;
    }
    if (!end && now - p->drawn_at < every)
        return;
    p->drawn_at = now;
    oct_buf b = OCT_BUF_INIT;
    describe(p, &b, done, total, now);
    const char *s = oct_buf_str(&b);
    if (p->mode == OCT_PROGRESS_PLAIN) {
        oct_print(p->out, "%s\n", s);
    } else {
        /* The last column stays free: writing there would wrap on some terminals. */
        int width = oct_term_width(p->out);
        size_t n = oct_utf8_fit(s, width > 0 ? width - 1 : 79);
        fprintf(p->out, "\r%.*s\033[K", (int)n, s);
        p->drawn = true;
        if (p->out == stderr)
            oct_io_farewell(ERASE);
    }
    fflush(p->out);
    oct_buf_free(&b);
}
