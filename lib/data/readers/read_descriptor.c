/* lib/data/readers/read_descriptor.c -- reader: standard input and other descriptors. The first bytes tell an .npy and
 * an .npz from an archive. Arrays are copied to a file without a name, from which they are mapped: then their number is
 * known, and they can be read again. */
#define _GNU_SOURCE
#include "data/readers/readers.h"

#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC = 6 };

/* Another reader on what came. */
typedef struct descriptor {
    const oct_reader *reader;
    void *self;
} descriptor;

/* ---- arrays ---- */

static oct_status nameless(int *fd, oct_err *err)
{
    const char *shared = getenv("TMPDIR"), *folder = shared && *shared ? shared : "/tmp";
    *fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return OCT_OK;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/octet.XXXXXX", folder) >= (int)sizeof path)
        return oct_fail(err, OCT_EIO, "the name of TMPDIR is too long");
    if ((*fd = mkostemp(path, O_CLOEXEC)) < 0)
        return oct_fail_errno(err, "%s", path);
    unlink(path);
    return OCT_OK;
}

static oct_status put(int fd, const uint8_t *p, size_t n, oct_err *err)
{
    while (n) {
        const ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return oct_fail_errno(err, "the copy of standard input in TMPDIR");
        p += k;
        n -= (size_t)k;
    }
    return OCT_OK;
}

/* The bytes in hand and all that follow. */
static oct_status copy_all(oct_stream *in, ssize_t n, int fd, const char *name, oct_err *err)
{
    for (; n > 0; n = oct_stream_read(in))
        OCT_TRY(put(fd, in->block, (size_t)n, err));
    return n < 0 ? oct_stream_fault(in, name, err) : OCT_OK;
}

static oct_status open_arrays(const oct_feed_ctx *ctx, oct_stream *in, size_t n_read, bool zip, const char *name,
                              void **self, oct_err *err)
{
    int fd = -1;
    oct_status s = nameless(&fd, err);
    if (s == OCT_OK)
        s = copy_all(in, (ssize_t)n_read, fd, name, err);
    if (s == OCT_OK)
        s = zip ? oct_read_npz_fd(ctx, fd, name, self, err) : oct_read_npy_fd(ctx, fd, name, self, err);
    if (fd >= 0)
        close(fd);
    oct_stream_close(in);
    return s;
}

/* ---- which it is ---- */

/* Reads until the magic bytes are there, or the end. */
static oct_status look(oct_stream *in, size_t *n, const char *name, oct_err *err)
{
    ssize_t k = 1;
    for (*n = 0; *n < MAGIC && k > 0; *n += (size_t)k)
        if ((k = oct_stream_more(in, *n)) < 0)
            return oct_stream_fault(in, name, err);
    return OCT_OK;
}

static oct_status open_kind(const oct_feed_ctx *ctx, const char *name, descriptor *d, oct_err *err)
{
    const char *words = strcmp(name, "-") == 0 ? "standard input" : name;
    oct_stream in;
    size_t n;
    OCT_TRY(oct_stream_open(&in, OCT_FROM_DESCRIPTOR, name, err));
    const oct_status s = look(&in, &n, words, err);
    if (s != OCT_OK) {
        oct_stream_close(&in);
        return s;
    }
    const bool zip = n >= 4 && memcmp(in.block, "PK\3\4", 4) == 0;
    d->reader = zip                                                       ? &oct_read_npz
                : n >= MAGIC && memcmp(in.block, "\x93NUMPY", MAGIC) == 0 ? &oct_read_npy
                                                                          : &oct_read_tar;
    if (d->reader == &oct_read_tar)
        return oct_read_tar_stream(ctx, &in, n, name, &d->self, err);
    return open_arrays(ctx, &in, n, zip, name, &d->self, err);
}

/* ---- the reader ---- */

static void descriptor_close(void *self)
{
    descriptor *d = self;
    if (d && d->self)
        d->reader->close(d->self);
    oct_free(d);
}

static oct_status descriptor_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    descriptor *d = oct_calloc(1, sizeof *d);
    const oct_status s = d ? open_kind(ctx, path, d, err) : oct_nomem(err);
    if (s != OCT_OK)
        descriptor_close(d);
    else
        *self = d;
    return s;
}

static int64_t descriptor_count(void *self)
{
    descriptor *d = self;
    return d->reader->count(d->self);
}

static oct_status descriptor_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    descriptor *d = self;
    return d->reader->next(d->self, want, item, end, err);
}

static oct_status descriptor_pass(void *self, int64_t n, int64_t *passed, oct_err *err)
{
    descriptor *d = self;
    *passed = 0;
    return d->reader->pass ? d->reader->pass(d->self, n, passed, err) : OCT_OK;
}

static oct_status descriptor_rewind(void *self, oct_err *err)
{
    descriptor *d = self;
    return d->reader->rewind(d->self, err);
}

static char *descriptor_left_out(void *self)
{
    descriptor *d = self;
    return d->reader->left_out ? d->reader->left_out(d->self) : NULL;
}

static bool never_cheap(const char *path)
{
    return false;
}

/* Standard input or a descriptor by its name: a tar stream, an .npy or an .npz. */
const oct_reader oct_read_descriptor = {
    .open = descriptor_open,
    .count = descriptor_count,
    .is_cheap_to_pass = never_cheap,
    .next = descriptor_next,
    .pass = descriptor_pass,
    .rewind = descriptor_rewind,
    .left_out = descriptor_left_out,
    .close = descriptor_close,
};
