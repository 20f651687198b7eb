/* lib/data/readers/stream.h -- bytes that are read once, from the beginning to the end: of a file, a descriptor or the
 * output of a command. The caller chooses the kind; no path is interpreted here. */
#ifndef OCT_DATA_STREAM_H
#define OCT_DATA_STREAM_H

#include "base/status.h"

#include <sys/types.h>

typedef enum oct_origin {
    OCT_FROM_FILE,       /* a regular file; anything else is refused without waiting */
    OCT_FROM_DESCRIPTOR, /* "-" for standard input, else the name of a descriptor: /dev/fd/63 */
    OCT_FROM_COMMAND     /* standard output of a command, which /bin/sh gets as it is */
} oct_origin;

enum { OCT_STREAM_BLOCK = 1 << 16, OCT_STREAM_PEEK = 1 << 12, OCT_STREAM_HEAD = 16 };

typedef struct oct_stream {
    int fd;
    pid_t pid;      /* of the command, or 0 */
    int64_t at;     /* bytes read or skipped so far */
    int64_t size;   /* of a regular file in which one can skip, else -1 */
    bool passing;   /* after a large skip the next read is small, as another skip may follow */
    int error;      /* errno of a failed read, else 0; ECANCELED: the call was asked to stop (base/stop.h) */
    bool ended;     /* a read has reached the end */
    uint8_t *block; /* [OCT_STREAM_BLOCK], what was read last */
    uint8_t head[OCT_STREAM_HEAD]; /* what was read first */
    size_t n_head;
} oct_stream;

#define OCT_STREAM_INIT { .fd = -1 }

/* OCT_EIO with the name, OCT_ENOMEM (also when the command cannot start for lack of memory or processes). */
oct_status oct_stream_open(oct_stream *s, oct_origin from, const char *what, oct_err *err);
/* Reads the next bytes into s->block. Returns their number, 0 at the end, or -1 with s->error set. */
ssize_t oct_stream_read(oct_stream *s);
/* After a read that failed: OCT_ESTOPPED, or OCT_EIO with the name. */
oct_status oct_stream_fault(const oct_stream *s, const char *name, oct_err *err);
/* The same, after the first `at` bytes of the block, which are kept. */
ssize_t oct_stream_more(oct_stream *s, size_t at);
/* Skips up to n bytes without reading them. Returns their number, 0 if that is not possible. The read after a skip of
 * half a block or more takes at most OCT_STREAM_PEEK bytes, so that passing over large members reads little more than
 * their headers. */
int64_t oct_stream_skip(oct_stream *s, int64_t n);
/* To be called at the end of the bytes. Reads the remaining output of a command and waits for it to end. Returns its
 * exit status, -1 if a signal ended it, 0 if there is no command. */
int oct_stream_finish(oct_stream *s);
/* Closes the stream at any point. A command that still runs is ended. */
void oct_stream_close(oct_stream *s);

#endif
