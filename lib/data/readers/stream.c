/* lib/data/readers/stream.c -- bytes from a file, a descriptor or a command. */
#define _GNU_SOURCE
#include "data/readers/stream.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/stop.h"
#include "data/readers/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double PATIENCE = 60; /* seconds that a command may continue after it has closed its output */

static oct_status start_command(oct_stream *s, const char *command, oct_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return oct_fail_errno(err, "%s", command);
    const oct_status st = oct_shell_start(command, -1, ends[1], &s->pid, err);
    close(ends[1]);
    if (st != OCT_OK)
        close(ends[0]);
    else
        s->fd = ends[0];
    return st;
}

static oct_status open_file(oct_stream *s, const char *path, oct_err *err)
{
    struct stat st;
    OCT_TRY(oct_file_open(path, false, &s->fd, err));
    if (fstat(s->fd, &st) == 0)
        s->size = (int64_t)st.st_size;
    return OCT_OK;
}

static oct_status open_descriptor(oct_stream *s, const char *name, oct_err *err)
{
    if (strcmp(name, "-") != 0)
        return oct_file_open(name, true, &s->fd, err);
    s->fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
    return s->fd >= 0 ? OCT_OK : oct_fail_errno(err, "standard input");
}

oct_status oct_stream_open(oct_stream *s, oct_origin from, const char *what, oct_err *err)
{
    *s = (oct_stream){ .fd = -1, .size = -1 };
    if (!(s->block = oct_alloc(OCT_STREAM_BLOCK)))
        return oct_nomem(err);
    oct_status st = from == OCT_FROM_FILE      ? open_file(s, what, err)
                    : from == OCT_FROM_COMMAND ? start_command(s, what, err)
                                               : open_descriptor(s, what, err);
    if (st != OCT_OK)
        oct_stream_close(s);
    return st;
}

/* Waits for bytes of what is no regular file. */
static bool can_read(const oct_stream *s)
{
    return oct_stop_poll(&(struct pollfd){ .fd = s->fd, .events = POLLIN }, 1, INFINITY) >= 0;
}

/* Returns what is available and does not wait for a whole block, so that a sample that has arrived is not delayed by
 * later ones. */
ssize_t oct_stream_more(oct_stream *s, size_t at)
{
    const size_t room = OCT_STREAM_BLOCK - at, most = s->passing && room > OCT_STREAM_PEEK ? OCT_STREAM_PEEK : room;
    ssize_t n;
    s->passing = false;
    do
        n = s->size < 0 && !can_read(s) ? -1 : read(s->fd, s->block + at, most);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        s->error = errno;
    s->ended = n == 0;
    s->at += n > 0 ? n : 0;
    for (ssize_t i = 0; i < n && s->n_head < OCT_STREAM_HEAD; i++)
        s->head[s->n_head++] = s->block[at + (size_t)i];
    return n;
}

ssize_t oct_stream_read(oct_stream *s)
{
    return oct_stream_more(s, 0);
}

/* Never skips beyond the end, so that missing bytes are noticed. */
int64_t oct_stream_skip(oct_stream *s, int64_t n)
{
    const int64_t at = s->size < 0 ? -1 : (int64_t)lseek(s->fd, 0, SEEK_CUR);
    if (at < 0 || at > s->size)
        return 0;
    if (n > s->size - at)
        n = s->size - at;
    if (n <= 0 || lseek(s->fd, (off_t)n, SEEK_CUR) < 0)
        return 0;
    s->passing = n >= OCT_STREAM_BLOCK / 2;
    s->at += n;
    return n;
}

oct_status oct_stream_fault(const oct_stream *s, const char *name, oct_err *err)
{
    OCT_TRY(oct_stop_check(err));
    return oct_fail(err, OCT_EIO, "%s: %s", name, strerror(s->error));
}

int oct_stream_finish(oct_stream *s)
{
    if (!s->pid)
        return 0;
    while (oct_stream_read(s) > 0) {
    }
    const int status = oct_shell_end(s->pid, PATIENCE);
    s->pid = 0;
    return status;
}

void oct_stream_close(oct_stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->pid)
        (void)oct_shell_end(s->pid, 0);
    oct_free(s->block);
    *s = (oct_stream)OCT_STREAM_INIT;
}
