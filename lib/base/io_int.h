/* lib/base/io_int.h -- what signal handlers need (inside lib/base only).
 *
 * The lists only grow, so that a handler can walk them at any time; unused entries are reused. */
#ifndef OCT_BASE_IO_INT_H
#define OCT_BASE_IO_INT_H

#include "base/status.h"

/* Adds a mapped range and its file, for the message if the file was truncated. NULL: out of memory. */
typedef struct oct_mapped oct_mapped;
oct_mapped *oct_mapped_add(const uint8_t *data, size_t size, const char *path);
void oct_mapped_remove(oct_mapped *m); /* NULL allowed */

/* Adds a file that is to be removed when a signal ends the process: `name`, of 255 bytes at most, in the folder that
 * the descriptor `folder` holds, which stays open until oct_spare. NULL: no memory. */
typedef struct oct_doomed oct_doomed;
oct_doomed *oct_doom(int folder, const char *name);
void oct_spare(oct_doomed *d); /* NULL allowed */

/* An entry of a folder as SYS_getdents64 gives it; readdir allocates, which no signal handler may. */
typedef struct oct_dirent {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
} oct_dirent;

/* Removes the file or folder of that path in `folder`, with all that is in it, as far as it can; a signal handler may
 * call it. Whether it is gone. */
bool oct_tree_remove(int folder, const char *path);

#endif
