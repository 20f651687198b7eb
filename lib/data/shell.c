#define _GNU_SOURCE
/* lib/data/shell.c -- a command of the user in /bin/sh. */
#include "data/shell.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>

extern char **environ;

static int attributes(posix_spawnattr_t *attr, bool group)
{
    sigset_t ignored;
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    int e = posix_spawnattr_setsigdefault(attr, &ignored);
    if (!e)
        e = posix_spawnattr_setpgroup(attr, 0);
    return e ? e : posix_spawnattr_setflags(attr, (short)(POSIX_SPAWN_SETSIGDEF | (group ? POSIX_SPAWN_SETPGROUP : 0)));
}

static int spawn(const char *command, int in, int out, bool group, pid_t *pid)
{
    char *argv[] = { "sh", "-c", "--", (char *)(uintptr_t)command, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int e = posix_spawn_file_actions_init(&actions);
    if (e)
        return e;
    if ((e = posix_spawnattr_init(&attr)) == 0) {
        e = attributes(&attr, group);
        if (!e && in >= 0)
            e = posix_spawn_file_actions_adddup2(&actions, in, 0);
        if (!e)
            e = posix_spawn_file_actions_adddup2(&actions, out, 1);
        if (!e)
            e = posix_spawn(pid, "/bin/sh", &actions, &attr, argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return e;
}

oct_status oct_shell_start(const char *command, int in, int out, bool group, pid_t *pid, oct_err *err)
{
    const int e = spawn(command, in, out, group, pid);
    if (!e)
        return OCT_OK;
    *pid = 0;
    return oct_fail(err, e == ENOMEM || e == EAGAIN ? OCT_ENOMEM : OCT_EIO, "%s: cannot start: %s", command, strerror(e));
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
