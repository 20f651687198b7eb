/* lib/data/readers/tar_links.h -- links inside an archive: the member to which they lead, and its bytes. Only members
 * are ever read, wherever a link points to. Private to lib/data. */
#ifndef OCT_DATA_TAR_LINKS_H
#define OCT_DATA_TAR_LINKS_H

#include "data/readers/archive.h"

#ifdef OCT_HAVE_ARCHIVE

#include "data/arrays/array_files.h"

enum { OCT_TAR_MEMBER = 512 << 20 }; /* maximum size of a member that is read, in bytes */

/* All members of an archive in a file. */
typedef struct oct_tar_links oct_tar_links;

/* Where a link points to in the end. */
typedef enum oct_tar_end { OCT_TAR_NOTHING, OCT_TAR_FILE, OCT_TAR_FOLDER } oct_tar_end;

/* Reads the headers of all members. Of a compressed archive it also keeps what the links point to whose names
 * is_wanted(arg, name) accepts, as long as that takes no more than 256 MB; other archives are read where the members
 * lie. OCT_EIO, OCT_ENOMEM; a fault of the archive only ends the index, because reading the samples will report it. */
oct_status oct_tar_links_open(const oct_libarchive *la, const char *path,
                              bool (*is_wanted)(void *arg, const char *name), void *arg, oct_tar_links **l,
                              oct_err *err);
void oct_tar_links_close(oct_tar_links *l); /* NULL allowed */

/* Follows the link that is member `at` (from 0), also through other links and links to folders. Of several members with
 * one name, the last one before the link counts, else the first one after it. OCT_TAR_NOTHING: what it points to is not
 * in the archive, a loop, too far, or is not kept; *target: for oct_tar_links_read, of OCT_TAR_FILE. */
oct_tar_end oct_tar_links_find(const oct_tar_links *l, size_t at, size_t *target);
/* The bytes of a member that was found. OCT_EMALFORMED, OCT_EIO, OCT_ENOMEM. */
oct_status oct_tar_links_read(const oct_tar_links *l, size_t target, oct_array *bytes, oct_err *err);

/* The name of a member; what it is a link to, and which kind of link; NULL: none. They live as long as the entry is not
 * changed. */
const char *oct_tar_name(const oct_libarchive *la, struct archive_entry *e);
const char *oct_tar_link(const oct_libarchive *la, struct archive_entry *e, bool *hard);

/* Reads `size` bytes of the current member of a. Memory is allocated as bytes arrive, since a header may claim any
 * size. *n: number of bytes read; -1: a failure that a describes. OCT_ENOMEM. */
oct_status oct_tar_bytes(const oct_libarchive *la, struct archive *a, int64_t size, oct_array *bytes, int64_t *n,
                         oct_err *err);

#endif
#endif
