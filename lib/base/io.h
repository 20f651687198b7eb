/* lib/base/io.h -- files: opening and mapping for reading, and atomic writing.
 *
 * A mapped file that is truncated while it is read would end the process with SIGBUS; the guard (oct_io_guard) turns
 * that into exit code 3 with the name of the file. */
#ifndef OCT_BASE_IO_H
#define OCT_BASE_IO_H

#include "base/status.h"

#include <limits.h>
#include <sys/types.h>

/* Reports a system call that failed: the text, ": ", and the message of errno. Returns OCT_ENOMEM for ENOMEM, else
 * OCT_EIO. */
oct_status oct_fail_errno(oct_err *err, const char *fmt, ...) OCT_PRINTF(2, 3);

/* Reports that an input cannot be opened, by errno. Where it does not exist, the hint names the nearest name of its
 * folder, if one is near. */
oct_status oct_fail_open(oct_err *err, const char *path);

/* Opens a file for reading without ever blocking: a FIFO, socket, folder or device is OCT_EIO, with its kind and a
 * remedy; an output of this run (oct_out_claim) is OCT_EUSAGE. stream: the caller reads once, from the beginning to the
 * end. Then character devices (/dev/null) are accepted too, and any open descriptor of this process that is given by
 * its name: /dev/fd/63, which shells write for <(COMMAND), or /dev/stdin. */
oct_status oct_file_open(const char *path, bool stream, int *fd, oct_err *err);
/* read(2) that continues after signals, and waits even on non-blocking descriptors. Returns fewer bytes than n only at
 * the end of the file, and -1, with errno, on a failure. */
ssize_t oct_file_read(int fd, void *p, size_t n);
/* The descriptor of this process that a name denotes: /dev/stdin, /dev/fd/N, /proc/self/fd/N and the like; -1: none. */
int oct_path_fd(const char *path);

typedef struct oct_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t size;
    char *path;
    struct oct_mapped *mapped; /* private */
} oct_map;

/* Maps a regular file read-only. OCT_EIO with the system's reason. */
oct_status oct_map_open(oct_map *m, const char *path, oct_err *err);
/* The same for a descriptor, which stays the caller's; path is for messages. */
oct_status oct_map_fd(oct_map *m, int fd, const char *path, oct_err *err);
void oct_map_close(oct_map *m);
/* Drops the whole pages of [p, p + n) from this process's memory if an open map holds them all; they are loaded again
 * when they are read. Any other memory stays as it is. */
void oct_map_forget(const void *p, size_t n);

/* Opens /dev/null for each closed descriptor among 0 to 2. Otherwise a file that is opened later would get that number,
 * and receive printed text. To be called first in a tool. A descriptor that was closed can neither be read nor written
 * as "-". */
void oct_io_start(void);
/* Whether descriptor fd was closed when oct_io_start was called. */
bool oct_io_was_closed(int fd);

/* Installs a handler for SIGBUS: a fault inside an open map prints "<tool>: <path>: the file was cut
 * short while it was read" and ends the process with exit code 3; any other fault is passed on. SIGINT, SIGTERM and
 * SIGHUP, unless they are ignored, remove the temporary files of oct_out. SIGPIPE and SIGXFSZ are ignored, so that
 * write fails instead. Tools call it once. */
void oct_io_guard(const char *tool);
/* For calls of libraries that exit() when out of memory, as libarchive does with status 1: while `inside` is set for
 * this thread, a guarded tool then ends with exit code 7 and leaves no temporary file. */
void oct_io_foreign(bool inside);
/* Sets what these handlers write to standard error first, to erase an unfinished line; NULL: nothing. text must be a
 * constant. */
void oct_io_farewell(const char *text);

/* Reads a whole file or, for "-", standard input, into memory (NUL added, not counted; release with
 * oct_free). At most max bytes: a longer one is OCT_EMALFORMED. A stream in the sense of oct_file_open. */
oct_status oct_read_all(const char *path, size_t max, char **data, size_t *size, oct_err *err);
/* The same for a text: a NUL byte in it is OCT_EMALFORMED, "this is not <what>". */
oct_status oct_read_text(const char *path, size_t max, const char *what, char **text, oct_err *err);

