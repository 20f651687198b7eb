/* lib/data/readers/read_folder.c -- reader: a folder of sample files, of one sub-folder per class, or of INPUT.npy
 * files. */
#include "data/readers/left_out.h"
#include "data/readers/list.h"
#include "data/source/set.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

enum {
    MAX_DEPTH = 16,
    MAX_FOLDERS = 1 << 20
}; /* bounded, because links can make a few folders look like any number of them */

/* Either a list of files, or another reader for the contents of the folder. */
typedef struct folder {
    const oct_reader *reader; /* NULL: the list */
    void *self;
    oct_left_out left;
} folder;

static oct_status add_file(oct_list *l, const char *path, int64_t label, oct_err *err)
{
    oct_entry *e = oct_list_add(l, path);
    if (!e)
        return oct_nomem(err);
    e->paths[0] = e->name;
    e->label = label;
    return OCT_OK;
}

/* Files of a folder and below, in sorted order. */
static oct_status walk(oct_list *l, oct_left_out *left, const char *dir, int64_t label, int depth, oct_err *err)
{
    oct_names names;
    if (depth > MAX_DEPTH)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: folders nested deeper than %d", dir, MAX_DEPTH);
    if (l->folders++ == MAX_FOLDERS)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: more than %d folders", dir, MAX_FOLDERS);
    OCT_TRY(oct_list_dir(dir, l->arena, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        char *path = oct_arena_printf(l->arena, "%s/%s", dir, names.v[i]);
        if (!path)
            return oct_nomem(err);
        oct_path_kind kind;
        OCT_TRY(oct_path_look(path, &kind, err));
        if (kind == OCT_PATH_FOLDER)
            OCT_TRY(walk(l, left, path, label, depth + 1, err));
        else if (oct_is_sample_file(path))
            OCT_TRY(add_file(l, path, label, err));
        else
            oct_left_out_add(left, path);
    }
    return OCT_OK;
}

/* Files directly in the folder, then those of its sub-folders; these are classes when at least two hold samples. */
static oct_status list_folder(oct_list *l, oct_left_out *left, const char *dir, oct_err *err)
{
    oct_names names, folders = { 0 };
    OCT_TRY(oct_list_dir(dir, l->arena, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        oct_path_kind kind;
        char *path = oct_arena_printf(l->arena, "%s/%s", dir, names.v[i]);
        if (!path)
            return oct_nomem(err);
        OCT_TRY(oct_path_look(path, &kind, err));
        if (kind != OCT_PATH_FOLDER) {
            if (oct_is_sample_file(path))
                OCT_TRY(add_file(l, path, -1, err));
            else
                oct_left_out_add(left, path);
        } else {
            if (!OCT_GROW(l->arena, folders.v, folders.n, folders.cap))
                return oct_nomem(err);
            folders.v[folders.n++] = path;
        }
    }
    const size_t first = l->n;
    size_t filled = 0;
    for (size_t i = 0; i < folders.n; i++) {
        const size_t before = l->n;
        OCT_TRY(walk(l, left, folders.v[i], (int64_t)i, 0, err));
        filled += l->n > before;
    }
    if (filled < 2)
        for (size_t i = first; i < l->n; i++)
            l->v[i].label = -1;
    if (l->n)
        return OCT_OK;
    char *others = oct_left_out_text(left);
    oct_fail(err, OCT_EMALFORMED, "%s: no samples in this folder%s%s", dir, others ? "; " : "", others ? others : "");
    oct_free(others);
    oct_hint(err, "expected .jpg, .png, .webp, .bmp, .wav, .npy or .pb files, sub-folders of them (one per class), "
                  "labels.csv, .npz files, INPUT.npy files or test_data_set_* folders");
    return OCT_EMALFORMED;
}

/* INPUT.npy for every input of the model that needs one; inputs that follow from token ids may be absent. Characters
 * that file names cannot hold are underscores. */
static oct_status find_named_arrays(const oct_feed_ctx *ctx, const char *dir, oct_arena *arena, char **paths, bool *all,
                                    oct_err *err)
{
    oct_path_kind kind;
    size_t ids;
    *all = ctx->n > 0;
    for (size_t i = 0; *all && i < ctx->n + ctx->n_extra; i++) {
        paths[i] =
            oct_arena_printf(arena, "%s/%s.npy", dir, i < ctx->n ? ctx->inputs[i].name : ctx->extra[i - ctx->n].name);
        if (!paths[i])
            return oct_nomem(err);
        for (char *c = paths[i] + strlen(dir) + 1; *c; c++)
            if (*c == '/' || *c == ':')
                *c = '_';
        OCT_TRY(oct_path_look(paths[i], &kind, err));
        *all = kind != OCT_PATH_NONE || i >= ctx->n || oct_token_follows(ctx, i, &ids);
        paths[i] = kind != OCT_PATH_NONE ? paths[i] : NULL;
    }
    return OCT_OK;
}

static oct_status open_list(const oct_feed_ctx *ctx, const char *path, folder *f, oct_err *err)
{
    if (ctx->n != 1) {
        oct_fail(err, OCT_EUNSUPPORTED, "%s: files of a folder hold one tensor each, the model has %zu inputs", path,
                 ctx->n);
        oct_hint(err, "give INPUT.npy for every input, .npz files, or a CSV with a column per input");
        return OCT_EUNSUPPORTED;
    }
    oct_list *l = oct_list_create(ctx);
    if (!l)
        return oct_nomem(err);
    f->self = l;
    return list_folder(l, &f->left, path, err);
}

/* Whether a folder has .npz files, and no files of single samples. */
static bool holds_archives(const oct_names *names)
{
    bool some = false;
    for (size_t i = 0; i < names->n; i++) {
        if (oct_is_sample_file(names->v[i]))
            return false;
        some |= oct_has_suffix(names->v[i], ".npz");
    }
    return some;
}

static oct_status open_kind(const oct_feed_ctx *ctx, const char *path, folder *f, oct_arena *arena, oct_err *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *dir = oct_arena_strndup(arena, path, n), *csv = dir ? oct_arena_printf(arena, "%s/labels.csv", dir) : NULL;
    char **paths = oct_arena_calloc(arena, ctx->n + ctx->n_extra + 1, sizeof *paths);
    oct_names names;
    if (!csv || !paths)
        return oct_nomem(err);
    OCT_TRY(oct_list_dir(dir, arena, &names, err));
    if (oct_is_testset(&names)) {
        f->reader = &oct_read_testset;
        return oct_read_testset.open(ctx, dir, &f->self, err);
    }
    oct_path_kind kind;
    OCT_TRY(oct_path_look(csv, &kind, err));
    if (kind != OCT_PATH_NONE) {
        f->reader = &oct_read_csv;
        return oct_read_csv.open(ctx, csv, &f->self, err);
    }
    if (holds_archives(&names)) {
        f->reader = &oct_read_npz_files;
        return oct_read_npz_files.open(ctx, dir, &f->self, err);
    }
    bool named;
    OCT_TRY(find_named_arrays(ctx, dir, arena, paths, &named, err));
    if (named) {
        f->reader = &oct_read_npz;
        return oct_set_open_files(ctx, dir, paths, &f->self, err);
    }
    return open_list(ctx, dir, f, err);
}

static void folder_close(void *self)
{
    folder *f = self;
    if (!f)
        return;
    if (f->reader)
        f->reader->close(f->self);
    else
        oct_list_close(f->self);
    oct_free(f);
}

static oct_status folder_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    folder *f = oct_calloc(1, sizeof *f);
    oct_arena *arena = oct_arena_create();
    oct_status s = f && arena ? open_kind(ctx, path, f, arena, err) : oct_nomem(err);
    if (arena)
        oct_arena_destroy(arena);
    if (s != OCT_OK) {
        folder_close(f);
        return s;
    }
    *self = f;
    return OCT_OK;
}

static int64_t folder_count(void *self)
{
    folder *f = self;
    return f->reader ? f->reader->count(f->self) : oct_list_count(f->self);
}

static oct_status folder_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    folder *f = self;
    return f->reader ? f->reader->next(f->self, want, item, end, err) : oct_list_next(f->self, want, item, end, err);
}

