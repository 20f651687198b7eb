/* Finds the processes that commands of the user have started, by a mark in their environment. */
#define _GNU_SOURCE
#include "base/marked.h"

#include "base/io.h"
#include "base/io_int.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 12, MOST_BLOCKS = 1 << 11, ROUNDS = 50 };

static atomic_uint made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char common[64]; /* written before the first command starts */
static pid_t common_of;

/* A later process with the same number has other marks, because it was started at another time. */
void oct_mark_make(char mark[OCT_MARK_TEXT])
{
    pthread_mutex_lock(&lock);
    if (common_of != getpid()) {
        snprintf(common, sizeof common, OCT_MARK_NAME "%ld.%.0f.", (long)getpid(), oct_now() * 1e6);
        common_of = getpid();
    }
    snprintf(mark, OCT_MARK_TEXT, "%s%u.", common, atomic_fetch_add(&made, 1));
    pthread_mutex_unlock(&lock);
}

const char *oct_mark_common(void)
{
    return common;
}

/* /proc/PID/environ holds entries that end in NUL. */
static bool has_mark(int proc, const char *pid, const char *mark)
{
    char path[32], block[BLOCK];
    snprintf(path, sizeof path, "%.16s/environ", pid);
    const int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    bool found = false, fits = true;
    size_t at = 0;
    ssize_t n = 0;
    for (int i = 0; fd >= 0 && !found && i < MOST_BLOCKS && (n = read(fd, block, sizeof block)) > 0; i++)
        for (ssize_t k = 0; k < n && !found; k++) {
            if (!block[k]) {
                at = 0;
                fits = true;
                continue;
            }
            fits = fits && block[k] == mark[at];
            at += fits;
            found = fits && !mark[at];
        }
    if (fd >= 0)
        close(fd);
    return found;
}

/* The /proc of another namespace has other numbers. */
static int open_proc(void)
{
    char self[16];
    const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return -1;
    const ssize_t n = readlinkat(proc, "self", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (atol(self) == (long)getpid())
        return proc;
    close(proc);
    return -1;
}

static bool signal_once(const char *mark, int sig)
{
    _Alignas(oct_dirent) char block[BLOCK];
    const int proc = open_proc();
    bool any = false;
    long n;
    while (proc >= 0 && (n = syscall(SYS_getdents64, proc, block, sizeof block)) > 0)
        for (long at = 0; at < n; at += ((oct_dirent *)(void *)(block + at))->size) {
            const char *name = ((oct_dirent *)(void *)(block + at))->name;
            const long pid = *name >= '1' && *name <= '9' ? atol(name) : 0;
            if (pid && pid != (long)getpid() && has_mark(proc, name, mark))
                any |= kill((pid_t)pid, sig) == 0;
        }
    if (proc >= 0)
        close(proc);
    return any;
}

/* While one is looked for, it may start another. */
bool oct_marked_signal(const char *mark, int sig)
{
    const bool any = *mark && signal_once(mark, sig);
    bool more = any && sig == SIGKILL;
    for (int i = 0; more && i < ROUNDS; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        more = signal_once(mark, sig);
    }
    return any;
}