/* Where an output goes. */
typedef struct oct_place {
    bool stream;         /* not a file to be replaced, but a descriptor of this process, a FIFO or a device */
    int fd;              /* the descriptor for "-", /dev/stdout and the like; else -1 */
    size_t folder;       /* length of the folder in path, including '/'; 0: the current folder */
    char path[PATH_MAX]; /* the path after following symbolic links, also to a file that does not exist yet */
} oct_place;

/* Finds where the output `path` goes. OCT_EIO for a folder, a socket, links in a circle, or a name that is too long. */
oct_status oct_place_find(oct_place *p, const char *path, oct_err *err);
/* OCT_EIO by errno, for an output `path` that cannot be created in its folder; the hint says how to make a missing
 * folder. */
oct_status oct_place_fail(const oct_place *p, const char *path, oct_err *err);
/* Whether an output of that name is a stream, which cannot be read back. */
bool oct_path_is_stream(const char *path);
/* Whether two outputs would go to the same place. */
bool oct_same_output(const char *a, const char *b);

/* From now on, opening the file that the output `path` will replace or append to is OCT_EUSAGE, so that no input is
 * overwritten. path is borrowed until oct_out_unclaim. */
void oct_out_claim(const char *path);
void oct_out_unclaim(void); /* all of them */

/* An output. A file is written beside its place without a name, where the file system can do that, else as
 * .NAME.octet-XXXXXX, and put in its place when it is complete; until then what was there stays. Where `path` is a
 * symbolic link, its target is replaced. The new file has the rights of the old one, and its owner where that is
 * permitted. What is not a regular file is written as it is, and so is a descriptor ("-", /dev/stdout, /dev/fd/N).
 * Errors stick: seal and commit report the first one. */
typedef struct oct_out {
    int fd;
    char *path;
    struct oct_out_file *file; /* NULL: a stream */
    uint8_t *buf;
    size_t used;
    uint64_t written; /* bytes so far */
    int error;        /* errno of the first failure */
    bool sealed;
} oct_out;

oct_status oct_out_open(oct_out *o, const char *path, oct_err *err);
void oct_out_write(oct_out *o, const void *p, size_t n);
/* Completes the output: everything is written and, for a file, on disk. Nothing may be added afterwards, and a file can
 * be read back before it takes its place. */
oct_status oct_out_seal(oct_out *o, oct_err *err);
/* Maps the bytes of a sealed file. */
oct_status oct_out_map(const oct_out *o, oct_map *m, oct_err *err);
/* Seals the output and moves the file to its place. A failure before that leaves nothing behind. Closes o in any case.
 */
oct_status oct_out_commit(oct_out *o, oct_err *err);
/* The same for a file that refers to another one, `part`, which is moved to its place first, and removed again if o
 * then fails. */
oct_status oct_out_commit_both(oct_out *part, oct_out *o, oct_err *err);
void oct_out_abort(oct_out *o); /* after commit: does nothing */

/* Sets a callback that gets each temporary file that a killed run has left in a folder. It is called when the first
 * output in that folder is opened. NULL: none. */
void oct_out_on_leftover(void (*found)(void *arg, const char *path), void *arg);
/* Opens a nameless file for reading and writing, in the folder where the output `beside` goes, or in that of temporary
 * files if `beside` is a stream. Returns -1, with errno, on a failure. */
int oct_file_nameless(const char *beside);

/* Whether two paths name the same existing file (device and inode). */
bool oct_same_file(const char *a, const char *b);
/* The name of a file without its folders. */
const char *oct_path_base(const char *path);
bool oct_path_exists(const char *path);
bool oct_path_is_dir(const char *path);
typedef enum oct_path_kind { OCT_PATH_NONE, OCT_PATH_FOLDER, OCT_PATH_OTHER } oct_path_kind;
/* The kind of the file at a path; OCT_PATH_NONE: there is none, and errno says why. Fails with OCT_EIO if the kind
 * cannot be determined, so that this is not mistaken for "none". */
oct_status oct_path_look(const char *path, oct_path_kind *kind, oct_err *err);

/* Monotonic seconds. */
double oct_now(void);

/* 64-bit FNV-1a, for identifying models and shards: detects accidents, not attacks. */
#define OCT_HASH_INIT 0xcbf29ce484222325u
uint64_t oct_hash(uint64_t h, const void *p, size_t n);

#endif
