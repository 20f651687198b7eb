/* lib/base/scratch.h -- a folder that is filled aside, and goes away with all that is in it, unless it takes its place.
 * A signal that ends a tool removes it with what is in it by then, whatever made that (base/guard.h). */
#ifndef OCT_BASE_SCRATCH_H
#define OCT_BASE_SCRATCH_H

#include "base/status.h"

typedef struct oct_scratch oct_scratch;

/* In TMPDIR, or /tmp, for one file of that name, which the caller makes. what: what it is for, in a message. OCT_EIO,
 * OCT_ENOMEM. */
oct_status oct_scratch_create(const char *file, const char *what, oct_scratch **s, oct_err *err);
/* Beside its place `path`, where nothing may be but an empty folder, as .NAME.octet-XXXXXX: it appears there when it is
 * complete, or not at all. OCT_EUSAGE: something is there; OCT_EIO: it cannot be made there, and a hint where its
 * folder is missing; OCT_ENOMEM. */
oct_status oct_scratch_create_beside(const char *path, oct_scratch **s, oct_err *err);
/* Where it is filled: the path of the one file, or of the folder. */
const char *oct_scratch_path(const oct_scratch *s);
/* Makes the folders that the file `path` in it needs. path is relative, without "..". */
oct_status oct_scratch_make_room(const oct_scratch *s, const char *path, oct_err *err);
/* Gives it its place. */
oct_status oct_scratch_commit(oct_scratch *s, oct_err *err);
/* Removes it, unless it has its place. NULL allowed. */
void oct_scratch_remove(oct_scratch *s);

#endif
