#define _GNU_SOURCE
/* A command that is kept running: pipes that do not block, and a time limit. */
#include "eval/engines/kept_command.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/stop.h"
#include "data/readers/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };
static const double PATIENCE = 2,
                    GRACE = 1; /* seconds to wait for the end: after its last message, and after it closed a pipe */

struct oct_kept_command {
    const char *shown;
    int in, out; /* our ends of its standard input and output; -1: closed */
    pid_t pid;
    double seconds, deadline;
    size_t from, to; /* the part of the block that was read but not taken yet */
    char block[BLOCK];
};

/* ---- starting and ending ---- */

static oct_status start(oct_kept_command *k, const char *line, oct_err *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return oct_fail_errno(err, "%s", k->shown);
    if (pipe2(out, O_CLOEXEC) != 0) {
        const oct_status s = oct_fail_errno(err, "%s", k->shown);
        close(in[0]);
        close(in[1]);
        return s;
    }
    k->in = in[1];
    k->out = out[0];
    oct_status s = fcntl(k->in, F_SETFL, O_NONBLOCK) < 0 || fcntl(k->out, F_SETFL, O_NONBLOCK) < 0
                       ? oct_fail_errno(err, "%s", k->shown)
                       : OCT_OK;
    if (s == OCT_OK)
        s = oct_shell_start(line, in[0], out[1], &k->pid, err);
    close(in[0]);
    close(out[1]);
    return s;
}

oct_status oct_kept_start(const char *line, const char *shown, double seconds, oct_kept_command **out, oct_err *err)
{
    oct_kept_command *k = oct_calloc(1, sizeof *k);
    if (!k)
        return oct_nomem(err);
    *k = (oct_kept_command){ .shown = shown, .in = -1, .out = -1, .seconds = seconds };
    const oct_status s = start(k, line, err);
    if (s != OCT_OK)
        oct_kept_stop(k, false);
    *out = s == OCT_OK ? k : NULL;
    return s;
}

/* Ends the command with everything that it started, and waits for it. Returns the exit status; -1 if a signal ended
 * it. */
static int reap(oct_kept_command *k, double patience)
{
    const int status = oct_shell_end(k->pid, patience);
    k->pid = 0;
    return status;
}

void oct_kept_stop(oct_kept_command *k, bool patient)
{
    if (!k)
        return;
    if (k->in >= 0)
        close(k->in);
    if (k->pid)
        (void)reap(k, patient ? PATIENCE : 0);
    if (k->out >= 0)
        close(k->out);
    oct_free(k);
}

/* ---- faults ---- */

static oct_status fail_late(const oct_kept_command *k, oct_err *err)
{
    oct_fail(err, OCT_EIO, "%s: no answer within %g s", k->shown, k->seconds);
    oct_hint(err, "--runner-timeout gives the command more time");
    return OCT_EIO;
}

/* It has closed its output or its input. A shell exits with 127 if it does not find the program. */
static oct_status fail_ended(oct_kept_command *k, oct_err *err)
{
    const bool ended = oct_shell_ended(k->pid, GRACE);
    const int status = reap(k, 0);
    if (!ended)
        return oct_fail(err, OCT_EIO, "%s: the command closed its input or output before it answered", k->shown);
    if (status < 0)
        return oct_fail(err, OCT_EIO, "%s: a signal ended the command before it answered", k->shown);
    oct_fail(err, OCT_EIO, "%s: the command ended before it answered (exit %d)", k->shown, status);
    if (status == 126 || status == 127)
        oct_hint(err, "the shell cannot run it; its message is above");
    return OCT_EIO;
}

/* ---- reading and writing ---- */

void oct_kept_turn(oct_kept_command *k)
{
    k->deadline = oct_now() + k->seconds;
}

/* Waits until its output is ready, or, if `in` is set, until its output or its input is. */
static oct_status await(const oct_kept_command *k, bool in, short ready[2], oct_err *err)
{
    struct pollfd p[2] = { { .fd = k->out, .events = POLLIN }, { .fd = in ? k->in : -1, .events = POLLOUT } };
    const int n = k->deadline > oct_now() ? oct_stop_poll(p, 2, k->deadline) : 0;
    OCT_TRY(oct_stop_check(err));
    if (n < 0)
        return oct_fail_errno(err, "%s", k->shown);
    if (n == 0)
        return fail_late(k, err);
    ready[0] = p[0].revents;
    ready[1] = p[1].revents;
    return OCT_OK;
}

/* Reads what is available into the free room of the block. */
static oct_status take(oct_kept_command *k, oct_err *err)
{
    if (k->from == k->to)
        k->from = k->to = 0;
    const ssize_t n = read(k->out, k->block + k->to, BLOCK - k->to);
    if (n > 0)
        k->to += (size_t)n;
    else if (n == 0)
        return fail_ended(k, err);
    else if (errno != EAGAIN && errno != EINTR)
        return oct_fail_errno(err, "%s", k->shown);
    return OCT_OK;
}

oct_status oct_kept_write(oct_kept_command *k, const void *p, size_t n, oct_err *err)
{
    const char *at = p;
    while (n) {
        short ready[2] = { 0 };
        OCT_TRY(await(k, true, ready, err));
        if (ready[0] && k->to == BLOCK)
            return oct_fail(err, OCT_EMALFORMED, "%s: the command wrote without being asked", k->shown);
        if (ready[1]) {
            const ssize_t sent = write(k->in, at, n);
            if (sent < 0 && errno == EPIPE)
                return OCT_OK; /* what it wrote before its end is read next; or the error is that it wrote nothing */
            if (sent < 0 && errno != EAGAIN && errno != EINTR)
                return oct_fail_errno(err, "%s", k->shown);
            at += sent > 0 ? sent : 0;
            n -= sent > 0 ? (size_t)sent : 0;
        } else if (ready[0]) {
            OCT_TRY(take(k, err));
        }
    }
    return OCT_OK;
}

/* Waits for something to read, and reads it. */
static oct_status fill(oct_kept_command *k, oct_err *err)
{
    short ready[2] = { 0 };
    while (k->from == k->to) {
        OCT_TRY(await(k, false, ready, err));
        OCT_TRY(take(k, err));
    }
    return OCT_OK;
}

oct_status oct_kept_line(oct_kept_command *k, char *dst, size_t size, oct_err *err)
{
    for (size_t n = 0;;) {
        OCT_TRY(fill(k, err));
        const char c = k->block[k->from++];
        if (c == '\n') {
            dst[n] = '\0';
            return OCT_OK;
        }
        if (n + 1 == size) {
            dst[n] = '\0';
            return oct_fail(err, OCT_EMALFORMED, "%s: the command wrote a line of more than %zu bytes: '%.60s'...",
                            k->shown, n, dst);
        }
        dst[n++] = c ? c : '?'; /* no text of the protocol holds a NUL */
    }
}

oct_status oct_kept_read(oct_kept_command *k, void *p, size_t n, oct_err *err)
{
    for (char *to = p; n;) {
        OCT_TRY(fill(k, err));
        const size_t part = k->to - k->from < n ? k->to - k->from : n;
        memcpy(to, k->block + k->from, part);
        k->from += part;
        to += part;
        n -= part;
    }
    return OCT_OK;
}
