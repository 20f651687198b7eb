/* lib/base/io_guard.c -- signal handlers: truncated files, and removal of temporary files. */
#define _GNU_SOURCE
#include "base/guard.h"
#include "base/io.h"
#include "base/io_int.h"

#include "base/fork.h"
#include "base/marked.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct oct_mapped {
    oct_mapped *next, *next_unused;
    _Atomic(const uint8_t *) data; /* NULL: not in use */
    size_t size;
    char *path;
};

struct oct_doomed {
    oct_doomed *next, *next_unused;
    atomic_bool on;
    int folder;
    bool tree; /* a folder, with all that is in it */
    char name[256];
};

typedef struct group {
    struct group *next;
    _Atomic(pid_t) leader; /* 0: not in use */
    char mark[OCT_MARK_TEXT];
} group;

/* OCT_LOCK_FILES is of those who change the lists; handlers only read. */
static _Atomic(oct_mapped *) all_mapped;
static _Atomic(oct_doomed *) all_doomed;
static _Atomic(group *) all_groups;
static atomic_int beginning; /* commands that start just now */
static oct_mapped *unused_mapped;
static oct_doomed *unused_doomed;
static char tool_name[32] = "octet";

oct_mapped *oct_mapped_add(const uint8_t *data, size_t size, const char *path)
{
    char *copy = oct_strdup(path);
    if (!copy)
        return NULL;
    oct_lock(OCT_LOCK_FILES);
    oct_mapped *m = unused_mapped;
    if (m) {
        unused_mapped = m->next_unused;
    } else if ((m = oct_calloc(1, sizeof *m))) {
        m->next = all_mapped;
        all_mapped = m;
    }
    if (m) {
        m->path = copy;
        m->size = size;
        m->data = data;
    }
    oct_unlock(OCT_LOCK_FILES);
    if (!m)
        oct_free(copy);
    return m;
}

void oct_mapped_remove(oct_mapped *m)
{
    if (!m)
        return;
    oct_lock(OCT_LOCK_FILES);
    m->data = NULL;
    oct_free(m->path);
    m->next_unused = unused_mapped;
    unused_mapped = m;
    oct_unlock(OCT_LOCK_FILES);
}

void oct_map_forget(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p;
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + n) / page * page;
    bool mapped = false;
    if (begin >= end)
        return;
    oct_lock(OCT_LOCK_FILES);
    for (const oct_mapped *m = atomic_load(&all_mapped); m && !mapped; m = m->next) {
        const uint8_t *data = atomic_load(&m->data);
        mapped = data && at >= (uintptr_t)data && n <= m->size && at - (uintptr_t)data <= m->size - n;
    }
    if (mapped)
        madvise((void *)begin, end - begin, MADV_DONTNEED); /* the pages are clean: nothing is lost */
    oct_unlock(OCT_LOCK_FILES);
}

static oct_doomed *doom(int folder, const char *name, bool tree)
{
    oct_lock(OCT_LOCK_FILES);
    oct_doomed *d = unused_doomed;
    if (d) {
        unused_doomed = d->next_unused;
    } else if ((d = oct_calloc(1, sizeof *d))) {
        d->next = all_doomed;
        all_doomed = d;
    }
    if (d) {
        d->folder = folder;
        d->tree = tree;
        snprintf(d->name, sizeof d->name, "%s", name);
        d->on = true;
    }
    oct_unlock(OCT_LOCK_FILES);
    return d;
}

oct_doomed *oct_doom(int folder, const char *name)
{
    return doom(folder, name, false);
}

void oct_spare(oct_doomed *d)
{
    if (!d)
        return;
    oct_lock(OCT_LOCK_FILES);
    d->on = false;
    d->next_unused = unused_doomed;
    unused_doomed = d;
    oct_unlock(OCT_LOCK_FILES);
}

oct_doomed *oct_guard_tree(int folder, const char *name)
{
    return doom(folder, name, true);
}

void oct_guard_tree_ended(oct_doomed *d)
{
    oct_spare(d);
}

/* ---- commands ---- */

void oct_guard_begin(sigset_t *before)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stops, before);
    beginning++;
}

void oct_guard_end(const sigset_t *before)
{
    beginning--;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static group *find_group(pid_t leader)
{
    for (group *g = all_groups; g; g = g->next)
        if (g->leader == leader)
            return g;
    return NULL;
}

bool oct_guard_group(pid_t leader, const char *mark)
{
    oct_lock(OCT_LOCK_FILES);
    group *g = find_group(0);
    if (!g && (g = oct_calloc(1, sizeof *g))) {
        g->next = all_groups;
        all_groups = g;
    }
    if (g) {
        snprintf(g->mark, sizeof g->mark, "%s", mark);
        g->leader = leader;
    }
    oct_unlock(OCT_LOCK_FILES);
    return g;
}

void oct_guard_group_ended(pid_t leader)
{
    oct_lock(OCT_LOCK_FILES);
    group *g = find_group(leader);
    if (g)
        g->leader = 0;
    oct_unlock(OCT_LOCK_FILES);
}

static bool signal_group(pid_t leader, int sig)
{
    return kill(-leader, sig) == 0 || kill(leader, sig) == 0;
}

void oct_guard_signal(pid_t leader, int sig)
{
    char mark[OCT_MARK_TEXT] = "";
    oct_lock(OCT_LOCK_FILES);
    const group *g = find_group(leader);
    if (g)
        memcpy(mark, g->mark, sizeof mark);
    oct_unlock(OCT_LOCK_FILES);
    signal_group(leader, sig);
    oct_marked_signal(mark, sig);
}

/* ---- in handlers ---- */

static void nap(long milliseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000 }, NULL);
}

