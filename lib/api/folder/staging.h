/* lib/api/folder/staging.h -- a folder that appears when it is complete, or not at all: it is filled beside its place,
 * as .NAME.octet-XXXXXX, and renamed. A signal that ends a tool removes it (base/guard.h). */
#ifndef OCT_API_STAGING_H
#define OCT_API_STAGING_H

#include "base/status.h"

typedef struct oct_staging oct_staging;

/* Begins a folder at `path`, where nothing may be but an empty folder. OCT_EUSAGE: something is there; OCT_EIO: it
 * cannot be made there, and a hint where its folder is missing; OCT_ENOMEM. */
oct_status oct_staging_create(const char *path, oct_staging **s, oct_err *err);
/* Where it is filled. */
const char *oct_staging_path(const oct_staging *s);
/* Makes the folders that the file `path` in it needs. path is relative, without "..". */
oct_status oct_staging_make_room(const oct_staging *s, const char *path, oct_err *err);
/* From now on a signal removes what is in it so far. To be called when files have been added. */
oct_status oct_staging_guard(oct_staging *s, oct_err *err);
/* Gives it its place. */
oct_status oct_staging_commit(oct_staging *s, oct_err *err);
/* Removes it with all that is in it, unless it has its place. NULL allowed. */
void oct_staging_destroy(oct_staging *s);

#endif
