/* lib/api/folder/listing.h -- the files of a folder that somebody has given, which may be hostile.
 *
 * Files and folders whose names begin with a dot are left out. Links are followed to files in the folder, and to the
 * blobs of the cache of Hugging Face that the folder lies in; others are refused. */
#ifndef OCT_API_LISTING_H
#define OCT_API_LISTING_H

#include "base/mem.h"

typedef struct oct_listed {
    const char *path; /* in the folder, with '/' */
    const char *real; /* absolute, with all links followed */
    uint64_t bytes;
} oct_listed;

typedef struct oct_listing {
    const char *folder; /* without '/' at its end */
    oct_listed *v;      /* by path */
    size_t n, cap;
} oct_listing;

/* Lists it in the arena. OCT_EIO; OCT_EMALFORMED: a link that leads elsewhere, or more files or levels than a folder of
 * models has. */
oct_status oct_listing_read(const char *folder, oct_arena *arena, oct_listing *l, oct_err *err);
/* The file of that path; NULL: there is none. */
const oct_listed *oct_listing_find(const oct_listing *l, const char *path);
/* Whether there is a file whose path fits a pattern of fnmatch(3). */
bool oct_listing_has(const oct_listing *l, const char *pattern);
/* FOLDER/path in the arena; NULL: no memory. */
char *oct_listing_at(const oct_listing *l, const char *path, oct_arena *arena);

#endif
