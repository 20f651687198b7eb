#define _GNU_SOURCE
/* lib/data/readers/shell.c -- a command of the user in /bin/sh. */
#include "data/readers/shell.h"

#include "base/guard.h"
#include "base/io.h"
#include "base/marked.h"
#include "base/mem.h"
#include "base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double GRACE = 1; /* seconds between SIGTERM and SIGKILL */

extern char **environ;

/* Whether this process may read from its terminal. A command in a group of its own may not, and would be stopped. */
static bool has_terminal(void)
{
    const int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const bool foreground = tty >= 0 && tcgetpgrp(tty) == getpgrp();
    if (tty >= 0)
        close(tty);
    return foreground;
}

static int attributes(posix_spawnattr_t *attr, const sigset_t *mask, bool own_group)
{
    sigset_t ignored;
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    int e = posix_spawnattr_setsigdefault(attr, &ignored);
    if (!e && own_group)
        e = posix_spawnattr_setpgroup(attr, 0);
    if (!e)
        e = posix_spawnattr_setsigmask(attr, mask);
    return e ? e
             : posix_spawnattr_setflags(attr, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                      (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
}

/* The environment of this process with a mark. Its texts are borrowed. NULL: no memory. */
static char **with_mark(char *mark)
{
    size_t n = 0, to = 0;
    while (environ && environ[n])
        n++;
    char **all = oct_calloc(n + 2, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (strncmp(environ[i], OCT_MARK_NAME, strlen(OCT_MARK_NAME)) != 0)
            all[to++] = environ[i];
    if (all)
        all[to] = mark;
    return all;
}

static int spawn(const char *command, int in, int out, const sigset_t *mask, char **environment, pid_t *pid)
{
    char *argv[] = { "sh", "-c", "--", (char *)(uintptr_t)command, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int e = posix_spawn_file_actions_init(&actions);
    if (e)
        return e;
    if ((e = posix_spawnattr_init(&attr)) == 0) {
        e = attributes(&attr, mask, in >= 0 || !has_terminal()); /* what brings samples may ask for a password */
        if (!e && in >= 0)
            e = posix_spawn_file_actions_adddup2(&actions, in, 0);
        if (!e)
            e = posix_spawn_file_actions_adddup2(&actions, out, 1);
        if (!e)
            e = posix_spawn(pid, "/bin/sh", &actions, &attr, argv, environment);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return e;
}

oct_status oct_shell_start(const char *command, int in, int out, pid_t *pid, oct_err *err)
{
    sigset_t before;
    char mark[OCT_MARK_TEXT];
    oct_guard_begin(&before);
    oct_mark_make(mark);
    char **environment = with_mark(mark);
    int e = environment ? spawn(command, in, out, &before, environment, pid) : ENOMEM;
    oct_free(environment);
    if (!e && !oct_guard_group(*pid, mark)) {
        oct_shell_end(*pid, 0);
        e = ENOMEM;
    }
    oct_guard_end(&before);
    if (!e)
        return OCT_OK;
    *pid = 0;
    return oct_fail(err, e == ENOMEM || e == EAGAIN ? OCT_ENOMEM : OCT_EIO, "%s: cannot start: %s", command,
                    strerror(e));
}

static bool has_ended_within(pid_t pid, double seconds, bool stops)
{
    for (const double until = oct_now() + seconds;; nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL)) {
        siginfo_t info = { .si_pid = 0 };
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ? errno != EINTR : info.si_pid == pid)
            return true;
        if (oct_now() >= until || (stops && oct_stop_check(NULL) != OCT_OK))
            return false;
    }
}

bool oct_shell_ended(pid_t pid, double seconds)
{
    return has_ended_within(pid, seconds, true);
}

/* Until the leader is reaped, no other group can get its number. */
int oct_shell_end(pid_t pid, double patience)
{
    int status = 0;
    pid_t got;
    const bool ended = patience > 0 && oct_shell_ended(pid, patience);
    if (!ended) {
        oct_guard_signal(pid, SIGTERM);
        (void)has_ended_within(pid, GRACE, false);
    }
    oct_guard_signal(pid, SIGKILL); /* those that outlive the leader, or ignore SIGTERM */
    oct_guard_group_ended(pid);
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void oct_shell_word(oct_buf *b, const char *text)
{
    oct_buf_puts(b, " '");
    for (; *text; text++) {
        if (*text == '\'')
            oct_buf_puts(b, "'\\'");
        oct_buf_add(b, text, 1);
    }
    oct_buf_puts(b, "'");
}
