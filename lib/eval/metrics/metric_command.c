/* A metric from a command: a file with the outputs, what the command prints of it. */
#include "eval/metrics/metric_command.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "base/stop.h"
#include "data/readers/readers.h"
#include "data/readers/shell.h"
#include "data/readers/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char summary[] = "what the command of --metric-cmd prints";
#define METRIC(k, larger) \
    { OCT_COMMAND_METRIC, summary, (k) == OCT_METRIC_PROPORTION ? "%" : "", .kind = k, .larger_is_better = larger }
static const oct_metric means[2] = { METRIC(OCT_METRIC_MEAN, true), METRIC(OCT_METRIC_MEAN, false) };
static const oct_metric shares[2] = { METRIC(OCT_METRIC_PROPORTION, true), METRIC(OCT_METRIC_PROPORTION, false) };

const oct_metric *oct_command_metric(const oct_metric_command *c, bool proportion)
{
    return &(proportion ? shares : means)[c->smaller_is_better];
}

struct oct_command_run {
    oct_scratch *scratch;
    oct_output_writer *outputs;
    size_t samples;
};

/* ---- the file ---- */

static oct_status make_file(oct_command_run *r, const oct_graph *g, const size_t *from, oct_err *err)
{
    OCT_TRY(oct_scratch_create("outputs.npz", "the outputs", &r->scratch, err));
    return oct_output_writer_open(g, from, oct_scratch_path(r->scratch), true, &r->outputs, err);
}

oct_status oct_command_open(const oct_graph *g, const size_t *from, oct_command_run **out, oct_err *err)
{
    oct_command_run *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    const oct_status s = make_file(r, g, from, err);
    if (s != OCT_OK)
        oct_command_close(r);
    *out = s == OCT_OK ? r : NULL;
    return s;
}

void oct_command_close(oct_command_run *r)
{
    if (!r)
        return;
    oct_output_writer_abort(r->outputs);
    oct_scratch_remove(r->scratch);
    oct_free(r);
}

oct_status oct_command_add(oct_command_run *r, const oct_engine *e, const oct_source *src, const oct_batch *b,
                           oct_err *err)
{
    r->samples += b->n;
    return oct_output_writer_add(r->outputs, e, src, b, err);
}

/* ---- what it prints ---- */

typedef struct reading {
    double *values; /* [most]: the numbers read so far */
    size_t n, most;
    char word[64]; /* the word that has begun; a longer one is not a number */
    size_t length;
    char bad[64]; /* the first word that is not a number; "": none */
} reading;

static void end_word(reading *r)
{
    if (!r->length)
        return;
    char *end;
    r->word[r->length < sizeof r->word ? r->length : sizeof r->word - 1] = '\0';
    const double v = strtod(r->word, &end);
    if (*end || r->length >= sizeof r->word) {
        if (!*r->bad)
            memcpy(r->bad, r->word, sizeof r->bad);
    } else if (r->n < r->most) {
        r->values[r->n] = v;
    }
    r->n++;
    r->length = 0;
}

static void read_block(reading *r, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r')) {
            end_word(r);
            continue;
        }
        if (r->length < sizeof r->word)
            r->word[r->length++] = (char)p[i];
    }
}

static oct_status judge(const reading *r, const char *command, oct_err *err)
{
    if (*r->bad)
        oct_fail(err, OCT_EMALFORMED, "%s: the command printed '%s', which is not a number", command, r->bad);
    else if (r->n != 1 && r->n != r->most)
        oct_fail(err, OCT_EMALFORMED, "%s: the command printed %s%zu numbers for %zu samples", command,
                 r->n > r->most ? "at least " : "", r->n, r->most);
    else if (r->n == 1 && !isfinite(r->values[0]))
        oct_fail(err, OCT_EMALFORMED, "%s: the command printed a number that is not finite", command);
    else
        return OCT_OK;
    oct_hint(err, "it must print one number for all samples, or one for each, and nothing else");
    return OCT_EMALFORMED;
}

/* Whether the descriptor can be read, or has ended, before that time. */
static bool ready_until(int fd, double until)
{
    return until > oct_now() && oct_stop_poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, until) != 0;
}

static oct_status fail_late(const char *command, double seconds, oct_err *err)
{
    oct_fail(err, OCT_EIO, "%s: the command did not end within %g s", command, seconds);
    oct_hint(err, "--metric-timeout gives the command more time");
    return OCT_EIO;
}

static oct_status read_numbers(reading *r, const oct_metric_command *c, const char *line, oct_err *err)
{
    const char *command = c->command;
    const double seconds = c->seconds > 0 ? c->seconds : OCT_COMMAND_SECONDS, until = oct_now() + seconds;
    oct_stream s;
    OCT_TRY(oct_stream_open(&s, OCT_FROM_COMMAND, line, err));
    ssize_t got = 0;
    bool late = false;
    while (!(late = !ready_until(s.fd, until)) && (got = oct_stream_read(&s)) > 0 && r->n <= r->most &&
           r->length < sizeof r->word)
        read_block(r, s.block, (size_t)got);
    end_word(r);
    const bool flood = late || got > 0; /* output that does not end is not read to its end */
    oct_status st = s.error ? oct_stream_fault(&s, command, err) : OCT_OK;
    if (late)
        st = fail_late(command, seconds, err);
    const int code = flood || s.error ? 0 : oct_stream_finish(&s);
    if (oct_stop_check(NULL) != OCT_OK)
        st = oct_stop_check(err);
    else if (code)
        st = oct_fail(err, OCT_EIO, "%s: the command failed (exit %d)", command, code);
    oct_stream_close(&s);
    return st == OCT_OK ? judge(r, command, err) : st;
}

oct_status oct_command_finish(oct_command_run *r, const oct_metric_command *c, oct_arena *arena, double **values,
                              size_t *n, oct_err *err)
{
    reading x = { .most = r->samples };
    const oct_status written = oct_output_writer_commit(r->outputs, err);
    r->outputs = NULL;
    OCT_TRY(written);
    if (!(x.values = oct_arena_calloc(arena, x.most + 1, sizeof *x.values)))
        return oct_nomem(err);
    oct_buf line = OCT_BUF_INIT;
    oct_buf_puts(&line, c->command);
    oct_shell_word(&line, oct_scratch_path(r->scratch));
    const oct_status s = line.failed ? oct_nomem(err) : read_numbers(&x, c, oct_buf_str(&line), err);
    oct_buf_free(&line);
    *values = x.values;
    *n = x.n;
    return s;
}
