/* lib/data/readers/read_token_stream.c -- reader: concatenated token ids without a header, cut into samples of equal
 * length. */
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/mem.h"

enum { FORGET = 4 << 20 }; /* bytes that were read and need not stay in memory */

typedef struct stream {
    const oct_feed_ctx *ctx;
    oct_map map;
    size_t ids, width;            /* the input that takes them; bytes of a token */
    int64_t length, n;            /* tokens of a sample, of the file */
    int64_t count, at, forgotten; /* in samples; forgotten: samples before it need not be in memory */
} stream;

static void stream_close(void *self)
{
    if (!self)
        return;
    oct_map_close(&((stream *)self)->map);
    oct_free(self);
}

/* The rest at the end is a sample if it can be padded. */
static oct_status measure(stream *r, oct_err *err)
{
    OCT_TRY(oct_token_input(r->ctx, &r->ids, err));
    const oct_steps *steps = &r->ctx->steps[r->ids];
    r->length = oct_token_length(&r->ctx->inputs[r->ids], steps->length);
    if (!steps->ids) {
        oct_fail(err, OCT_EUSAGE, "token ids of which type?");
        oct_hint(err, "ids=u16 in --preprocess; there are u8, u16, u32, i32 and i64, all little-endian");
        return OCT_EUSAGE;
    }
    if (!r->length) {
        oct_fail(err, OCT_EUSAGE, "neither the model nor --preprocess says how many tokens a sample has");
        oct_hint(err, "length=128 in --preprocess cuts the ids into samples of 128 tokens");
        return OCT_EUSAGE;
    }
    r->width = (size_t)oct_dtype_bits(steps->ids) / 8;
    if (r->map.size % r->width)
        return oct_fail(err, OCT_EMALFORMED, "%zu bytes are not whole token ids of %zu", r->map.size, r->width);
    r->n = (int64_t)(r->map.size / r->width);
    r->count = r->n / r->length + (steps->has_pad_id && r->n % r->length);
    if (r->count)
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "%lld token ids, a sample has %lld", (long long)r->n, (long long)r->length);
    oct_hint(err, "pad-id=N in --preprocess fills a shorter sample up with that id");
    return OCT_EMALFORMED;
}

static oct_status stream_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    stream *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    r->ctx = ctx;
    oct_status s = oct_map_open(&r->map, path, err);
    if (s == OCT_OK && (s = measure(r, err)) != OCT_OK)
        oct_within(err, "%s", path);
    if (s == OCT_OK)
        *self = r;
    else
        stream_close(r);
    return s;
}

static int64_t stream_count(void *self)
{
    return ((stream *)self)->count;
}

static oct_status stream_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    stream *r = self;
    *end = r->at == r->count;
    if (*end)
        return OCT_OK;
    const int64_t i = r->at++, first = i * r->length, left = r->n - first, n = left < r->length ? left : r->length;
    if (!(item->name = oct_strprintf("%s[%lld]", r->map.path, (long long)i)))
        return oct_nomem(err);
    if (!want)
        return OCT_OK;
    const uint8_t *from = r->map.data + (size_t)first * r->width;
    OCT_TRY(oct_token_row(r->ctx, r->ids, r->ids, n, &item->parts[r->ids], err));
    OCT_TRY(
        oct_array_convert(r->ctx->steps[r->ids].ids, from, OCT_S64, item->parts[r->ids].array.data, (size_t)n, err));
    const size_t behind = (size_t)((i - r->forgotten) * r->length) * r->width;
    if (behind > FORGET) {
        oct_map_forget(from - behind, behind);
        r->forgotten = i;
    }
    return oct_token_complete(r->ctx, r->ids, item->parts, err);
}

static oct_status stream_rewind(void *self, oct_err *err)
{
    stream *r = self;
    r->at = r->forgotten = 0;
    return OCT_OK;
}

static bool stream_claims(const char *path, bool is_folder)
{
    return !is_folder && oct_has_suffix(path, ".bin");
}

/* A stream of token ids. */
const oct_reader oct_read_token_stream = {
    .claims = stream_claims,
    .open = stream_open,
    .count = stream_count,
    .next = stream_next,
    .rewind = stream_rewind,
    .close = stream_close,
};
