/* lib/data/readers/read_given.c -- reader: samples that the caller has (oct_given_samples). */
#include "data/readers/readers.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

typedef struct giver {
    const oct_given_samples *from;
    oct_input_desc *inputs; /* [n]: those that are asked for */
    size_t n;
    oct_array *view; /* [n] */
    int64_t at;
} giver;

static void given_close(void *self)
{
    giver *g = self;
    if (!g)
        return;
    oct_free(g->view);
    oct_free(g->inputs);
    oct_free(g);
}

static oct_status given_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    giver *g = oct_calloc(1, sizeof *g);
    if (!g)
        return oct_nomem(err);
    g->from = ctx->given;
    g->n = ctx->n + (ctx->given->whole ? ctx->n_extra : 0);
    g->inputs = oct_calloc(g->n + 1, sizeof *g->inputs);
    g->view = oct_calloc(g->n + 1, sizeof *g->view);
    if (!g->inputs || !g->view) {
        given_close(g);
        return oct_nomem(err);
    }
    for (size_t i = 0; i < g->n; i++)
        g->inputs[i] = i < ctx->n ? ctx->inputs[i] : ctx->extra[i - ctx->n];
    *self = g;
    return OCT_OK;
}

static int64_t given_count(void *self)
{
    return ((giver *)self)->from->count;
}

/* A copy, as the caller's array is valid until the next sample only. Without the dimension of the batch it is a row. */
static oct_status take(const oct_input_desc *in, const oct_array *view, oct_part *part, oct_err *err)
{
    const bool batch = view->rank == in->rank && view->rank > 0 && view->dims[0] == 1;
    const int rank = view->rank - batch;
    part->kind = rank + 1 == in->rank ? OCT_PART_ROW : OCT_PART_WHOLE;
    OCT_TRY(oct_array_create(&part->array, view->dtype, rank, view->dims + batch, err));
    if (view->bytes)
        memcpy(part->array.data, view->data, view->bytes);
    return OCT_OK;
}

static oct_status given_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    giver *g = self;
    const oct_given_samples *from = g->from;
    if (g->at >= from->count) {
        *end = true;
        return OCT_OK;
    }
    const int64_t at = g->at++;
    item->name = from->name ? from->name(from->arg, at) : oct_strprintf(OCT_GIVEN "[%lld]", (long long)at);
    if (!item->name)
        return oct_nomem(err);
    if (!want)
        return OCT_OK;
    OCT_TRY(from->get(from->arg, at, g->inputs, g->n, g->view, err));
    for (size_t i = 0; i < g->n; i++)
        OCT_TRY(take(&g->inputs[i], &g->view[i], &item->parts[i], err));
    return OCT_OK;
}

static oct_status given_rewind(void *self, oct_err *err)
{
    ((giver *)self)->at = 0;
    return OCT_OK;
}

static uint64_t given_stamp(void *self, uint64_t h)
{
    const uint64_t stamp = ((giver *)self)->from->stamp;
    return stamp ? oct_hash(h, &stamp, sizeof stamp) : h;
}

const oct_reader oct_read_given = {
    .open = given_open,
    .count = given_count,
    .next = given_next,
    .rewind = given_rewind,
    .stamp = given_stamp,
    .close = given_close,
};
