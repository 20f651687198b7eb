/* lib/data/readers/archive.h -- libarchive, which is loaded when the first archive is read: it brings libxml2 and ICU
 * with it, 50 MB of address space that no other run needs. Only tar is read, and only through decompressors that are
 * inside the library: some of its filters start programs found in PATH, and the first bytes of a file must not choose
 * one. Private to lib/data. */
#ifndef OCT_DATA_ARCHIVE_H
#define OCT_DATA_ARCHIVE_H

#include "base/status.h"
#include "data/data_config.h" /* made by the build */

#ifdef OCT_HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>

/* Every function that is used. */
/* clang-format off */
#define OCT_ARCHIVE_FUNCTIONS(X)                                                                                                   \
    X(archive_read_new) X(archive_read_free) X(archive_read_open2) X(archive_read_next_header2) X(archive_read_data)               \
    X(archive_read_support_format_tar) X(archive_read_set_format_option) X(archive_read_support_filter_gzip) X(archive_read_support_filter_bzip2)                    \
    X(archive_read_support_filter_xz) X(archive_read_support_filter_zstd) X(archive_read_support_filter_lz4)                       \
    X(archive_read_header_position) X(archive_filter_bytes) X(archive_set_error) X(archive_error_string) X(archive_errno) X(archive_entry_new) X(archive_entry_free)                       \
    X(archive_entry_pathname) X(archive_entry_pathname_utf8) X(archive_entry_filetype) X(archive_entry_size) X(archive_entry_hardlink)                \
    X(archive_entry_hardlink_utf8) X(archive_entry_symlink) X(archive_entry_symlink_utf8) X(archive_filter_code)
/* clang-format on */

/* la.archive_read_new() and so on, with the types of archive.h. */
typedef struct oct_libarchive {
#define OCT_MEMBER(name) __typeof__(&name) name;
    OCT_ARCHIVE_FUNCTIONS(OCT_MEMBER)
#undef OCT_MEMBER
} oct_libarchive;

/* The library, loaded once for the process. OCT_EUNSUPPORTED when it cannot be loaded, with what to install;
 * OCT_ENOMEM. Thread-safe. */
oct_status oct_archive_load(const oct_libarchive **la, oct_err *err);

/* Enables tar, also several concatenated archives, and, if it may be compressed, the decompressors that start no
 * program. */
oct_status oct_archive_support(const oct_libarchive *la, struct archive *a, bool compressed, oct_err *err);

/* Describes a file that begins with these n bytes if it is of a known kind that is not read: "lzop data"; else NULL. */
const char *oct_archive_refused(const uint8_t *p, size_t n);

#endif
#endif
