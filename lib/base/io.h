/* lib/base/io.h -- files: mapped for reading, and written so that nothing half-written stays.
 *
 * A mapped file that is cut short while it is read would end the process with SIGBUS; the guard
 * (oct_io_guard) turns that into exit 3 with the file's name. */
#ifndef OCT_BASE_IO_H
#define OCT_BASE_IO_H

#include "base/status.h"

#include <sys/types.h>

/* Opens a file to read, without ever waiting for it: a FIFO, a socket, a folder, a device is OCT_EIO with what it is and a remedy.
 * stream: whoever reads goes from the beginning to the end once. Then character devices (/dev/null) will do, and whatever a descriptor
 * of this process holds, where it is given by its name: /dev/fd/63, which shells write for <(COMMAND), or /dev/stdin. */
oct_status oct_file_open(const char *path, bool stream, int *fd, oct_err *err);
/* read(2) that goes on after signals, and waits where the descriptor does not. Fewer bytes than n: the file ended. -1: errno. */
ssize_t oct_file_read(int fd, void *p, size_t n);
/* The descriptor of this process that a name stands for: /dev/stdin, /dev/fd/N, /proc/self/fd/N and their like; -1: none. */
int oct_path_fd(const char *path);

typedef struct oct_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t size;
    char *path;
} oct_map;

/* Maps a regular file read-only. OCT_EIO with the system's reason. */
oct_status oct_map_open(oct_map *m, const char *path, oct_err *err);
void oct_map_close(oct_map *m);
/* Whole pages of [p, p + n), as far as they lie in the map, leave this process's memory until they are read again. */
void oct_map_forget(const oct_map *m, const void *p, size_t n);

/* Installs a handler for SIGBUS: a fault inside an open map prints "<tool>: <path>: the file was cut
 * short while it was read" and ends the process with exit code 3; any other fault is passed on. Also
 * registers the temporary files of oct_out for removal on SIGINT, SIGTERM and SIGHUP. SIGPIPE and SIGXFSZ are ignored, so
 * that write fails instead. Tools call it once. */
void oct_io_guard(const char *tool);

/* Reads a whole file or, for "-", standard input, into memory (NUL added, not counted; release with
 * oct_free). At most max bytes: a longer one is OCT_EMALFORMED. */
oct_status oct_read_all(const char *path, size_t max, char **data, size_t *size, oct_err *err);

/* An output: written to a temporary file beside `path`, renamed by oct_out_commit, removed by
 * oct_out_abort. "-" is standard output. Errors stick: commit reports the first one. */
typedef struct oct_out {
    int fd;
    char *path, *temp;
    uint8_t *buf;
    size_t used;
    uint64_t written;    /* bytes so far */
    int error;           /* errno of the first failure */
} oct_out;

oct_status oct_out_open(oct_out *o, const char *path, oct_err *err);
void oct_out_write(oct_out *o, const void *p, size_t n);
/* Overwrites bytes already written (a header patched at the end); the range must lie inside them.
 * Not possible on "-". */
void oct_out_patch(oct_out *o, uint64_t at, const void *p, size_t n);
/* Flushes, syncs and renames. On any failure nothing is left behind. Closes o either way. */
oct_status oct_out_commit(oct_out *o, oct_err *err);
void oct_out_abort(oct_out *o); /* after commit: does nothing */

/* Whether two paths name the same existing file (device and inode). */
bool oct_same_file(const char *a, const char *b);
bool oct_path_exists(const char *path);
bool oct_path_is_dir(const char *path);

/* Monotonic seconds. */
double oct_now(void);

/* 64-bit FNV-1a, for identifying models and shards: detects accidents, not attacks. */
#define OCT_HASH_INIT 0xcbf29ce484222325u
uint64_t oct_hash(uint64_t h, const void *p, size_t n);

#endif
