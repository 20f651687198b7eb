/* lib/data/readers/spec.c -- expansion of braces and wildcards, and the choice of a reader. */
#include "data/readers/spec.h"
#include "data/source/synthetic.h"

#include "base/io.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 1000000, MAX_BRACES = 8 };

static oct_status add_leaf(const oct_reader *reader, const char *path, oct_arena *arena, oct_leaves *l, oct_err *err)
{
    if (l->n >= MAX_FILES)
        return oct_fail(err, OCT_EUSAGE, "more than %d files of data", MAX_FILES);
    if (!OCT_GROW(arena, l->v, l->n, l->cap))
        return oct_nomem(err);
    l->v[l->n] = (oct_leaf){ .reader = reader, .path = oct_arena_strdup(arena, path) };
    return l->v[l->n++].path ? OCT_OK : oct_nomem(err);
}

/* A name from any source: it is interpreted as a path only. */
static oct_status add_file(const char *path, oct_arena *arena, oct_leaves *l, oct_err *err)
{
    oct_path_kind kind;
    OCT_TRY(oct_path_look(path, &kind, err));
    if (kind == OCT_PATH_NONE)
        return oct_fail_open(err, path);
    for (size_t i = 0; i < oct_n_readers; i++)
        if (oct_readers[i]->claims(path, kind == OCT_PATH_FOLDER))
            return add_leaf(oct_readers[i], path, arena, l, err);
    oct_fail(err, OCT_EUSAGE, "%s: this is not a known kind of data", path);
    oct_hint(
        err,
        "data is a folder, a .csv, .npy, .npz, .pb, .wav, .jpg, .png, .bmp or .webp file, a .tar shard, or token ids in a .jsonl, .txt or .bin file");
    return OCT_EUSAGE;
}

/* The samples of a folder that cannot be read must not be omitted silently. glob reports no more than this. */
static _Thread_local int unreadable;
static int on_unreadable(const char *folder, int e)
{
    unreadable = e;
    return e != ENOENT && e != ENOTDIR;
}

static oct_status add_pattern(const char *path, oct_arena *arena, oct_leaves *l, oct_err *err)
{
    glob_t g;
    if (oct_path_exists(path) || !strpbrk(path, "*?["))
        return add_file(path, arena, l, err);
    int z = glob(path, 0, on_unreadable, &g);
    if (z == GLOB_NOMATCH)
        return oct_fail(err, OCT_EIO, "%s: no file matches", path);
    if (z != 0)
        return z == GLOB_NOSPACE || unreadable == ENOMEM
                   ? oct_nomem(err)
                   : oct_fail(err, OCT_EIO, "%s: cannot be expanded: %s", path, strerror(unreadable));
    oct_status s = OCT_OK;
    for (size_t i = 0; s == OCT_OK && i < g.gl_pathc; i++)
        s = add_file(g.gl_pathv[i], arena, l, err);
    globfree(&g);
    return s;
}

/* "000..127": its ends and the digits to pad to. */
static bool is_range(const char *t, size_t n, long *lo, long *hi, int *width)
{
    char text[48], *end;
    if (n >= sizeof text)
        return false;
    memcpy(text, t, n);
    text[n] = 0;
    char *dots = strstr(text, "..");
    if (!dots || dots == text || strspn(text, "0123456789.") != n)
        return false;
    *lo = strtol(text, &end, 10);
    if (end != dots || !dots[2])
        return false;
    *hi = strtol(dots + 2, &end, 10);
    *width = text[0] == '0' ? (int)(dots - text) : 0;
    return *end == 0 && *lo >= 0 && *hi < 1000000000;
}

static oct_status expand(const char *spec, int braces, oct_arena *arena, oct_leaves *l, oct_err *err)
{
    const char *open = strchr(spec, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close || oct_path_exists(spec))
        return add_pattern(spec, arena, l, err);
    if (braces >= MAX_BRACES)
        return oct_fail(err, OCT_EUSAGE, "%s: more than %d braces", spec, MAX_BRACES);
    const int head = (int)(open - spec);
    const char *in = open + 1, *tail = close + 1;
    long lo, hi;
    int width;
    if (is_range(in, (size_t)(close - in), &lo, &hi, &width)) {
        if (hi - lo >= MAX_FILES || lo - hi >= MAX_FILES)
            return oct_fail(err, OCT_EUSAGE, "%s: more than %d files of data", spec, MAX_FILES);
        for (long i = lo;; i += lo <= hi ? 1 : -1) {
            char *one = oct_arena_printf(arena, "%.*s%0*ld%s", head, spec, width, i, tail);
            if (!one)
                return oct_nomem(err);
            OCT_TRY(expand(one, braces + 1, arena, l, err));
            if (i == hi)
                return OCT_OK;
        }
    }
    for (const char *p = in; p <= close;) {
        size_t n = strcspn(p, ",}");
        char *one = oct_arena_printf(arena, "%.*s%.*s%s", head, spec, (int)n, p, tail);
        if (!one)
            return oct_nomem(err);
        OCT_TRY(expand(one, braces + 1, arena, l, err));
        p += n + 1;
    }
    return OCT_OK;
}

/* If the shell has expanded a pattern, words may be names of files, which must not be run as commands. */
static oct_status add_command(const char *spec, oct_arena *arena, oct_leaves *leaves, oct_err *err)
{
    if (oct_path_exists(spec)) {
        oct_fail(err, OCT_EUSAGE, "%s: a file has this name, and it would be run as a command", spec);
        oct_hint(err, "write ./%s for the file, or a space after %s for the command", spec, OCT_PIPE);
        return OCT_EUSAGE;
    }
    return add_leaf(&oct_read_command, spec, arena, leaves, err);
}

oct_status oct_spec_synthetic(oct_arena *arena, oct_leaves *leaves, oct_err *err)
{
    if (oct_path_exists(OCT_SYNTHETIC)) {
        oct_fail(err, OCT_EUSAGE, "%s: a file or folder has this name, and the samples would be generated",
                 OCT_SYNTHETIC);
        oct_hint(err, "write ./%s for the file; to generate samples, use another working folder", OCT_SYNTHETIC);
        return OCT_EUSAGE;
    }
    return add_leaf(&oct_read_synthetic, OCT_SYNTHETIC, arena, leaves, err);
}

oct_status oct_spec_given(oct_arena *arena, oct_leaves *leaves, oct_err *err)
{
    return add_leaf(&oct_read_given, OCT_GIVEN, arena, leaves, err);
}

oct_status oct_spec_expand(const char *spec, oct_arena *arena, oct_leaves *leaves, oct_err *err)
{
    if (!*spec)
        return oct_fail(err, OCT_EUSAGE, "an empty name of data");
    if (strcmp(spec, "-") == 0 || oct_path_fd(spec) >= 0)
        return add_leaf(&oct_read_descriptor, spec, arena, leaves, err);
    if (strncmp(spec, OCT_PIPE, strlen(OCT_PIPE)) == 0)
        return add_command(spec, arena, leaves, err);
    return expand(spec, 0, arena, leaves, err);
}
