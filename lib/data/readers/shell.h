/* lib/data/readers/shell.h -- starts a command of the user in /bin/sh. */
#ifndef OCT_DATA_SHELL_H
#define OCT_DATA_SHELL_H

#include "base/buf.h"

#include <sys/types.h>

/* Starts sh -c command with its standard output in `out` and, unless it is -1, its standard input from `in`. It leads a
 * process group of its own and has a mark in its environment (base/marked.h), so that all processes it starts can be
 * ended with it, also those in sessions of their own; a signal that ends a tool ends them (base/guard.h). Signals that
 * the tools ignore have their default action there, so that SIGPIPE ends the command when its output is no longer read.
 * OCT_ENOMEM when it cannot start for lack of memory or processes, OCT_EIO. */
oct_status oct_shell_start(const char *command, int in, int out, pid_t *pid, oct_err *err);
/* Whether the command ended within some seconds, and before the call was asked to stop (base/stop.h). Its process is
 * not reaped yet, so that the number of its group stays valid. */
bool oct_shell_ended(pid_t pid, double seconds);
/* Waits for a command to end. After that many seconds (0: at once), or when the call is asked to stop, it gets SIGTERM,
 * and SIGKILL a second later. Processes that it has left behind are ended in any case. Returns the exit status; -1 if a
 * signal ended it. */
int oct_shell_end(pid_t pid, double patience);
/* Appends a text as a word of the shell, behind a space. */
void oct_shell_word(oct_buf *b, const char *text);

#endif
