/* lib/base/guard.h -- what a signal that ends a tool must not leave behind: commands that still run, and files and
 * folders of passing use (scratch.h).
 *
 * What is entered here is ended and removed by the handlers of oct_io_guard, in programs that call it. Elsewhere the
 * lists have no effect. */
#ifndef OCT_BASE_GUARD_H
#define OCT_BASE_GUARD_H

#include "base/status.h"

#include <signal.h>
#include <sys/types.h>

/* Around the start of a command: signals that end the program wait meanwhile, so that no command runs that the handlers
 * do not know. before: the signals that were blocked, which the command is to have. */
void oct_guard_begin(sigset_t *before);
void oct_guard_end(const sigset_t *before);

/* A command that leads a process group of its own, and its mark (base/marked.h): both groups and marked processes are
 * ended with the program. false: no memory. Removed before the command is waited for. */
bool oct_guard_group(pid_t leader, const char *mark);
void oct_guard_group_ended(pid_t leader);
/* Signals a command that was entered, or is not waited for yet: its group, or, where it has none of its own, it alone;
 * and what it started elsewhere. */
void oct_guard_signal(pid_t leader, int sig);

/* A folder that is removed with the program, and all that is in it then: `name`, of 255 bytes at most, is its path in
 * the folder that the descriptor `folder` holds, which stays open until oct_guard_tree_ended. NULL: no memory. */
typedef struct oct_doomed oct_doomed;
oct_doomed *oct_guard_tree(int folder, const char *name);
void oct_guard_tree_ended(oct_doomed *d); /* NULL allowed */

#endif
