/* lib/data/readers/read_given.c -- reader: samples that the caller has (oct_given_samples). */
#include "data/readers/readers.h"

#include "base/mem.h"

#include <string.h>

typedef struct giver {
    const oct_feed_ctx *ctx;
    oct_array *view; /* [ctx->n] */
    int64_t at;
} giver;

static oct_status given_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    giver *g = oct_calloc(1, sizeof *g);
    if (!g || !(g->view = oct_calloc(ctx->n + 1, sizeof *g->view))) {
        oct_free(g);
        return oct_nomem(err);
    }
    g->ctx = ctx;
    *self = g;
    return OCT_OK;
}

static int64_t given_count(void *self)
{
    return ((giver *)self)->ctx->given->count;
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
    const oct_given_samples *from = g->ctx->given;
    if (g->at >= from->count) {
        *end = true;
        return OCT_OK;
    }
    const int64_t at = g->at++;
    if (!(item->name = oct_strprintf(OCT_GIVEN "[%lld]", (long long)at)))
        return oct_nomem(err);
    if (!want)
        return OCT_OK;
    OCT_TRY(from->get(from->arg, at, g->ctx->inputs, g->ctx->n, g->view, err));
    for (size_t i = 0; i < g->ctx->n; i++)
        OCT_TRY(take(&g->ctx->inputs[i], &g->view[i], &item->parts[i], err));
    return OCT_OK;
}

static oct_status given_rewind(void *self, oct_err *err)
{
    ((giver *)self)->at = 0;
    return OCT_OK;
}

static void given_close(void *self)
{
    oct_free(((giver *)self)->view);
    oct_free(self);
}

const oct_reader oct_read_given = {
    .open = given_open,
    .count = given_count,
    .next = given_next,
    .rewind = given_rewind,
    .close = given_close,
};
