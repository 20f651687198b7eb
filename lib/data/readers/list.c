/* lib/data/readers/list.c -- lists of sample files, and the readers that need nothing else: one picture, one tensor. */
#include "data/readers/list.h"

#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

oct_list *oct_list_create(const oct_feed_ctx *ctx)
{
    oct_arena *a = oct_arena_create();
    oct_list *l = a ? oct_arena_calloc(a, 1, sizeof *l) : NULL;
    if (!l) {
        if (a)
            oct_arena_destroy(a);
        return NULL;
    }
    l->arena = a;
    l->ctx = ctx;
    l->n_inputs = ctx->n;
    l->n_all = ctx->n + ctx->n_extra;
    if (oct_sounds_init(&l->sounds, ctx, NULL) == OCT_OK)
        return l;
    oct_list_close(l);
    return NULL;
}

oct_entry *oct_list_add(oct_list *l, const char *name)
{
    if (!OCT_GROW(l->arena, l->v, l->n, l->cap))
        return NULL;
    oct_entry *e = &l->v[l->n];
    *e = (oct_entry){ .label = -1 };
    e->name = oct_arena_strdup(l->arena, name);
    e->paths = oct_arena_calloc(l->arena, l->n_all, sizeof *e->paths);
    if (!e->name || !e->paths)
        return NULL;
    l->n++;
    return e;
}

/* ---- recordings ---- */

static bool has_sound(const oct_list *l, const oct_entry *e)
{
    for (size_t i = 0; i < l->n_inputs && !l->ctx->as_files; i++)
        if (e->paths[i] && oct_is_sound_file(e->paths[i]))
            return true;
    return false;
}

static oct_status open_sounds(oct_list *l, const oct_entry *e, oct_err *err)
{
    for (size_t i = 0; i < l->n_inputs; i++)
        if (e->paths[i] && oct_is_sound_file(e->paths[i]))
            OCT_TRY(oct_sounds_open(&l->sounds, i, e->paths[i], err));
    return OCT_OK;
}

/* ---- reading ---- */

int64_t oct_list_count(void *self)
{
    oct_list *l = self;
    int64_t n = (int64_t)l->n;
    for (size_t i = 0; oct_sounds_cut(&l->sounds) && i < l->n; i++) {
        oct_err ignored = OCT_ERR_INIT; /* a broken recording is one sample */
        if (has_sound(l, &l->v[i]) && open_sounds(l, &l->v[i], &ignored) == OCT_OK)
            n += l->sounds.windows - 1;
        oct_sounds_close(&l->sounds);
    }
    return n;
}

static oct_status fill_part(oct_list *l, const oct_entry *e, size_t i, oct_part *part, oct_err *err)
{
    if (i < l->n_inputs && l->sounds.sound[i])
        return oct_sound_window(l->sounds.sound[i], l->sounds.window, part, err);
    if (!e->paths[i])
        return OCT_OK;
    part->kind = OCT_PART_FILE;
    part->sound = oct_is_sound_file(e->paths[i]); /* it cannot be opened: decoding will report whose fault that is */
    return (part->path = oct_strdup(e->paths[i])) ? OCT_OK : oct_nomem(err);
}

oct_status oct_list_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    oct_list *l = self;
    if (l->at >= l->n) {
        *end = true;
        return OCT_OK;
    }
    const oct_entry *e = &l->v[l->at];
    oct_status s = OCT_OK;
    if (l->sounds.windows == 0 && has_sound(l, e) && (want || oct_sounds_cut(&l->sounds)))
        s = open_sounds(l, e, err);
    if (s == OCT_EIO) {
        oct_sounds_close(&l->sounds);
        s = OCT_OK;
    }
    if (s == OCT_OK) {
        item->label = e->label;
        item->inside = l->sounds.window > 0;
        item->name = l->sounds.windows > 1 ? oct_strprintf("%s[%lld]", e->name, (long long)l->sounds.window)
                                           : oct_strdup(e->name);
        s = item->name ? OCT_OK : oct_nomem(err);
    }
    for (size_t i = 0; s == OCT_OK && want && i < l->n_all; i++)
        s = fill_part(l, e, i, &item->parts[i], err);
    if (s != OCT_OK)
        oct_sounds_close(&l->sounds);
    else if (oct_sounds_advance(&l->sounds))
        return OCT_OK;
    l->at++;
    return want ? s : s == OCT_ENOMEM ? s : OCT_OK;
}

uint64_t oct_list_stamp(void *self, uint64_t h)
{
    const oct_list *l = self;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->n_all; k++)
            h = l->v[i].paths[k] ? oct_file_stamp(h, l->v[i].paths[k]) : h;
    return h;
}

oct_status oct_list_rewind(void *self, oct_err *err)
{
    oct_list *l = self;
    oct_sounds_close(&l->sounds);
    l->at = 0;
    return OCT_OK;
}

void oct_list_close(void *self)
{
    oct_list *l = self;
    if (!l)
        return;
    oct_sounds_free(&l->sounds);
    oct_arena_destroy(l->arena);
}

/* ---- folders ---- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

oct_status oct_list_dir(const char *path, oct_arena *arena, oct_names *names, oct_err *err)
{
    *names = (oct_names){ 0 };
    DIR *d = opendir(path);
    if (!d)
        return oct_fail_errno(err, "%s", path);
    struct dirent *e;
    oct_status s = OCT_OK;
    while (s == OCT_OK && (errno = 0, e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        if (!OCT_GROW(arena, names->v, names->n, names->cap) ||
            !(names->v[names->n] = oct_arena_strdup(arena, e->d_name)))
            s = oct_nomem(err);
        else
            names->n++;
    }
    if (s == OCT_OK && errno)
        s = oct_fail_errno(err, "%s", path);
    closedir(d);
    if (s == OCT_OK && names->n)
        qsort(names->v, names->n, sizeof *names->v, by_bytes);
    return s;
}

static oct_status single_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    if (ctx->n != 1)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: one file holds one tensor, the model has %zu inputs", path, ctx->n);
    oct_list *l = oct_list_create(ctx);
    oct_entry *e = l ? oct_list_add(l, path) : NULL;
    if (!e || !(e->paths[0] = e->name)) {
        oct_list_close(l);
        return oct_nomem(err);
    }
    *self = l;
    return OCT_OK;
}

static bool image_claims(const char *path, bool is_folder)
{
    return oct_is_image_file(path) && !is_folder;
}

static bool sound_claims(const char *path, bool is_folder)
{
    return oct_is_sound_file(path) && !is_folder;
}

static bool pb_claims(const char *path, bool is_folder)
{
    return oct_has_suffix(path, ".pb") && !is_folder;
}

/* One picture. */
const oct_reader oct_read_image = {
    .claims = image_claims,
    .open = single_open,
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .close = oct_list_close,
};

/* A WAV file, whole or in windows. */
const oct_reader oct_read_sound = {
    .claims = sound_claims,
    .open = single_open,
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .close = oct_list_close,
};

/* One TensorProto. */
const oct_reader oct_read_pb = {
    .claims = pb_claims,
    .open = single_open,
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .close = oct_list_close,
};
