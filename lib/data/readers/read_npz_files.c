/* lib/data/readers/read_npz_files.c -- reader: a folder of .npz files, each with one or more samples, in the order of
 * their names. One is open at a time. */
#include "data/readers/left_out.h"
#include "data/readers/list.h"
#include "data/source/set.h"

#include "base/io.h"
#include "base/mem.h"

typedef struct files {
    const oct_feed_ctx *ctx;
    oct_arena *arena; /* holds all but the open file */
    char **paths;
    size_t n, at;
    int64_t count;          /* of all samples; a damaged file counts as one */
    const char *other_name; /* of the first file with an array of another name than the input's, or NULL */
    void *set;              /* file `at`; NULL: not open yet */
    oct_left_out left;
} files;

static void files_close(void *self)
{
    files *f = self;
    if (!f)
        return;
    oct_read_npz.close(f->set);
    oct_arena_destroy(f->arena);
}

/* Each is opened once, so that a file that does not fit is named before anything is computed. */
static oct_status look_at_all(files *f, oct_err *err)
{
    for (size_t i = 0; i < f->n; i++) {
        void *set = NULL;
        bool broken;
        oct_err fault = OCT_ERR_INIT;
        const oct_status s = oct_set_open_feed(f->ctx, f->paths[i], &broken, &set, &fault);
        if (s != OCT_OK && !(broken && f->ctx->skip_bad)) {
            if (err)
                *err = fault;
            return s;
        }
        const char *other = s == OCT_OK && !f->other_name ? oct_read_npz.other_name(set) : NULL;
        f->count += s == OCT_OK ? oct_read_npz.count(set) : 1;
        if (other && !(f->other_name = oct_arena_strdup(f->arena, other))) {
            oct_read_npz.close(set);
            return oct_nomem(err);
        }
        oct_read_npz.close(set);
    }
    return OCT_OK;
}

static oct_status list_files(files *f, const char *dir, oct_err *err)
{
    oct_names names;
    OCT_TRY(oct_list_dir(dir, f->arena, &names, err));
    if (!(f->paths = oct_arena_calloc(f->arena, names.n + 1, sizeof *f->paths)))
        return oct_nomem(err);
    for (size_t i = 0; i < names.n; i++) {
        if (!oct_has_suffix(names.v[i], ".npz")) {
            oct_left_out_add(&f->left, names.v[i]);
            continue;
        }
        if (!(f->paths[f->n] = oct_arena_printf(f->arena, "%s/%s", dir, names.v[i])))
            return oct_nomem(err);
        f->n++;
    }
    return look_at_all(f, err);
}

static oct_status files_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    oct_arena *arena = oct_arena_create();
    files *f = arena ? oct_arena_calloc(arena, 1, sizeof *f) : NULL;
    if (!f) {
        if (arena)
            oct_arena_destroy(arena);
        return oct_nomem(err);
    }
    f->ctx = ctx;
    f->arena = arena;
    const oct_status s = list_files(f, path, err);
    if (s != OCT_OK) {
        files_close(f);
        return s;
    }
    *self = f;
    return OCT_OK;
}

static int64_t files_count(void *self)
{
    return ((files *)self)->count;
}

static void leave(files *f)
{
    oct_read_npz.close(f->set);
    f->set = NULL;
    f->at++;
}

/* A sample outlives its file. */
static oct_status own_parts(const files *f, oct_item *item, oct_err *err)
{
    for (size_t i = 0; i < f->ctx->n + f->ctx->n_extra; i++)
        OCT_TRY(oct_part_own(&item->parts[i], err));
    return OCT_OK;
}

/* Opens the file that is next. A damaged one is a broken sample, and the one behind it can be read. */
static oct_status open_next(files *f, oct_item *item, oct_err *err)
{
    bool broken;
    const oct_status s = oct_set_open_feed(f->ctx, f->paths[f->at], &broken, &f->set, err);
    if (s != OCT_OK && broken && f->ctx->skip_bad && !(item->name = oct_strdup(f->paths[f->at++])))
        return oct_nomem(err);
    return s;
}

static oct_status files_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    files *f = self;
    for (; f->at < f->n; leave(f)) {
        bool over = false;
        if (!f->set)
            OCT_TRY(open_next(f, item, err));
        oct_status s = oct_read_npz.next(f->set, want, item, &over, err);
        if (s == OCT_OK && over)
            continue;
        if (s == OCT_OK)
            s = own_parts(f, item, err);
        if (over)
            leave(f); /* broken: the next file can be read */
        return s;
    }
    *end = true;
    return OCT_OK;
}

static oct_status files_rewind(void *self, oct_err *err)
{
    files *f = self;
    oct_read_npz.close(f->set);
    f->set = NULL;
    f->at = 0;
    return OCT_OK;
}

static uint64_t files_stamp(void *self, uint64_t h)
{
    const files *f = self;
    for (size_t i = 0; i < f->n; i++)
        h = oct_file_stamp(h, f->paths[i]);
    return h;
}

static const char *files_other_name(void *self)
{
    return ((files *)self)->other_name;
}

static char *files_left_out(void *self)
{
    return oct_left_out_text(&((files *)self)->left);
}

/* A folder of .npz files. The reader of folders chooses it. */
const oct_reader oct_read_npz_files = {
    .open = files_open,
    .count = files_count,
    .next = files_next,
    .rewind = files_rewind,
    .stamp = files_stamp,
    .left_out = files_left_out,
    .other_name = files_other_name,
    .close = files_close,
};