static bool signal_groups(int sig)
{
    bool any = false;
    for (const group *g = all_groups; g; g = g->next) {
        const pid_t leader = g->leader;
        any |= leader > 0 && signal_group(leader, sig);
    }
    return any | (all_groups && oct_marked_signal(oct_mark_common(), sig));
}

/* Commands get a moment to remove what they have made. */
static void end_groups(void)
{
    enum { MOST_NAPS = 500, GRACE = 100 };
    for (int i = 0; beginning && i < MOST_NAPS; i++)
        nap(1);
    if (signal_groups(SIGTERM)) {
        nap(GRACE);
        signal_groups(SIGKILL);
    }
}

static void say(const char *s)
{
    ssize_t r = write(2, s, strlen(s));
    (void)r;
}

/* A path may hold anything. */
static void say_path(const char *path)
{
    char one[12];
    while (*path) {
        path += oct_char_clean(one, path, false);
        say(one);
    }
}

static const char *volatile farewell; /* see oct_io_farewell */

void oct_io_farewell(const char *text)
{
    farewell = text;
}

static void say_farewell(void)
{
    const char *text = farewell;
    if (text)
        say(text);
}

static bool remove_tree(int folder, const char *path, int level)
{
    enum { MOST_LEVELS = 32, BLOCK = 1 << 10 };
    _Alignas(oct_dirent) char block[BLOCK];
    if (unlinkat(folder, path, 0) == 0 || unlinkat(folder, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    const int fd = level < MOST_LEVELS ? openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    long n;
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, block, sizeof block)) > 0)
        for (long at = 0; at < n; at += ((oct_dirent *)(void *)(block + at))->size) {
            const char *name = ((oct_dirent *)(void *)(block + at))->name;
            if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
                remove_tree(fd, name, level + 1);
        }
    if (fd >= 0)
        close(fd);
    return unlinkat(folder, path, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool oct_tree_remove(int folder, const char *path)
{
    return remove_tree(folder, path, 0);
}

static bool remove_once(void)
{
    bool gone = true;
    for (const oct_doomed *d = all_doomed; d; d = d->next)
        if (d->on && !d->tree)
            unlinkat(d->folder, d->name, 0);
        else if (d->on)
            gone &= oct_tree_remove(d->folder, d->name) || (errno != ENOTEMPTY && errno != EEXIST);
    return gone;
}

/* Other threads go on while a handler removes: a file that one has just made, or renamed to a name that was looked at
 * before, takes another turn. */
static void remove_doomed(void)
{
    enum { TURNS = 100 };
    const struct timespec while_they_write = { .tv_nsec = 2000000 };
    end_groups();
    for (int i = 0; i < TURNS && !remove_once(); i++)
        nanosleep(&while_they_write, NULL);
}

/* Several threads may hit the end of a file at once: the first prints the message and ends the process, the others
 * wait. */
static void be_the_first(void)
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ending))
        pause();
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    for (const oct_mapped *m = all_mapped; m; m = m->next) {
        const uint8_t *data = m->data;
        if (data && at >= data && at < data + m->size) {
            be_the_first();
            say_farewell();
            say(tool_name);
            say(": ");
            say_path(m->path);
            say(": the file was cut short while it was read\n");
            remove_doomed();
            _exit(OCT_EIO);
        }
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_stop(int sig)
{
    say_farewell();
    remove_doomed();
    signal(sig, SIG_DFL);
    raise(sig);
}

static _Thread_local bool foreign;

void oct_io_foreign(bool inside)
{
    foreign = inside;
}

static void on_exit_inside(void)
{
    if (!foreign)
        return;
    say_farewell();
    say(tool_name);
    say(": out of memory\n");
    remove_doomed();
    _exit(OCT_ENOMEM);
}

void oct_io_guard(const char *tool)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    snprintf(tool_name, sizeof tool_name, "%s", tool);
    struct sigaction bus = { 0 }, stop = { 0 }, before;
    bus.sa_sigaction = on_bus;
    bus.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &bus, NULL);
    stop.sa_handler = on_stop;
    for (size_t i = 0; i < OCT_COUNT(stops); i++)
        if (sigaction(stops[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as nohup asks for */
            sigaction(stops[i], &stop, NULL);
    /* Broken pipes and limits of file sizes become errors of write, which are reported. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    atexit(on_exit_inside);
}
