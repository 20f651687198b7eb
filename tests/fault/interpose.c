/* A library for LD_PRELOAD that makes one call of a program fail: the n-th of a class, counted from the start of main.
 *
 *   OCT_FAULT=CLASS:N:ACTION    the N-th call of CLASS fails; N+: that one and all that follow
 *   OCT_FAULT_LOG=FILE          to which a line `hit CLASS N` is appended when it does, and at the end of the process
 *                               a line `count CLASS CALLS` for every class
 *
 * Classes: alloc, open, read, write, sync, rename, mmap, close, trunc, stat, thread, and `any`, in which all but
 * allocations count. Actions: the name of an error (ENOSPC); `short` moves half of the bytes (read and write), `zero`
 * moves none; KILL, TERM and INT send the process that signal before the call, and ABRT shows a debugger the place.
 *
 * Allocations are those of all libraries of the process, the C library's own included. What the C library does by
 * itself without passing its own symbols (the file behind a FILE, the descriptor of a folder but for opendir) is out of
 * reach. The programs that the process starts are left alone: the variables are taken out of the environment. */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#undef _FORTIFY_SOURCE
#undef _POSIX_C_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum class { ALLOC, OPEN, READ, WRITE, SYNC, RENAME, MMAP, CLOSE, TRUNC, STAT, THREAD, ANY, CLASSES };
static const char *const class_name[CLASSES] = { "alloc", "open",  "read",  "write", "sync",   "rename",
                                                 "mmap",  "close", "trunc", "stat",  "thread", "any" };
enum { SHORT = 1000, ZERO, SIGNAL }; /* beyond the numbers of errors; SIGNAL + its number */

static const struct {
    const char *name;
    int action;
} actions[] = {
    { "EACCES", EACCES },
    { "EAGAIN", EAGAIN },
    { "EDQUOT", EDQUOT },
    { "EINTR", EINTR },
    { "EIO", EIO },
    { "EMFILE", EMFILE },
    { "ENFILE", ENFILE },
    { "ENOMEM", ENOMEM },
    { "ENOSPC", ENOSPC },
    { "EROFS", EROFS },
    { "short", SHORT },
    { "zero", ZERO },
    { "KILL", SIGNAL + SIGKILL },
    { "TERM", SIGNAL + SIGTERM },
    { "INT", SIGNAL + SIGINT },
    { "ABRT", SIGNAL + SIGABRT },
};

/* Set before main starts and not changed after; the counts are. Nothing here locks or allocates, so that any thread and
 * any signal handler may come through. */
static bool armed, chosen;
static enum class at_class;
static unsigned long at, count_of[CLASSES];
static bool onwards;
static int action;
static char log_path[4096];

static void log_line(const char *word, enum class c, unsigned long n)
{
    char line[80];
    size_t k = sizeof line;
    if (!*log_path)
        return;
    line[--k] = '\n';
    do
        line[--k] = (char)('0' + n % 10);
    while (n /= 10);
    line[--k] = ' ';
    k -= strlen(class_name[c]);
    memcpy(line + k, class_name[c], strlen(class_name[c]));
    line[--k] = ' ';
    k -= strlen(word);
    memcpy(line + k, word, strlen(word));
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    syscall(SYS_write, fd, line + k, sizeof line - k);
    syscall(SYS_close, fd);
}

/* Counts a call of class c; what is to be done to it, 0 for nothing. */
static int count(enum class c)
{
    const unsigned long n = __atomic_add_fetch(&count_of[c], 1, __ATOMIC_RELAXED);
    if (!chosen || c != at_class || (onwards ? n < at : n != at))
        return 0;
    const int saved = errno;
    if (n == at)
        log_line("hit", c, n);
    if (action > SIGNAL)
        raise(action - SIGNAL);
    errno = saved;
    return action > SIGNAL ? 0 : action;
}

static int strike(enum class c)
{
    if (!armed)
        return 0;
    const int all = c == ALLOC ? 0 : count(ANY), own = count(c);
    return own ? own : all;
}

/* Whether the call fails; errno says with what. Calls that move no bytes know no short ones. */
static bool fails(enum class c)
{
    const int a = strike(c);
    if (a == 0 || a >= SHORT)
        return false;
    errno = a;
    return true;
}

/* The same for calls that move *n bytes: fewer where they are to be cut. true: they end here with *r. */
static bool moves(enum class c, size_t *n, ssize_t *r)
{
    const int a = strike(c);
    if (a == SHORT && *n > 1)
        *n /= 2;
    if (a == 0 || a == SHORT)
        return false;
    *r = a == ZERO ? 0 : -1;
    if (a != ZERO)
        errno = a;
    return true;
}

