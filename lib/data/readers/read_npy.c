/* lib/data/readers/read_npy.c -- reader: one .npy file, mapped; samples along axis 0 are views. */
#include "data/arrays/npy.h"
#include "data/readers/readers.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

enum { BEHIND = 16, FORGET = 1 << 20 }; /* samples that stay in memory; bytes that are forgotten at a time */

typedef struct npy {
    oct_map map;
    oct_npy head;
    oct_feed feed;
    oct_array shape;
    int64_t count, at, forgotten; /* samples before this one need not be in memory */
    size_t input;                 /* that it feeds */
    oct_interned *texts;
} npy;

static void npy_close(void *self)
{
    npy *r = self;
    if (!r)
        return;
    oct_map_close(&r->map);
    oct_free(r);
}

/* The only input, or the one of token ids if all others follow from it. */
static bool find_input(const oct_feed_ctx *ctx, size_t *at)
{
    size_t ids = 0;
    for (size_t i = 0; i < ctx->n; i++)
        if (!oct_token_follows(ctx, i, &ids))
            *at = i;
    for (size_t i = 0; i < ctx->n; i++)
        if (i != *at && !oct_token_follows(ctx, i, &ids))
            return false;
    return ctx->n == 1 || (ctx->n > 1 && ids == *at);
}

static oct_status check_file(npy *r, const oct_feed_ctx *ctx, oct_err *err)
{
    OCT_TRY(oct_npy_parse_any(r->map.data, r->map.size, &r->head, err));
    if (r->map.size - r->head.offset < r->head.bytes)
        return oct_fail(err, OCT_EMALFORMED, "cut short: %zu bytes of data, the header says %zu",
                        r->map.size - r->head.offset, r->head.bytes);
    if (!find_input(ctx, &r->input)) {
        oct_fail(err, OCT_EUNSUPPORTED, "an .npy holds one array, the model has %zu inputs", ctx->n);
        oct_hint(err, "give an .npz with one array per input, or a folder of INPUT.npy files");
        return OCT_EUNSUPPORTED;
    }
    r->shape = (oct_array){ .dtype = r->head.dtype, .rank = r->head.rank };
    memcpy(r->shape.dims, r->head.dims, sizeof r->shape.dims);
    const char *name = ctx->inputs[r->input].name;
    OCT_TRY(oct_feed_plan(&(oct_feed_ctx){ .inputs = &ctx->inputs[r->input], .n = 1 }, &name, &r->shape, 1, &r->feed,
                          &r->count, err));
    if (r->head.dtype == OCT_STRING && r->head.fortran) {
        oct_fail(err, OCT_EUNSUPPORTED, "texts in Fortran order");
        oct_hint(err, "store them with numpy.ascontiguousarray");
        return OCT_EUNSUPPORTED;
    }
    if (r->head.count == 0 && r->count)
        return oct_fail(err, OCT_EMALFORMED, "the array holds no elements");
    return OCT_OK;
}

static oct_status open_from(const oct_feed_ctx *ctx, int fd, const char *path, void **self, oct_err *err)
{
    npy *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    r->texts = ctx->texts;
    oct_status s = fd < 0 ? oct_map_open(&r->map, path, err) : oct_map_fd(&r->map, fd, path, err);
    if (s == OCT_OK && (s = check_file(r, ctx, err)) != OCT_OK)
        oct_within(err, "%s", path);
    if (s != OCT_OK) {
        npy_close(r);
        return s;
    }
    *self = r;
    return OCT_OK;
}

static oct_status npy_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    return open_from(ctx, -1, path, self, err);
}

oct_status oct_read_npy_fd(const oct_feed_ctx *ctx, int fd, const char *name, void **self, oct_err *err)
{
    return open_from(ctx, fd, name, self, err);
}

static int64_t npy_count(void *self)
{
    return ((npy *)self)->count;
}

static oct_status take_texts(const npy *r, const char *name, const uint8_t *data, oct_array *a, oct_err *err)
{
    const oct_array shape = *a;
    OCT_TRY(oct_array_create(a, OCT_STRING, shape.rank, shape.dims, err));
    const oct_status s = oct_npy_texts(&r->head, data, oct_array_count(a), r->texts, a->data, err);
    if (s != OCT_OK)
        oct_within(err, "%s", name);
    return s;
}

static oct_status npy_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    npy *r = self;
    if (r->at >= r->count) {
        oct_map_forget(r->map.data, r->map.size);
        *end = true;
        return OCT_OK;
    }
    int64_t i = r->at++;
    if (!(item->name = oct_strprintf("%s[%lld]", r->map.path, (long long)i)))
        return oct_nomem(err);
    if (!want)
        return OCT_OK;
    oct_feed_shape(&r->feed, &r->shape, &item->parts[r->input]);
    if (r->head.fortran && item->parts[r->input].array.bytes)
        return oct_feed_gather(&r->feed, &r->head, r->map.data + r->head.offset, i, &item->parts[r->input].array, err);
    const size_t bytes = (size_t)oct_array_count(&item->parts[r->input].array) * oct_npy_element(&r->head);
    const uint8_t *data = r->map.data + r->head.offset + (size_t)i * bytes;
    item->parts[r->input].array.data = (void *)(uintptr_t)data;
    if (r->head.dtype == OCT_STRING)
        OCT_TRY(take_texts(r, item->name, data, &item->parts[r->input].array, err));
    if (i - BEHIND > r->forgotten && (size_t)(i - BEHIND - r->forgotten) >=
                                         FORGET / (bytes + 1)) { /* readers of later samples have finished with them;
                                                                    otherwise they are read from the file again */
        oct_map_forget(r->map.data + r->head.offset + (size_t)r->forgotten * bytes,
                       (size_t)(i - BEHIND - r->forgotten) * bytes);
        r->forgotten = i - BEHIND;
    }
    return OCT_OK;
}

static oct_status npy_pass(void *self, int64_t n, int64_t *passed, oct_err *err)
{
    npy *r = self;
    *passed = n < r->count - r->at ? n : r->count - r->at;
    r->at += *passed;
    return OCT_OK;
}

static oct_status npy_rewind(void *self, oct_err *err)
{
    npy *r = self;
    r->at = r->forgotten = 0;
    oct_map_forget(r->map.data, r->map.size);
    return OCT_OK;
}

static bool npy_claims(const char *path, bool is_folder)
{
    return oct_has_suffix(path, ".npy") && !is_folder;
}

/* An .npy array, samples along its first axis. */
const oct_reader oct_read_npy = {
    .claims = npy_claims,
    .open = npy_open,
    .count = npy_count,
    .next = npy_next,
    .pass = npy_pass,
    .rewind = npy_rewind,
    .close = npy_close,
};
