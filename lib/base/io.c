#define _GNU_SOURCE
#include "base/io.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What the signal handlers may look at: fixed tables, entries set before use and cleared after. */
enum { SLOTS = 64, OUT_BUF = 1 << 16 };
static struct {
    const uint8_t *volatile data;
    volatile size_t size;
    char path[512];
} maps[SLOTS];
static struct {
    volatile sig_atomic_t used;
    char path[512];
} temps[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char tool_name[32] = "octet";

static char *dup_path(const char *path)
{
    size_t n = strlen(path) + 1;
    char *p = oct_alloc(n);
    if (p)
        memcpy(p, path, n);
    return p;
}

/* ---- opening ---- */

int oct_path_fd(const char *path)
{
    static const char *const named[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" }, *const numbered[] = { "/dev/fd/", "/proc/self/fd/" };
    for (int i = 0; i < 3; i++)
        if (strcmp(path, named[i]) == 0)
            return i;
    for (size_t i = 0; i < OCT_COUNT(numbered); i++) {
        const size_t n = strlen(numbered[i]), digits = strncmp(path, numbered[i], n) == 0 ? strspn(path + n, "0123456789") : 0;
        if (digits > 0 && digits < 8 && !path[n + digits])
            return atoi(path + n);
    }
    return -1;
}

static const char *kind(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : S_ISBLK(mode) ? "a block device"
         : S_ISCHR(mode) ? "a character device" : "something else";
}

static oct_status refuse(const char *path, mode_t mode, bool stream, oct_err *err)
{
    oct_fail(err, OCT_EIO, "%s: is %s, not a regular file", path, kind(mode));
    if (stream && !S_ISDIR(mode))
        oct_hint(err, "give a stream by the name of a descriptor: /dev/stdin with <%s, or <(COMMAND) in the shell", path);
    return OCT_EIO;
}

/* What another program reads, too, is left as it is; opened anew, a FIFO would wait for a writer. */
static oct_status open_descriptor(const char *path, int own, int *fd, oct_err *err)
{
    struct stat st;
    if (fstat(own, &st) == 0 && S_ISDIR(st.st_mode))
        return refuse(path, st.st_mode, true, err);
    *fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
    return *fd >= 0 ? OCT_OK : oct_fail(err, OCT_EIO, "%s: %s", path, strerror(errno));
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
        return oct_fail(err, OCT_EIO, "%s: %s", path, strerror(errno));
    if (fstat(*fd, &st) == 0 && (S_ISREG(st.st_mode) || (stream && S_ISCHR(st.st_mode)))) {
        fcntl(*fd, F_SETFL, 0); /* from here on it may wait */
        return OCT_OK;
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

oct_status oct_map_open(oct_map *m, const char *path, oct_err *err)
{
    *m = (oct_map){ 0 };
    struct stat st;
    int fd;
    OCT_TRY(oct_file_open(path, false, &fd, err));
    if (fstat(fd, &st) != 0) {
        close(fd);
        return oct_fail(err, OCT_EIO, "%s: %s", path, strerror(errno));
    }
    if (!(m->path = dup_path(path))) {
        close(fd);
        return oct_nomem(err);
    }
    if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            int e = errno;
            close(fd);
            oct_free(m->path);
            *m = (oct_map){ 0 };
            return oct_fail(err, e == ENOMEM ? OCT_ENOMEM : OCT_EIO, "%s: cannot map: %s", path, strerror(e));
        }
        m->data = p;
        m->size = (size_t)st.st_size;
        pthread_mutex_lock(&lock);
        for (int i = 0; i < SLOTS; i++)
            if (!maps[i].data) {
                snprintf(maps[i].path, sizeof maps[i].path, "%s", path);
                maps[i].size = m->size;
                maps[i].data = m->data;
                break;
            }
        pthread_mutex_unlock(&lock);
    }
    close(fd);
    return OCT_OK;
}

void oct_map_close(oct_map *m)
{
    if (m->data) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < SLOTS; i++)
            if (maps[i].data == m->data)
                maps[i].data = NULL;
        pthread_mutex_unlock(&lock);
        munmap((void *)(uintptr_t)m->data, m->size);
    }
    oct_free(m->path);
    *m = (oct_map){ 0 };
}

void oct_map_forget(const oct_map *m, const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)m->data;
    uintptr_t begin = (uintptr_t)p, end = begin + n;
    if (!m->data || begin < from || n > m->size || begin - from > m->size - n)
        return;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED); /* the pages are clean: nothing is lost */
}

static void say(const char *s)
{
    ssize_t r = write(2, s, strlen(s));
    (void)r;
}

static void remove_temps(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (temps[i].used)
            unlink(temps[i].path);
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    (void)context;
    const uint8_t *at = info->si_addr;
    for (int i = 0; i < SLOTS; i++) {
        const uint8_t *data = maps[i].data;
        if (data && at >= data && at < data + maps[i].size) {
            say(tool_name);
            say(": ");
            say(maps[i].path);
            say(": the file was cut short while it was read\n");
            remove_temps();
            _exit(OCT_EIO);
        }
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_stop(int sig)
{
    remove_temps();
    signal(sig, SIG_DFL);
    raise(sig);
}

void oct_io_guard(const char *tool)
{
    snprintf(tool_name, sizeof tool_name, "%s", tool);
    struct sigaction bus = { 0 }, stop = { 0 };
    bus.sa_sigaction = on_bus;
    bus.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &bus, NULL);
    stop.sa_handler = on_stop;
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    /* A reader that went away and a limit on file sizes become errors of write, which are reported. */
    signal(SIGPIPE, SIG_IGN);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);
#endif
}

