/* lib/data/source/feed.c -- which array of a set feeds which input, and what its axis 0 means. */
#include "data/readers/readers.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Whether dims fit the input's last `rank` dimensions. */
static bool fits_tail(const oct_input_desc *in, int rank, const int64_t *dims)
{
    for (int i = 0; i < rank; i++) {
        int64_t want = in->dims[in->rank - rank + i];
        if (want >= 0 && want != dims[i])
            return false;
    }
    return true;
}

/* A row given as height, width, channels to an input of channels, height, width, or without channels. */
static bool fits_as_picture(const oct_input_desc *in, int rank, const int64_t *dims)
{
    if (in->rank != 4 || rank != 3)
        return false;
    int64_t c = in->dims[1];
    return (c == dims[2] || c < 0) && (dims[2] == 1 || dims[2] == 3 || dims[2] == 4);
}

static oct_status bad_shape(const oct_input_desc *in, const char *name, const oct_array *a, oct_err *err)
{
    char have[96], want[96];
    oct_fail(err, OCT_EMALFORMED, "array '%s' has shape %s, input '%s' is %s", name,
             oct_dims_text(have, a->rank, a->dims), in->name, oct_dims_text(want, in->rank, in->dims));
    oct_hint(
        err,
        "samples lie along axis 0: give the shape of the input with their number in place of its first dimension, or before it");
    return OCT_EMALFORMED;
}

static oct_status choose_mode(const oct_input_desc *in, const char *name, const oct_array *a, oct_feed_mode *mode,
                              oct_err *err)
{
    if (in->rank < 0) {
        *mode = a->rank ? OCT_FEED_ROWS : OCT_FEED_SHARED;
        return OCT_OK;
    }
    switch (a->rank - in->rank) {
    case 1: *mode = OCT_FEED_WHOLES; return OCT_OK;
    case 0: *mode = a->rank ? OCT_FEED_ROWS : OCT_FEED_SHARED; return OCT_OK;
    case -1:
        if (fits_tail(in, a->rank, a->dims) || fits_as_picture(in, a->rank, a->dims)) {
            *mode = OCT_FEED_ONE;
            return OCT_OK;
        }
        if (in->rank == 4 && (in->dims[1] == 1 || in->dims[3] == 1)) { /* [N,H,W] for [N,1,H,W] */
            *mode = OCT_FEED_ROWS;
            return OCT_OK;
        }
        break;
    default: break;
    }
    return bad_shape(in, name, a, err);
}

bool oct_feed_matches(const char *array, const char *input)
{
    for (; *array && *input; array++, input++)
        if (*array != *input && !(*array == '_' && (*input == '/' || *input == ':')))
            return false;
    return *array == *input;
}

oct_status oct_feed_find(const oct_feed_ctx *ctx, size_t input, const char *const *names, size_t n, size_t *at,
                         oct_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (oct_feed_matches(names[i], ctx->inputs[input].name)) {
            *at = i;
            return OCT_OK;
        }
    if (n == 1 && ctx->n == 1) {
        *at = 0;
        return OCT_OK;
    }
    char list[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < n && len + 40 < sizeof list; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s'%.30s'", i ? ", " : "", names[i]);
    return oct_fail(err, OCT_EMALFORMED, "no array for input '%s'; there are: %s", ctx->inputs[input].name, list);
}

/* An array whose axis 0 would count differently, but which has the input's very shape, serves all samples. */
static bool settles_as_shared(const oct_input_desc *in, const oct_array *a, oct_feed_mode mode)
{
    return mode == OCT_FEED_ROWS && in->rank == a->rank && in->dims[0] == a->dims[0] && fits_tail(in, a->rank, a->dims);
}

oct_status oct_feed_plan(const oct_feed_ctx *ctx, const char *const *names, const oct_array *heads, size_t n,
                         oct_feed *feeds, int64_t *count, oct_err *err)
{
    *count = -1;
    const char *counted = NULL;
    for (size_t i = 0; i < ctx->n; i++) {
        OCT_TRY(oct_feed_find(ctx, i, names, n, &feeds[i].array, err));
        const size_t at = feeds[i].array;
        OCT_TRY(choose_mode(&ctx->inputs[i], names[at], &heads[at], &feeds[i].mode, err));
    }
    /* Whole inputs count first: they leave no doubt. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < ctx->n; i++) {
            const oct_array *a = &heads[feeds[i].array];
            bool sure = feeds[i].mode == OCT_FEED_WHOLES || feeds[i].mode == OCT_FEED_ONE ||
                        (feeds[i].mode == OCT_FEED_ROWS && !settles_as_shared(&ctx->inputs[i], a, feeds[i].mode));
            if (feeds[i].mode == OCT_FEED_SHARED || sure != (pass == 0))
                continue;
            int64_t c = feeds[i].mode == OCT_FEED_ONE ? 1 : a->dims[0];
            if (*count < 0) {
                *count = c;
                counted = names[feeds[i].array];
            } else if (c != *count) {
                if (!sure) {
                    feeds[i].mode = OCT_FEED_SHARED;
                    continue;
                }
                return oct_fail(err, OCT_EMALFORMED, "array '%s' holds %lld samples, array '%s' %lld", counted,
                                (long long)*count, names[feeds[i].array], (long long)c);
            }
        }
    if (*count < 0)
        *count = 1;
    return OCT_OK;
}

void oct_feed_shape(const oct_feed *f, const oct_array *head, oct_part *part)
{
    int skip = f->mode == OCT_FEED_ROWS || f->mode == OCT_FEED_WHOLES;
    part->kind = f->mode == OCT_FEED_ROWS || f->mode == OCT_FEED_ONE ? OCT_PART_ROW : OCT_PART_WHOLE;
    part->shared = f->mode == OCT_FEED_SHARED;
    part->array = (oct_array){ .dtype = head->dtype, .rank = head->rank - skip };
    if (part->array.rank)
        memcpy(part->array.dims, head->dims + skip, (size_t)part->array.rank * sizeof head->dims[0]);
    oct_array_bytes(head->dtype, oct_array_count(&part->array), &part->array.bytes);
}

oct_status oct_feed_gather(const oct_feed *f, const oct_npy *head, const uint8_t *data, int64_t index, oct_array *a,
                           oct_err *err)
{
    const bool whole = f->mode == OCT_FEED_ONE || f->mode == OCT_FEED_SHARED;
    const oct_array shape = *a;
    OCT_TRY(oct_array_create(a, shape.dtype, shape.rank, shape.dims, err));
    oct_npy_gather(head, data, whole ? 0 : index, whole ? head->dims[0] : 1, a->data);
    return OCT_OK;
}
