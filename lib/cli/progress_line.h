/* lib/cli/progress_line.h -- draws what libraries report by oct_progress_fn, on standard error.
 *
 * On a terminal it is one line, redrawn at most six times a second and erased by the report that reaches the total,
 * before other text and when a signal ends the process; with --progress and no terminal (or a dumb one), plain lines at
 * most once a second; otherwise nothing. */
#ifndef OCT_CLI_PROGRESS_LINE_H
#define OCT_CLI_PROGRESS_LINE_H

#include "base/progress.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum oct_progress_mode {
    OCT_PROGRESS_OFF,
    OCT_PROGRESS_LINE,  /* one line, redrawn  */
    OCT_PROGRESS_PLAIN, /* a line per update  */
} oct_progress_mode;

typedef struct oct_progress {
    FILE *out; /* borrowed */
    oct_progress_mode mode;
    double (*now)(void); /* seconds; oct_now but in tests */
    char what[64];       /* the step being drawn */
    double start, drawn_at;
    int64_t first, last; /* counts at the beginning of the step, and in the last report */
    bool drawn;          /* there is a line to erase */
} oct_progress;

/* want: 1 --progress, 0 --no-progress or -q, -1 neither (a terminal decides). */
void oct_progress_init(oct_progress *p, FILE *out, int want);
/* An oct_progress_fn; arg is the oct_progress. A new `what`, or a count that goes back, starts a new step.
 * The report that reaches the total erases the line; in plain mode it is always drawn, so that a log shows the end. */
void oct_progress_report(void *arg, const char *what, int64_t done, int64_t total);
/* Erases the line, so that other text can be printed; the next report draws again. */
void oct_progress_clear(oct_progress *p);

#endif