oct_status oct_read_all(const char *path, size_t max, char **data, size_t *size, oct_err *err)
{
    int fd = 0;
    const bool in = strcmp(path, "-") == 0;
    if (!in)
        OCT_TRY(oct_file_open(path, true, &fd, err));
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
            s = oct_fail(err, OCT_EIO, "%s: %s", path, strerror(errno));
        if (r <= 0)
            break;
        n += (size_t)r;
        if (n > max) {
            s = oct_fail(err, OCT_EMALFORMED, "%s: longer than the %zu bytes allowed here", path, max);
            break;
        }
    }
    if (!in)
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

static void track_temp(const char *path, bool on)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; i++) {
        if (on && !temps[i].used && strlen(path) < sizeof temps[i].path) {
            strcpy(temps[i].path, path);
            temps[i].used = 1;
            break;
        }
        if (!on && temps[i].used && strcmp(temps[i].path, path) == 0) {
            temps[i].used = 0;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

oct_status oct_out_open(oct_out *o, const char *path, oct_err *err)
{
    *o = (oct_out){ .fd = -1 };
    o->path = dup_path(path);
    o->buf = oct_alloc(OUT_BUF);
    if (!o->path || !o->buf) {
        oct_out_abort(o);
        return oct_nomem(err);
    }
    if (strcmp(path, "-") == 0) {
        o->fd = 1;
        return OCT_OK;
    }
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        if (!S_ISDIR(st.st_mode)) { /* /dev/null, a pipe: written as it is */
            o->fd = open(path, O_WRONLY | O_CLOEXEC);
            if (o->fd >= 0)
                return OCT_OK;
        }
        oct_fail(err, OCT_EIO, "%s: %s", path, S_ISDIR(st.st_mode) ? "is a folder" : strerror(errno));
        oct_out_abort(o);
        return OCT_EIO;
    }
    size_t n = strlen(path) + 16;
    if (!(o->temp = oct_alloc(n))) {
        oct_out_abort(o);
        return oct_nomem(err);
    }
    snprintf(o->temp, n, "%s.XXXXXX", path);
    o->fd = mkostemp(o->temp, O_CLOEXEC);
    if (o->fd < 0) {
        oct_fail(err, OCT_EIO, "%s: cannot create: %s", path, strerror(errno));
        oct_free(o->temp);
        o->temp = NULL;
        oct_out_abort(o);
        return OCT_EIO;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(o->fd, 0666 & ~mask);
    track_temp(o->temp, true);
    return OCT_OK;
}

static void put(oct_out *o, const uint8_t *p, size_t n)
{
    while (n && !o->error) {
        ssize_t r = write(o->fd, p, n);
        if (r < 0) {
            if (errno != EINTR)
                o->error = errno;
            continue;
        }
        p += r;
        n -= (size_t)r;
    }
}

static void flush(oct_out *o)
{
    put(o, o->buf, o->used);
    o->used = 0;
}

void oct_out_write(oct_out *o, const void *p, size_t n)
{
    o->written += n;
    if (n >= OUT_BUF || n > OUT_BUF - o->used) {
        flush(o);
        if (n >= OUT_BUF) {
            put(o, p, n);
            return;
        }
    }
    if (n)
        memcpy(o->buf + o->used, p, n);
    o->used += n;
}

void oct_out_patch(oct_out *o, uint64_t at, const void *p, size_t n)
{
    flush(o);
    const uint8_t *b = p;
    while (n && !o->error) {
        ssize_t r = pwrite(o->fd, b, n, (off_t)at);
        if (r < 0) {
            if (errno != EINTR)
                o->error = errno;
            continue;
        }
        b += r;
        at += (uint64_t)r;
        n -= (size_t)r;
    }
}

oct_status oct_out_commit(oct_out *o, oct_err *err)
{
    flush(o);
    if (!o->error && o->temp) {
        if (fsync(o->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
            o->error = errno;
        if (!o->error && rename(o->temp, o->path) != 0)
            o->error = errno;
        if (!o->error) {
            track_temp(o->temp, false);
            oct_free(o->temp);
            o->temp = NULL;
        }
    }
    oct_status s = OCT_OK;
    if (o->error)
        s = oct_fail(err, OCT_EIO, "%s: cannot write: %s", o->path, strerror(o->error));
    oct_out_abort(o);
    return s;
}

void oct_out_abort(oct_out *o)
{
    if (o->fd > 1)
        close(o->fd);
    if (o->temp) {
        unlink(o->temp);
        track_temp(o->temp, false);
    }
    oct_free(o->temp);
    oct_free(o->path);
    oct_free(o->buf);
    *o = (oct_out){ .fd = -1 };
}

bool oct_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
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
