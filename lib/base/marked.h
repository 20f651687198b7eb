/* lib/base/marked.h -- processes by a mark in their environment.
 *
 * A command may start processes that leave its group (setsid) and whose parents end. They inherit its environment, by
 * which Linux finds them in /proc. One that was started with another environment is not found. */
#ifndef OCT_BASE_MARKED_H
#define OCT_BASE_MARKED_H

#include <stdbool.h>

#define OCT_MARK_NAME "OCTET_COMMAND="
enum { OCT_MARK_TEXT = 80 };

/* A mark that no other command has, as an entry for its environment. */
void oct_mark_make(char mark[OCT_MARK_TEXT]);
/* The common beginning of the marks of all commands of this process; "": there are none. For signal handlers. */
const char *oct_mark_common(void);
/* Signals all other processes with an entry that begins like this; with SIGKILL, repeatedly until there are none.
 * Returns whether there were any. None are found if /proc, or the entries of other processes in it, cannot be read. May
 * be called in signal handlers. */
bool oct_marked_signal(const char *mark, int sig);

#endif