/* ------------------------------------------------------------------ the functions behind */

/* What programs built with _FORTIFY_SOURCE call. */
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
/* The C library's allocator by names that nobody takes over: dlsym itself allocates. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* clang-format off */
#define CALLS(X)                                                                                                              \
    X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2) X(opendir)                 \
    X(read) X(pread) X(pread64) X(__read_chk) X(__pread_chk) X(__pread64_chk) X(write) X(pwrite) X(pwrite64)                   \
    X(fsync) X(fdatasync) X(rename) X(renameat) X(link) X(linkat) X(mmap) X(mmap64) X(close)                                   \
    X(ftruncate) X(ftruncate64) X(fallocate) X(fallocate64) X(posix_fallocate) X(posix_fallocate64)                           \
    X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64)                                         \
    X(mkstemp) X(mkstemp64) X(mkostemp) X(mkostemp64) X(pthread_create)
/* clang-format on */

#define NUMBER(name) REAL_##name,
#define NAME(name) #name,
enum { CALLS(NUMBER) REALS };
static const char *const real_name[REALS] = { CALLS(NAME) };
static void *real_of[REALS];

/* All are known when main starts; before that there is one thread. */
static void *find(int i)
{
    return real_of[i] ? real_of[i] : (real_of[i] = dlsym(RTLD_NEXT, real_name[i]));
}

static void find_all(void)
{
    for (int i = 0; i < REALS; i++)
        find(i);
}

#define REAL(name) ((__typeof__(&name))find(REAL_##name))

/* ------------------------------------------------------------------ start and end */

static void start(void)
{
    const char *what = getenv("OCT_FAULT"), *log = getenv("OCT_FAULT_LOG");
    char class[16], name[16];
    if (log)
        snprintf(log_path, sizeof log_path, "%s", log);
    if (what) {
        char plus = 0;
        const bool read = sscanf(what, "%15[a-z]:%lu%c", class, &at, &plus) == 3 && strrchr(what, ':');
        onwards = plus == '+';
        snprintf(name, sizeof name, "%s", read ? strrchr(what, ':') + 1 : "");
        for (int i = 0; i < CLASSES; i++)
            if (strcmp(class, class_name[i]) == 0)
                at_class = (enum class)i, chosen = true;
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
            if (strcmp(name, actions[i].name) == 0)
                action = actions[i].action;
        if (!read || !chosen || !action) {
            fprintf(stderr, "interpose: OCT_FAULT='%s' is not CLASS:N:ACTION\n", what);
            _exit(125);
        }
    }
    unsetenv("LD_PRELOAD");
    unsetenv("OCT_FAULT");
    unsetenv("OCT_FAULT_LOG");
}

__attribute__((destructor)) static void end(void)
{
    armed = false;
    for (int i = 0; i < CLASSES; i++)
        log_line("count", (enum class)i, count_of[i]);
}

static int (*program)(int, char **, char **);

static int begin(int argc, char **argv, char **env)
{
    start();
    find_all();
    armed = true;
    return program(argc, argv, environ);
}

int __libc_start_main(int (*f)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *);

int __libc_start_main(int (*f)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader)(void), void *stack)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    program = f;
    return real(begin, argc, argv, init, fini, loader, stack);
}

/* ------------------------------------------------------------------ memory */

void *malloc(size_t n)
{
    return fails(ALLOC) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(ALLOC) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails(ALLOC) ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n)
{
    return fails(ALLOC) ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return fails(ALLOC) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    const int saved = errno;
    void *q = fails(ALLOC) ? NULL : __libc_memalign(align, n);
    errno = saved; /* the error is what it returns */
    if (!q)
        return ENOMEM;
    *p = q;
    return 0;
}

/* ------------------------------------------------------------------ files */

