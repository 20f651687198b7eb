/* lib/data/shell.h -- starts a command of the user in /bin/sh. */
#ifndef OCT_DATA_SHELL_H
#define OCT_DATA_SHELL_H

#include "base/buf.h"

#include <sys/types.h>

/* Starts sh -c command with its standard output in `out` and, unless it is -1, its standard input from `in`. group: as the leader of a process
 * group of its own, so that all it starts can be ended with it. Signals that the tools ignore have their default action in it, so that SIGPIPE
 * ends it when its output is no longer read. OCT_ENOMEM when it cannot start for lack of memory or processes, OCT_EIO. */
oct_status oct_shell_start(const char *command, int in, int out, bool group, pid_t *pid, oct_err *err);
/* Appends a text as a word of the shell, behind a space. */
void oct_shell_word(oct_buf *b, const char *text);

#endif