static oct_status folder_pass(void *self, int64_t n, int64_t *passed, oct_err *err)
{
    folder *f = self;
    *passed = 0;
    return f->reader && f->reader->pass ? f->reader->pass(f->self, n, passed, err) : OCT_OK;
}

static oct_status folder_rewind(void *self, oct_err *err)
{
    folder *f = self;
    return f->reader ? f->reader->rewind(f->self, err) : oct_list_rewind(f->self, err);
}

static uint64_t folder_stamp(void *self, uint64_t h)
{
    folder *f = self;
    if (!f->reader)
        return oct_list_stamp(f->self, h);
    return f->reader->stamp ? f->reader->stamp(f->self, h) : h;
}

static char *folder_left_out(void *self)
{
    folder *f = self;
    return f->reader && f->reader->left_out ? f->reader->left_out(f->self) : oct_left_out_text(&f->left);
}

static bool folder_claims(const char *path, bool is_folder)
{
    return is_folder;
}

/* A folder of pictures, .wav or .npy samples: labels from labels.csv or sub-folders; or of .npz or INPUT.npy files. */
const oct_reader oct_read_folder = {
    .claims = folder_claims,
    .open = folder_open,
    .count = folder_count,
    .next = folder_next,
    .pass = folder_pass,
    .rewind = folder_rewind,
    .left_out = folder_left_out,
    .stamp = folder_stamp,
    .close = folder_close,
};
