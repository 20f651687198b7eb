/* A folder of this process for fuzz targets that need files by name. It is emptied before each input and removed at the
 * end. Starting a program from inside such a target ends it: no name and no content of a file may do that. */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char fuzz_folder[256]; /* its path */

static inline void fuzz_empty(const char *folder)
{
    char path[512];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path || lstat(path, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            fuzz_empty(path);
            rmdir(path);
        } else {
            unlink(path);
        }
    }
    if (d)
        closedir(d);
}

static inline void fuzz_folder_remove(void)
{
    fuzz_empty(fuzz_folder);
    rmdir(fuzz_folder);
}

/* Empty; the current folder of the process from the first call on. */
static inline void fuzz_folder_open(void)
{
    if (*fuzz_folder) {
        fuzz_empty(fuzz_folder);
        return;
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(fuzz_folder, sizeof fuzz_folder, "%s/octfuzz.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(fuzz_folder) || chdir(fuzz_folder) != 0)
        abort();
    atexit(fuzz_folder_remove);
}

/* A name that stays in the folder. */
static inline bool fuzz_is_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strlen(name) < 200;
}

static inline void fuzz_write(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return;
    if (write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

/* In the place of the C library's, for libraries too; weak, since a program may have several targets. */
FILE *popen(const char *command, const char *mode);
__attribute__((weak)) FILE *popen(const char *command, const char *mode)
{
    fprintf(stderr, "popen: %s\n", command);
    abort();
}

__attribute__((weak)) int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                                       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    fprintf(stderr, "posix_spawnp: %s\n", file);
    abort();
}

#endif
