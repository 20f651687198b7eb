#define _XOPEN_SOURCE 700
/* The files of a folder: listed without leaving it. */
#include "api/folder/listing.h"

#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 20000, MOST_LEVELS = 8, MOST_PATH = 1024 };

typedef struct walk {
    oct_listing *l;
    oct_arena *arena;
    char *root, *blobs; /* real paths; blobs NULL: none */
    oct_err *err;
} walk;

static bool lies_in(const char *path, const char *folder)
{
    const size_t n = folder ? strlen(folder) : 0;
    return n && strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n] || folder[n - 1] == '/');
}

static oct_status refuse_link(const walk *w, const char *path, const char *real)
{
    oct_fail(w->err, OCT_EMALFORMED, "%s/%s: the link leads out of the folder, to %s", w->l->folder, path, real);
    oct_hint(w->err, "put the file in its place, or copy the folder with its links followed: cp -rL");
    return OCT_EMALFORMED;
}

/* A file, or a link to one. */
static oct_status add(walk *w, const char *path, const struct stat *st, char *real)
{
    oct_listing *l = w->l;
    if (l->n == MOST_FILES)
        return oct_fail(w->err, OCT_EMALFORMED, "%s: more than %d files are no folder of models", l->folder,
                        MOST_FILES);
    oct_listed f = { oct_arena_strdup(w->arena, path), oct_arena_strdup(w->arena, real), (uint64_t)st->st_size };
    if (!f.path || !f.real || !OCT_GROW(w->arena, l->v, l->n, l->cap))
        return oct_nomem(w->err);
    l->v[l->n++] = f;
    return OCT_OK;
}

static oct_status take_file(walk *w, const char *path, const char *full, bool is_link)
{
    struct stat st;
    char *real = realpath(full, NULL);
    oct_status s = OCT_OK;
    if (!real || stat(real, &st) != 0)
        s = oct_fail_errno(w->err, "%s", full);
    else if (is_link && !lies_in(real, w->root) && !lies_in(real, w->blobs))
        s = refuse_link(w, path, real);
    else if (is_link && !S_ISREG(st.st_mode))
        s = oct_fail(w->err, OCT_EMALFORMED, "%s: a link to a file is expected, and this leads to something else",
                     full);
    else if (S_ISREG(st.st_mode)) /* sockets, pipes and devices are none of the model's */
        s = add(w, path, &st, real);
    free(real);
    return s;
}

static oct_status visit(walk *w, const char *path, int level);

static oct_status take(walk *w, const char *path, const char *name, int level)
{
    char at[MOST_PATH];
    struct stat st;
    if (snprintf(at, sizeof at, "%s%s%s", path, *path ? "/" : "", name) >= (int)sizeof at)
        return oct_fail(w->err, OCT_EMALFORMED, "%s/%s: its path is too long", w->l->folder, path);
    const char *full = oct_listing_at(w->l, at, w->arena);
    if (!full)
        return oct_nomem(w->err);
    if (lstat(full, &st) != 0)
        return oct_fail_errno(w->err, "%s", full);
    return S_ISDIR(st.st_mode) ? visit(w, at, level + 1) : take_file(w, at, full, S_ISLNK(st.st_mode));
}

static oct_status visit(walk *w, const char *path, int level)
{
    const char *full = *path ? oct_listing_at(w->l, path, w->arena) : w->l->folder;
    if (!full)
        return oct_nomem(w->err);
    if (level > MOST_LEVELS)
        return oct_fail(w->err, OCT_EMALFORMED, "%s: folders are nested more than %d deep", full, MOST_LEVELS);
    DIR *d = opendir(full);
    if (!d && errno == ENOTDIR && !level) {
        oct_fail(w->err, OCT_EUSAGE, "%s is a file, and a folder is wanted", full);
        oct_hint(w->err, "give the folder that holds it");
        return OCT_EUSAGE;
    }
    if (!d)
        return oct_fail_errno(w->err, "%s", full);
    const struct dirent *e;
    oct_status s = OCT_OK;
    while (s == OCT_OK && (errno = 0, e = readdir(d)))
        if (e->d_name[0] != '.')
            s = take(w, path, e->d_name, level);
    if (s == OCT_OK && errno)
        s = oct_fail_errno(w->err, "%s", full);
    closedir(d);
    return s;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const oct_listed *)a)->path, ((const oct_listed *)b)->path);
}

/* A snapshot in the cache of Hugging Face, models--X/snapshots/REVISION, has links to models--X/blobs. */
static char *find_blobs(const walk *w)
{
    static const char snapshots[] = "/snapshots/";
    const char *at = NULL;
    for (const char *p = w->root; (p = strstr(p, snapshots)); p++)
        at = p;
    return at ? oct_arena_printf(w->arena, "%.*s/blobs", (int)(at - w->root), w->root) : NULL;
}

oct_status oct_listing_read(const char *folder, oct_arena *arena, oct_listing *l, oct_err *err)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    *l = (oct_listing){ .folder = oct_arena_strndup(arena, folder, n) };
    walk w = { .l = l, .arena = arena, .err = err };
    if (!l->folder)
        return oct_nomem(err);
    if (!(w.root = realpath(l->folder, NULL)))
        return oct_fail_open(err, l->folder);
    w.blobs = find_blobs(&w);
    const oct_status s = visit(&w, "", 0);
    free(w.root);
    if (s == OCT_OK && l->n)
        qsort(l->v, l->n, sizeof *l->v, by_path);
    return s;
}

const oct_listed *oct_listing_find(const oct_listing *l, const char *path)
{
    const oct_listed key = { .path = path };
    return l->n ? bsearch(&key, l->v, l->n, sizeof *l->v, by_path) : NULL;
}

bool oct_listing_has(const oct_listing *l, const char *pattern)
{
    for (size_t i = 0; i < l->n; i++)
        if (fnmatch(pattern, l->v[i].path, FNM_PATHNAME) == 0)
            return true;
    return false;
}

char *oct_listing_at(const oct_listing *l, const char *path, oct_arena *arena)
{
    return oct_arena_printf(arena, "%s/%s", l->folder, path);
}
