/* lib/base/io.c -- files that are read. */
#define _GNU_SOURCE
#include "base/io.h"
#include "base/io_int.h"

#include "base/buf.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

oct_status oct_fail_errno(oct_err *err, const char *fmt, ...)
{
    const int e = errno;
    char text[PATH_MAX + 200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return oct_fail(err, e == ENOMEM ? OCT_ENOMEM : OCT_EIO, "%s: %s", text, strerror(e));
}

/* ---- a name that is not there ---- */

enum { MOST_LISTED = 100000 }; /* names of a folder that are looked at */

/* As names are compared: in small letters, cut where oct_edit_distance cuts. */
static void fold_case(char dst[64], const char *name)
{
    size_t i = 0;
    for (; name[i] && i < 63; i++)
        dst[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
    dst[i] = 0;
}

/* Names that differ in digits alone are two files of a series, and no slip of the fingers. */
static bool same_but_digits(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

/* How far a name is from the typed one; above 1 + n / 4: another name. */
static int name_distance(const char *typed, const char *name)
{
    char a[64], b[64];
    fold_case(a, typed);
    fold_case(b, name);
    const size_t n = strlen(a);
    if (strcmp(a, b) == 0)
        return 0;
    if (strncmp(a, b, n) == 0 && b[n] == '.') /* without its ending */
        return 1;
    return same_but_digits(a, b) ? INT_MAX : oct_edit_distance(a, b);
}

/* The nearest name in a folder, the first by bytes of several; false: none is near. */
static bool nearest_in(const char *folder, const char *typed, char best[NAME_MAX + 1])
{
    DIR *d = opendir(*folder ? folder : ".");
    int least = 2 + (int)strnlen(typed, 63) / 4;
    bool found = false;
    struct dirent *e;
    for (size_t i = 0; d && i < MOST_LISTED && (e = readdir(d)); i++) {
        const int at = e->d_name[0] == '.' ? INT_MAX : name_distance(typed, e->d_name);
        if (at > least || (at == least && (!found || strcmp(e->d_name, best) >= 0)))
            continue;
        found = true;
        least = at;
        snprintf(best, NAME_MAX + 1, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

/* Looks where the first folder is missing, or the file; what is behind it must be there. */
static void hint_nearest(const char *path, oct_err *err)
{
    char part[PATH_MAX], other[2 * PATH_MAX + NAME_MAX], best[NAME_MAX + 1];
    struct stat st;
    for (size_t from = 0, n; path[from] && strlen(path) < PATH_MAX; from = n + strspn(path + n, "/")) {
        n = from + strcspn(path + from, "/");
        memcpy(part, path, n);
        part[n] = 0;
        if (n == 0 || stat(part, &st) == 0)
            continue;
        part[from] = 0; /* the folder, with its slash */
        snprintf(other, sizeof other, "%.*s", (int)(n - from), path + from);
        if (!nearest_in(part, other, best))
            return;
        snprintf(other, sizeof other, "%s%s%s", part, best, path + n);
        if (stat(other, &st) == 0)
            oct_hint(err, "did you mean '%s'?", other);
        return;
    }
}

oct_status oct_fail_open(oct_err *err, const char *path)
{
    const int e = errno;
    const oct_status s = oct_fail_errno(err, "%s", path);
    if (e == ENOENT)
        hint_nearest(path, err);
    return s;
}

/* ---- descriptors ---- */

static bool was_closed[3];

void oct_io_start(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0) {
            was_closed[fd] = true;
            if (open("/dev/null", O_RDWR) !=
                fd) /* the lowest free descriptor; without /dev/null, any folder occupies it */
                (void)!open("/", O_RDONLY);
        }
}

bool oct_io_was_closed(int fd)
{
    return fd >= 0 && fd < 3 && was_closed[fd];
}

/* ---- opening ---- */

int oct_path_fd(const char *path)
{
    static const char *const named[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" }, *const numbered[] = {
        "/dev/fd/", "/proc/self/fd/"
    };
    for (int i = 0; i < 3; i++)
        if (strcmp(path, named[i]) == 0)
            return i;
    for (size_t i = 0; i < OCT_COUNT(numbered); i++) {
        const size_t n = strlen(numbered[i]),
                     digits = strncmp(path, numbered[i], n) == 0 ? strspn(path + n, "0123456789") : 0;
        if (digits > 0 && digits < 8 && !path[n + digits])
            return atoi(path + n);
    }
    return -1;
}

static const char *kind(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISCHR(mode)  ? "a character device"
                            : "something else";
}

static oct_status refuse(const char *path, mode_t mode, bool stream, oct_err *err)
{
    oct_fail(err, OCT_EIO, "%s: is %s, not a regular file", path, kind(mode));
    if (stream && !S_ISDIR(mode))
        oct_hint(err, "give a stream by the name of a descriptor: /dev/stdin with <%s, or <(COMMAND) in the shell",
                 path);
    else if (S_ISFIFO(mode))
        oct_hint(err, "copy it to a file; a model on standard input is '-'");
    return OCT_EIO;
}

/* ---- outputs are no inputs ---- */

static struct {
    dev_t dev;
    ino_t ino;
    const char *path;
} claims[16]; /* a run has few outputs; set before threads open files */
static size_t n_claims;

/* The output that is this file; NULL: none. */
static const char *claimed(const struct stat *st)
{
    for (size_t i = 0; i < n_claims; i++)
        if (claims[i].dev == st->st_dev && claims[i].ino == st->st_ino)
            return claims[i].path;
    return NULL;
}

void oct_out_claim(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || claimed(&st) || n_claims == OCT_COUNT(claims))
        return;
    claims[n_claims].path = path;
    claims[n_claims].dev = st.st_dev;
    claims[n_claims++].ino = st.st_ino;
}

void oct_out_unclaim(void)
{
    n_claims = 0;
}

static oct_status check_claims(const char *path, const struct stat *st, oct_err *err)
{
    const char *out = claimed(st);
    if (!out)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: the output is an input (%s); nothing was written", out, path);
    oct_hint(err, "give the output another name");
    return OCT_EUSAGE;
}

/* Descriptors that are shared with another program are not changed. Opening a FIFO again would wait for a writer. */
static oct_status open_descriptor(const char *path, int own, int *fd, oct_err *err)
{
    struct stat st;
    if (fstat(own, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return refuse(path, st.st_mode, true, err);
        OCT_TRY(check_claims(path, &st, err));
    }
    errno = EBADF;
    *fd = oct_io_was_closed(own) ? -1 : fcntl(own, F_DUPFD_CLOEXEC, 3);
    return *fd >= 0 ? OCT_OK : oct_fail_errno(err, "%s", path);
}

oct_status oct_file_open(const char *path, bool stream, int *fd, oct_err *err)
{
    struct stat st;
    if (stream && oct_path_fd(path) >= 0)
        return open_descriptor(path, oct_path_fd(path), fd, err);
    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0 && errno == ENXIO && stat(path, &st) == 0)
        return refuse(path, st.st_mode, stream, err); /* a socket */
    if (*fd < 0)
        return oct_fail_open(err, path);
    if (fstat(*fd, &st) == 0 && (S_ISREG(st.st_mode) || (stream && S_ISCHR(st.st_mode)))) {
        fcntl(*fd, F_SETFL, 0); /* from here on it may wait */
        oct_status s = check_claims(path, &st, err);
        if (s != OCT_OK)
            close(*fd);
        return s;
    }
    close(*fd);
    *fd = -1;
    return refuse(path, st.st_mode, stream, err);
}

ssize_t oct_file_read(int fd, void *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = read(fd, (char *)p + done, n - done);
        if (r == 0)
            break;
        if (r > 0)
            done += (size_t)r;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1);
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)done;
}

/* ---- mapping ---- */

oct_status oct_map_fd(oct_map *m, int fd, const char *path, oct_err *err)
{
    struct stat st;
    *m = (oct_map){ 0 };
    if (fstat(fd, &st) != 0)
        return oct_fail_errno(err, "%s", path);
    if (!(m->path = oct_strdup(path)))
        return oct_nomem(err);
    if (st.st_size == 0)
        return OCT_OK;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int e = errno;
    if (p != MAP_FAILED && (m->mapped = oct_mapped_add(p, (size_t)st.st_size, path))) {
        m->data = p;
        m->size = (size_t)st.st_size;
        return OCT_OK;
    }
    if (p != MAP_FAILED)
        munmap(p, (size_t)st.st_size);
    oct_free(m->path);
    *m = (oct_map){ 0 };
    errno = e;
    return p != MAP_FAILED ? oct_nomem(err) : oct_fail_errno(err, "%s: cannot map", path);
}

oct_status oct_map_open(oct_map *m, const char *path, oct_err *err)
{
    int fd;
    *m = (oct_map){ 0 };
    OCT_TRY(oct_file_open(path, false, &fd, err));
    oct_status s = oct_map_fd(m, fd, path, err);
    close(fd);
    return s;
}

void oct_map_close(oct_map *m)
{
    oct_mapped_remove(m->mapped);
    if (m->data)
        munmap((void *)(uintptr_t)m->data, m->size);
    oct_free(m->path);
    *m = (oct_map){ 0 };
}

oct_status oct_read_all(const char *path, size_t max, char **data, size_t *size, oct_err *err)
{
    int fd;
    OCT_TRY(oct_file_open(strcmp(path, "-") == 0 ? "/dev/stdin" : path, true, &fd, err));
    char *p = NULL;
    size_t n = 0, cap = 0;
    oct_status s = OCT_OK;
    for (;;) {
        if (n + 1 >= cap) {
            size_t bigger = cap ? cap * 2 : 1 << 16;
            char *q = oct_realloc(p, n, bigger);
            if (!q) {
                s = oct_nomem(err);
                break;
            }
            p = q;
            cap = bigger;
        }
        ssize_t r = oct_file_read(fd, p + n, cap - n - 1);
        if (r < 0)
            s = oct_fail_errno(err, "%s", path);
        if (r <= 0)
            break;
        n += (size_t)r;
        if (n > max) {
            s = oct_fail(err, OCT_EMALFORMED, "%s: longer than the %zu bytes allowed here", path, max);
            break;
        }
    }
    close(fd);
    if (s != OCT_OK) {
        oct_free(p);
        return s;
    }
    p[n] = 0;
    *data = p;
    *size = n;
    return OCT_OK;
}

oct_status oct_read_text(const char *path, size_t max, const char *what, char **text, oct_err *err)
{
    size_t size;
    OCT_TRY(oct_read_all(path, max, text, &size, err));
    if (strlen(*text) == size)
        return OCT_OK;
    oct_free(*text);
    *text = NULL;
    return oct_fail(err, OCT_EMALFORMED, "%s: a NUL byte: this is not %s", path, what);
}

bool oct_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

const char *oct_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool oct_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool oct_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

oct_status oct_path_look(const char *path, oct_path_kind *kind, oct_err *err)
{
    struct stat st;
    const bool there = stat(path, &st) == 0;
    *kind = !there ? OCT_PATH_NONE : S_ISDIR(st.st_mode) ? OCT_PATH_FOLDER : OCT_PATH_OTHER;
    return there || errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? OCT_OK : oct_fail_errno(err, "%s", path);
}

double oct_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t oct_hash(uint64_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}