#define OPENS(name)                                                                 \
    int name(const char *path, int flags, ...)                                      \
    {                                                                               \
        va_list ap;                                                                 \
        va_start(ap, flags);                                                        \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
        va_end(ap);                                                                 \
        return fails(OPEN) ? -1 : REAL(name)(path, flags, mode);                    \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                              \
    int name(int fd, const char *path, int flags, ...)                              \
    {                                                                               \
        va_list ap;                                                                 \
        va_start(ap, flags);                                                        \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
        va_end(ap);                                                                 \
        return fails(OPEN) ? -1 : REAL(name)(fd, path, flags, mode);                \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

/* A function whose call fails with what `bad` is. */
#define WRAP(class, type, bad, name, params, args)   \
    type name params                                 \
    {                                                \
        return fails(class) ? bad : REAL(name) args; \
    }
WRAP(OPEN, int, -1, __open_2, (const char *path, int flags), (path, flags))
WRAP(OPEN, int, -1, __open64_2, (const char *path, int flags), (path, flags))
WRAP(OPEN, int, -1, __openat_2, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(OPEN, int, -1, __openat64_2, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(OPEN, DIR *, NULL, opendir, (const char *path), (path))
WRAP(SYNC, int, -1, fsync, (int fd), (fd))
WRAP(SYNC, int, -1, fdatasync, (int fd), (fd))
WRAP(RENAME, int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(RENAME, int, -1, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(RENAME, int, -1, link, (const char *from, const char *to), (from, to))
WRAP(RENAME, int, -1, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
WRAP(MMAP, void *, MAP_FAILED, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t o),
     (p, n, prot, flags, fd, o))
WRAP(MMAP, void *, MAP_FAILED, mmap64, (void *p, size_t n, int prot, int flags, int fd, off64_t o),
     (p, n, prot, flags, fd, o))
WRAP(TRUNC, int, -1, ftruncate, (int fd, off_t n), (fd, n))
WRAP(TRUNC, int, -1, ftruncate64, (int fd, off64_t n), (fd, n))
WRAP(TRUNC, int, -1, fallocate, (int fd, int mode, off_t o, off_t n), (fd, mode, o, n))
WRAP(TRUNC, int, -1, fallocate64, (int fd, int mode, off64_t o, off64_t n), (fd, mode, o, n))
WRAP(TRUNC, int, errno, posix_fallocate, (int fd, off_t o, off_t n), (fd, o, n))
WRAP(TRUNC, int, errno, posix_fallocate64, (int fd, off64_t o, off64_t n), (fd, o, n))
WRAP(STAT, int, -1, stat, (const char *path, struct stat *st), (path, st))
WRAP(STAT, int, -1, stat64, (const char *path, struct stat64 *st), (path, st))
WRAP(STAT, int, -1, lstat, (const char *path, struct stat *st), (path, st))
WRAP(STAT, int, -1, lstat64, (const char *path, struct stat64 *st), (path, st))
WRAP(STAT, int, -1, fstat, (int fd, struct stat *st), (fd, st))
WRAP(STAT, int, -1, fstat64, (int fd, struct stat64 *st), (fd, st))
WRAP(STAT, int, -1, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags))
WRAP(STAT, int, -1, fstatat64, (int fd, const char *path, struct stat64 *st, int flags), (fd, path, st, flags))
WRAP(OPEN, int, -1, mkstemp, (char *path), (path))
WRAP(OPEN, int, -1, mkstemp64, (char *path), (path))
WRAP(OPEN, int, -1, mkostemp, (char *path, int flags), (path, flags))
WRAP(OPEN, int, -1, mkostemp64, (char *path, int flags), (path, flags))
WRAP(THREAD, int, errno, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *arg),
     (t, a, f, arg))

/* As Linux has it, a close that fails has closed. */
int close(int fd)
{
    const bool bad = fails(CLOSE);
    const int e = errno, r = REAL(close)(fd);
    if (bad)
        errno = e;
    return bad ? -1 : r;
}

#define WRAP_MOVE(class, name, params, args)               \
    ssize_t name params                                    \
    {                                                      \
        ssize_t r;                                         \
        return moves(class, &n, &r) ? r : REAL(name) args; \
    }
WRAP_MOVE(READ, read, (int fd, void *p, size_t n), (fd, p, n))
WRAP_MOVE(READ, pread, (int fd, void *p, size_t n, off_t o), (fd, p, n, o))
WRAP_MOVE(READ, pread64, (int fd, void *p, size_t n, off64_t o), (fd, p, n, o))
WRAP_MOVE(READ, __read_chk, (int fd, void *p, size_t n, size_t room), (fd, p, n, room))
WRAP_MOVE(READ, __pread_chk, (int fd, void *p, size_t n, off_t o, size_t room), (fd, p, n, o, room))
WRAP_MOVE(READ, __pread64_chk, (int fd, void *p, size_t n, off64_t o, size_t room), (fd, p, n, o, room))
WRAP_MOVE(WRITE, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP_MOVE(WRITE, pwrite, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o))
WRAP_MOVE(WRITE, pwrite64, (int fd, const void *p, size_t n, off64_t o), (fd, p, n, o))
