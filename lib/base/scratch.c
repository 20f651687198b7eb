#define _GNU_SOURCE
/* A folder that is filled aside. */
#include "base/scratch.h"

#include "base/guard.h"
#include "base/io.h"
#include "base/io_int.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct oct_scratch {
    char place[PATH_MAX];     /* "": it stays where it is */
    char path[PATH_MAX + 32]; /* of the folder */
    char file[2 * PATH_MAX];  /* the one file in it; "": any */
    int parent, inside;       /* descriptors of the folder that it is in, and of itself; -1: none */
    oct_doomed *doomed;
    bool made;
};

/* ---- its place ---- */

static oct_status find_place(oct_scratch *s, const char *path, oct_err *err)
{
    oct_path_kind kind;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof s->place)
        return oct_fail(err, OCT_EIO, "%.200s...: the path is too long", path);
    memcpy(s->place, path, n);
    OCT_TRY(oct_path_look(s->place, &kind, err));
    if (kind == OCT_PATH_NONE)
        return OCT_OK;
    if (kind == OCT_PATH_FOLDER) {
        char *real = realpath(s->place, NULL);
        if (real && strlen(real) < sizeof s->place)
            memcpy(s->place, real, strlen(real) + 1);
        free(real);
        DIR *d = opendir(s->place);
        int entries = 0;
        while (d && readdir(d))
            entries++;
        if (d)
            closedir(d);
        if (d && entries <= 2) /* . and .. */
            return OCT_OK;
    }
    oct_fail(err, OCT_EUSAGE,
             kind == OCT_PATH_FOLDER ? "%s: the folder exists and is not empty" : "%s: a file is there", path);
    oct_hint(err, "name a folder that does not exist, or remove this one first: nothing is overwritten");
    return OCT_EUSAGE;
}

/* Not by mkdtemp, whose folders are for their owner alone. n: the length of the folder that it will be in. */
static bool make_beside(oct_scratch *s, int n)
{
    enum { TRIES = 1000, MOST = 1000000 };
    for (int i = 0; i < TRIES; i++) {
        snprintf(s->path, sizeof s->path, "%.*s.%.200s.octet-%06d", n, s->place, s->place + n,
                 ((int)getpid() + i) % MOST);
        if (mkdir(s->path, 0777) == 0)
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* Enters the folder that was made, which is in s->parent. */
static oct_status enter(oct_scratch *s, oct_err *err)
{
    const char *slash = strrchr(s->path, '/');
    if ((s->inside = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return oct_fail_errno(err, "%s", s->path);
    s->doomed = oct_guard_tree(s->parent, slash ? slash + 1 : s->path);
    return s->doomed ? OCT_OK : oct_nomem(err);
}

static oct_status make_at(oct_scratch *s, const char *path, oct_err *err)
{
    OCT_TRY(find_place(s, path, err));
    char parent[PATH_MAX];
    const char *slash = strrchr(s->place, '/');
    const int n = slash ? (int)(slash - s->place) + 1 : 0;
    snprintf(parent, sizeof parent, "%.*s", n ? n : 1, n ? s->place : ".");
    if ((s->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        const bool missing = errno == ENOENT;
        const oct_status st = oct_fail_errno(err, "%s: cannot make the folder", path);
        if (missing)
            oct_hint(err, "mkdir -p %s", parent);
        return st;
    }
    if (!(s->made = make_beside(s, n)))
        return oct_fail_errno(err, "%s: cannot make the folder", path);
    return enter(s, err);
}

static oct_status make_temporary(oct_scratch *s, const char *file, const char *what, oct_err *err)
{
    const char *shared = getenv("TMPDIR"), *in = shared && *shared ? shared : "/tmp";
    s->made = snprintf(s->path, sizeof s->path, "%s/octet-XXXXXX", in) < (int)sizeof s->path && mkdtemp(s->path);
    if (!s->made)
        return oct_fail_errno(err, "%.200s: cannot make a folder for %s", s->path, what);
    s->parent = open(in, O_PATH | O_DIRECTORY | O_CLOEXEC);
    OCT_TRY(enter(s, err));
    snprintf(s->file, sizeof s->file, "%s/%s", s->path, file);
    return OCT_OK;
}

/* what: NULL: beside its place */
static oct_status create(const char *path, const char *what, oct_scratch **out, oct_err *err)
{
    sigset_t before;
    oct_scratch *s = *out = oct_calloc(1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    s->parent = s->inside = -1;
    oct_guard_begin(&before);
    const oct_status st = what ? make_temporary(s, path, what, err) : make_at(s, path, err);
    oct_guard_end(&before);
    if (st != OCT_OK) {
        oct_scratch_remove(s);
        *out = NULL;
    }
    return st;
}

oct_status oct_scratch_create(const char *file, const char *what, oct_scratch **s, oct_err *err)
{
    return create(file, what, s, err);
}

oct_status oct_scratch_create_beside(const char *path, oct_scratch **s, oct_err *err)
{
    return create(path, NULL, s, err);
}

const char *oct_scratch_path(const oct_scratch *s)
{
    return *s->file ? s->file : s->path;
}

oct_status oct_scratch_make_room(const oct_scratch *s, const char *path, oct_err *err)
{
    char at[PATH_MAX];
    for (const char *p = path; (p = strchr(p, '/')); p++) {
        snprintf(at, sizeof at, "%.*s", (int)(p - path), path);
        if (mkdirat(s->inside, at, 0777) != 0 && errno != EEXIST)
            return oct_fail_errno(err, "%s/%s: cannot make the folder", s->path, at);
    }
    return OCT_OK;
}

oct_status oct_scratch_commit(oct_scratch *s, oct_err *err)
{
    sigset_t before;
    oct_guard_begin(&before);
    fsync(s->inside);
    const bool moved = rename(s->path, s->place) == 0;
    const oct_status st = moved ? OCT_OK : oct_fail_errno(err, "%s: the complete folder cannot be put there", s->place);
    s->made = !moved;
    fsync(s->parent);
    oct_guard_end(&before);
    return st;
}

void oct_scratch_remove(oct_scratch *s)
{
    if (!s)
        return;
    if (s->made)
        oct_tree_remove(AT_FDCWD, s->path);
    oct_guard_tree_ended(s->doomed);
    if (s->inside >= 0)
        close(s->inside);
    if (s->parent >= 0)
        close(s->parent);
    oct_free(s);
}
