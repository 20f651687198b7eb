/* lib/base/marked.h -- processes by a mark in their environment.
 *
 * A command may start processes that leave its group (setsid) and whose parents end. They inherit its environment, by
 * which Linux finds them in /proc. One that was started with another environment is not found. */
#ifndef OCT_BASE_MARKED_H
#define OCT_BASE_MARKED_H

#include <stdbool.h>

#define OCT_MARK_NAME "OCTET_COMMAND="
enum { OCT_MARK_TEXT = 80 };

/* A mark that no other command has: an entry for its environment. */
void oct_mark_make(char mark[OCT_MARK_TEXT]);
/* What the marks of all commands of this process begin with; "": there are none. For signal handlers. */
const char *oct_mark_common(void);
/* Signals the processes with an entry that begins so, other than this one; with SIGKILL, again until there is none.
 * Returns whether there were any. Where /proc is absent, or that of other processes, nothing is found. May be called in
 * signal handlers. */
bool oct_marked_signal(const char *mark, int sig);

#endif
