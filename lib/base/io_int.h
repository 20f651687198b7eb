/* lib/base/io_int.h -- what signal handlers look at (inside lib/base only).
 *
 * The lists only grow, so that a handler can walk them at any moment; entries that are not in use are used again. */
#ifndef OCT_BASE_IO_INT_H
#define OCT_BASE_IO_INT_H

#include "base/status.h"

/* A mapped range and the file it shows, for the message when the file turns out to be shorter. NULL: no memory. */
typedef struct oct_mapped oct_mapped;
oct_mapped *oct_mapped_add(const uint8_t *data, size_t size, const char *path);
void oct_mapped_remove(oct_mapped *m); /* NULL allowed */

/* A file that is removed when a signal ends the process: `name`, of 255 bytes at most, in the folder that the
 * descriptor `folder` holds, which stays open until oct_spare. NULL: no memory. */
typedef struct oct_doomed oct_doomed;
oct_doomed *oct_doom(int folder, const char *name);
void oct_spare(oct_doomed *d); /* NULL allowed */

#endif
