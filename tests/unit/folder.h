/* tests/unit/folder.h -- a folder for the files that a program of tests writes; it goes with all of them at the end:
 *   TEST_GROUP(folder_make, folder_remove); */
#ifndef OCT_TESTS_FOLDER_H
#define OCT_TESTS_FOLDER_H

#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[200];

static inline int folder_make(void **state)
{
    const char *top = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/octet-XXXXXX", top && *top ? top : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

/* The path of a file in it; the last four stay. */
static inline char *folder_path(const char *name)
{
    static char path[4][sizeof folder + 256];
    static int round;
    char *p = path[round++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static inline int folder_remove_at(const char *path)
{
    char inside[4096];
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (remove(inside))
            folder_remove_at(inside);
    }
    if (d)
        closedir(d);
    return rmdir(path);
}

static inline int folder_remove(void **state)
{
    return folder_remove_at(folder);
}

static inline void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

/* A text in a file of the folder; returns its path. */
static inline char *folder_text(const char *name, const char *text)
{
    char *path = folder_path(name);
    write_file(path, text, strlen(text));
    return path;
}

#endif
