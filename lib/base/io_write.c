/* lib/base/io_write.c -- output files: their destination, their temporary form, and the final rename. */
#define _GNU_SOURCE
#include "base/io.h"
#include "base/io_int.h"

#include "base/mem.h"
#include "base/stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OUT_BUF = 1 << 16, MOST_LINKS = 40, NAME_KEPT = 100, SUFFIX = 6, MOST_ENTRIES = 1 << 17 };

/* Beside the file that is replaced: its folder, its own name there, and the temporary one. */
struct oct_out_file {
    int folder;
    char name[256], temp[256]; /* temp "": the file has no name yet */
    oct_doomed *doomed;
};

/* ---- where an output goes ---- */

/* One step along a symbolic link; 1: there was none. */
static int follow(oct_place *p)
{
    char link[PATH_MAX];
    const ssize_t n = readlink(p->path, link, sizeof link);
    if (n < 0)
        return errno == EINVAL || errno == ENOENT ? 1 : -1; /* the target of a dangling link is what gets made */
    const size_t keep = link[0] == '/' ? 0 : p->folder;
    if (keep + (size_t)n >= sizeof p->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(p->path + keep, link, (size_t)n);
    p->path[keep + (size_t)n] = 0;
    return 0;
}

static int find_place(oct_place *p, const char *path)
{
    if (strlen(path) >= sizeof p->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(p->path, path);
    for (int hops = 0; hops <= MOST_LINKS; hops++) {
        const char *slash = strrchr(p->path, '/');
        p->folder = slash ? (size_t)(slash - p->path) + 1 : 0;
        if ((p->fd = oct_path_fd(p->path)) >= 0)
            return 0;
        const int r = follow(p);
        if (r)
            return r < 0 ? -1 : 0;
    }
    errno = ELOOP;
    return -1;
}

oct_status oct_place_find(oct_place *p, const char *path, oct_err *err)
{
    struct stat st;
    *p = (oct_place){ .fd = -1 };
    if (strcmp(path, "-") == 0)
        p->fd = 1;
    else if (find_place(p, path) != 0)
        return oct_fail_errno(err, "%.500s", path);
    p->stream = p->fd >= 0;
    if (p->stream)
        return OCT_OK;
    const bool there = stat(path, &st) == 0;
    if (there ? S_ISDIR(st.st_mode) : !p->path[p->folder]) {
        oct_fail(err, OCT_EIO, "%s: %s", path, strerror(EISDIR));
        if (there)
            oct_hint(err, "name a file in it: %.300s%sNAME", path, path[strlen(path) - 1] == '/' ? "" : "/");
        return OCT_EIO;
    }
    if (there && S_ISSOCK(st.st_mode))
        return oct_fail(err, OCT_EIO, "%s: this is a socket, which has no name to write to", path);
    if (strlen(p->path + p->folder) > NAME_MAX)
        return oct_fail(err, OCT_EIO, "%.500s: %s", path, strerror(ENAMETOOLONG));
    p->stream = there && !S_ISREG(st.st_mode);
    return OCT_OK;
}

bool oct_path_is_stream(const char *path)
{
    oct_place p;
    return oct_place_find(&p, path, NULL) == OCT_OK && p.stream;
}

/* The place's folder as a path; "." for the current one. */
static const char *folder_path(const oct_place *p, char folder[PATH_MAX])
{
    memcpy(folder, p->folder ? p->path : ".", p->folder ? p->folder : 1);
    folder[p->folder ? p->folder : 1] = 0;
    return folder;
}

/* A word that a shell leaves as it is. */
static bool is_plain_word(const char *s)
{
    return *s != '-' && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+,:@%")] == '\0';
}

oct_status oct_place_fail(const oct_place *p, const char *path, oct_err *err)
{
    struct stat st;
    char folder[PATH_MAX];
    const int e = errno;
    size_t n = strlen(folder_path(p, folder));
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    if (e != ENOENT || stat(folder, &st) == 0) {
        errno = e;
        const oct_status s = oct_fail_errno(err, "%s: cannot write to its folder", path);
        if (e == EACCES || e == EROFS || e == EPERM)
            oct_hint(err, "name a place where you may write");
        return s;
    }
    oct_fail(err, OCT_EIO, "%s: there is no folder %s", path, folder);
    if (is_plain_word(folder))
        oct_hint(err, "make it first: mkdir -p %s", folder);
    else
        oct_hint(err, "make it first");
    return OCT_EIO;
}

bool oct_same_output(const char *a, const char *b)
{
    oct_place p, q;
    if (oct_place_find(&p, a, NULL) != OCT_OK || oct_place_find(&q, b, NULL) != OCT_OK)
        return false;
    if (p.stream || q.stream)
        return p.fd >= 0 ? p.fd == q.fd : q.fd < 0 && oct_same_file(p.path, q.path);
    char f[PATH_MAX], g[PATH_MAX];
    return oct_same_file(p.path, q.path) ||
           (strcmp(p.path + p.folder, q.path + q.folder) == 0 && oct_same_file(folder_path(&p, f), folder_path(&q, g)));
}

/* ---- temporary files ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";

static void temp_name(char temp[256], const char *name)
{
    static atomic_uint counter;
    struct timespec t;
    const unsigned n = atomic_fetch_add(&counter, 1);
    const pid_t pid = getpid();
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t h = oct_hash(OCT_HASH_INIT, &n, sizeof n);
    h = oct_hash(oct_hash(h, &pid, sizeof pid), &t, sizeof t);
    const int at = *name ? snprintf(temp, 256, ".%.*s.octet-", NAME_KEPT, name) : snprintf(temp, 256, ".octet-");
    for (int i = 0; i < SUFFIX; i++, h >>= 5)
        temp[at + i] = letters[h >> 20 & 31];
    temp[at + SUFFIX] = 0;
}

static bool is_temp_name(const char *name)
{
    static const char mark[] = ".octet-";
    const size_t n = strlen(name), tail = sizeof mark - 1 + SUFFIX;
    return name[0] == '.' && n >= tail && memcmp(name + n - tail, mark, sizeof mark - 1) == 0 &&
           strspn(name + n - SUFFIX, letters) == SUFFIX;
}

/* Creates a file with a new name in the folder, or gives the open file fd a name, which is written to temp; -1: errno.
 */
static int name_temp(int folder, const char *name, int fd, mode_t mode, char temp[256], oct_doomed **doomed)
{
    for (int tries = 0; tries < 100; tries++) {
        char from[32];
        temp_name(temp, name);
        if (!(*doomed = oct_doom(folder, temp))) { /* before it is there: a signal may come in between */
            errno = ENOMEM;
            return -1;
        }
        snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        const int r = fd < 0 ? openat(folder, temp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode)
                      : linkat(AT_FDCWD, from, folder, temp, AT_SYMLINK_FOLLOW) == 0 ? fd
                                                                                     : -1;
        if (r >= 0)
            return r;
        const int e = errno;
        oct_spare(*doomed);
        *doomed = NULL;
        errno = e;
        if (e != EEXIST && e != EINTR)
            break;
    }
    temp[0] = 0;
    return -1;
}

/* Creates a file without a name, which disappears if the process ends. -1 if the file system does not support this, or
 * if it could not be given a name later. */
static int open_nameless(int folder, mode_t mode)
{
    char path[32];
    const int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || access(path, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

int oct_file_nameless(const char *beside)
{
    oct_place p;
    char folder[PATH_MAX], temp[256];
    const char *shared = getenv("TMPDIR");
    if (oct_place_find(&p, beside, NULL) != OCT_OK || p.stream)
        snprintf(folder, sizeof folder, "%s", shared && *shared ? shared : "/tmp");
    else
        folder_path(&p, folder);
    const int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    oct_doomed *doomed = NULL;
    int fd = open_nameless(dir, 0600);
    if (fd < 0 && (fd = name_temp(dir, "", -1, 0600, temp, &doomed)) >= 0)
        unlinkat(dir, temp, 0);
    const int e = errno;
    oct_spare(doomed);
    close(dir);
    errno = e;
    return fd;
}

/* ---- what killed runs left ---- */

static void (*tell_leftover)(void *arg, const char *path);
static void *tell_arg;

void oct_out_on_leftover(void (*found)(void *arg, const char *path), void *arg)
{
    tell_leftover = found;
    tell_arg = arg;
}

/* A run that still writes holds a lock on its file. */
static bool is_abandoned(int folder, const char *name)
{
    struct stat st;
    const int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    const bool yes = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return yes;
}

/* Once for each folder: its entries may be many. */
static bool is_looked_through(int folder)
{
    static struct {
        dev_t dev;
        ino_t ino;
    } seen[16];
    static size_t n;
    struct stat st;
    if (fstat(folder, &st) != 0 || n == OCT_COUNT(seen))
        return true;
    for (size_t i = 0; i < n; i++)
        if (seen[i].dev == st.st_dev && seen[i].ino == st.st_ino)
            return true;
    seen[n].dev = st.st_dev;
    seen[n++].ino = st.st_ino;
    return false;
}

static void look_for_leftovers(int folder, const oct_place *p)
{
    if (!tell_leftover || is_looked_through(folder))
        return;
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    const struct dirent *e;
    for (int i = 0; d && i < MOST_ENTRIES && (e = readdir(d)); i++)
        if (is_temp_name(e->d_name) && is_abandoned(folder, e->d_name)) {
            char path[PATH_MAX + 256];
            snprintf(path, sizeof path, "%.*s%s", (int)p->folder, p->path, e->d_name);
            tell_leftover(tell_arg, path);
        }
    if (d)
        closedir(d);
}

/* ---- opening ---- */

/* Gives the new file the permissions of the old one. If its group cannot be kept, the group's permissions are
 * dropped. */
static void keep_rights(int fd, const struct stat *old)
{
    struct stat st;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &st) == 0 && (st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)070 | (mode & 07) << 3;
    fchmod(fd, mode);
}

static int open_temp(oct_out *o, const oct_place *p)
{
    struct stat old;
    char folder[PATH_MAX];
    struct oct_out_file *f = o->file = oct_calloc(1, sizeof *f);
    if (!f) {
        errno = ENOMEM;
        return -1;
    }
    f->folder = -1;
    strcpy(f->name, p->path + p->folder);
    if ((f->folder = open(folder_path(p, folder), O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    look_for_leftovers(f->folder, p);
    const bool there = fstatat(f->folder, f->name, &old, 0) == 0;
    const mode_t mode = there ? old.st_mode & 0666 : 0666;
    if ((o->fd = open_nameless(f->folder, mode)) < 0)
        o->fd = name_temp(f->folder, f->name, -1, mode, f->temp, &f->doomed);
    if (o->fd < 0)
        return -1;
    flock(o->fd, LOCK_EX | LOCK_NB);
    if (there)
        keep_rights(o->fd, &old);
    return 0;
}

/* Descriptors are duplicated, so that they end as any other file does. */
static int open_stream(oct_out *o, const oct_place *p)
{
    if (p->fd >= 0) {
        if (oct_io_was_closed(p->fd))
            errno = EBADF;
        else
            o->fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
        return o->fd < 0 ? -1 : 0;
    }
    do
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    while (o->fd < 0 && errno == EINTR);
    return o->fd < 0 ? -1 : 0;
}

oct_status oct_out_open(oct_out *o, const char *path, oct_err *err)
{
    oct_place p;
    *o = (oct_out){ .fd = -1 };
    OCT_TRY(oct_place_find(&p, path, err));
    o->path = oct_strdup(path);
    o->buf = oct_alloc(OUT_BUF);
    if (!o->path || !o->buf) {
        oct_out_abort(o);
        return oct_nomem(err);
    }
    if ((p.stream ? open_stream(o, &p) : open_temp(o, &p)) == 0)
        return OCT_OK;
    oct_status s = p.stream ? oct_fail_errno(err, "%s: cannot write", path) : oct_place_fail(&p, path, err);
    oct_out_abort(o);
    return s;
}

/* ---- writing ---- */

static void put(oct_out *o, const uint8_t *p, size_t n)
{
    while (n && !o->error) {
        ssize_t r = write(o->fd, p, n);
        if (r > 0) {
            p += r;
            n -= (size_t)r;
        } else if (r == 0) {
            o->error = EIO;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){ .fd = o->fd, .events = POLLOUT }, 1, -1);
        } else if (errno != EINTR) {
            o->error = errno;
        }
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

/* ---- the end ---- */

static oct_status failed(const oct_out *o, oct_err *err)
{
    errno = o->error;
    return o->error ? oct_fail_errno(err, "%s: cannot write", o->path) : OCT_OK;
}

/* Some file systems report an error only in close. Closing a duplicate reveals it while the file can still be
 * discarded. */
static int close_duplicate(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy >= 0 && close(copy) != 0 && errno != EINTR ? -1 : 0;
}

static int sync_file(int fd)
{
    int r;
    do
        r = fsync(fd);
    while (r != 0 && errno == EINTR);
    return r != 0 && errno != EINVAL && errno != ENOTSUP ? -1 : 0;
}

oct_status oct_out_seal(oct_out *o, oct_err *err)
{
    if (o->sealed)
        return failed(o, err);
    o->sealed = true;
    flush(o);
    if (!o->error && o->file && sync_file(o->fd) != 0)
        o->error = errno;
    if (!o->error && close_duplicate(o->fd) != 0)
        o->error = errno;
    return failed(o, err);
}

oct_status oct_out_map(const oct_out *o, oct_map *m, oct_err *err)
{
    return oct_map_fd(m, o->fd, o->path, err);
}

/* The moment at which the output is there. */
static bool rename_temp(oct_out *o)
{
    struct oct_out_file *f = o->file;
    int r = f->temp[0] ? 0 : name_temp(f->folder, f->name, o->fd, 0, f->temp, &f->doomed);
    if (r >= 0)
        do
            r = renameat(f->folder, f->temp, f->folder, f->name);
        while (r != 0 && errno == EINTR);
    if (r < 0) {
        o->error = errno;
        return false;
    }
    f->temp[0] = 0;
    oct_spare(f->doomed);
    f->doomed = NULL;
    return true;
}

/* A rename survives a power failure only if the folder is synced, which needs permission to read the folder. */
static void sync_folder(oct_out *o)
{
    const int fd = openat(o->file->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (sync_file(fd) != 0)
        o->error = errno;
    close(fd);
}

oct_status oct_out_commit(oct_out *o, oct_err *err)
{
    oct_status s = oct_out_seal(o, err);
    if (s == OCT_OK)
        s = oct_stop_check(err);
    if (s == OCT_OK && o->file) {
        if (rename_temp(o))
            sync_folder(o);
        s = failed(o, err);
    }
    oct_out_abort(o);
    return s;
}

/* Both files are complete. A signal between the two renames may leave the part without the main file, but never the
 * reverse. */
static oct_status rename_both(oct_out *part, oct_out *o, oct_err *err)
{
    struct oct_out_file *f = part->file;
    const bool was_there = faccessat(f->folder, f->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    oct_doomed *doomed = was_there ? NULL : oct_doom(f->folder, f->name);
    if (!was_there && !doomed)
        return oct_nomem(err);
    const bool made = rename_temp(part);
    if (made)
        sync_folder(part);
    oct_spare(doomed);
    const bool done = !part->error && rename_temp(o);
    if (done)
        sync_folder(o);
    else if (made && !was_there)
        unlinkat(f->folder, f->name, 0);
    return part->error ? failed(part, err) : failed(o, err);
}

oct_status oct_out_commit_both(oct_out *part, oct_out *o, oct_err *err)
{
    oct_status s = oct_out_seal(part, err);
    if (s == OCT_OK)
        s = oct_out_seal(o, err);
    if (s == OCT_OK)
        s = oct_stop_check(err);
    if (s == OCT_OK)
        s = rename_both(part, o, err);
    oct_out_abort(part);
    oct_out_abort(o);
    return s;
}

void oct_out_abort(oct_out *o)
{
    struct oct_out_file *f = o->file;
    if (f && f->temp[0])
        unlinkat(f->folder, f->temp, 0);
    if (f) {
        oct_spare(f->doomed);
        if (f->folder >= 0)
            close(f->folder);
    }
    if (o->fd >= 0)
        close(o->fd);
    oct_free(f);
    oct_free(o->path);
    oct_free(o->buf);
    *o = (oct_out){ .fd = -1 };
}
