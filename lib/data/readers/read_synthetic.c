/* lib/data/readers/read_synthetic.c -- reader: generated samples (synthetic.h). */
#include "data/readers/readers.h"
#include "data/source/synthetic.h"

#include "base/mem.h"

typedef struct maker {
    const oct_feed_ctx *ctx;
    int64_t at;
} maker;

static bool is_real(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F16 || t == OCT_BF16 || t == OCT_F64;
}

/* The dimensions of a row of an input; 0: an open dimension has no usual size. */
static int64_t row_elements(const oct_input_desc *in)
{
    int64_t n = 1;
    for (int k = 1; k < in->rank; k++)
        if (in->dims[k] < 1 || __builtin_mul_overflow(n, in->dims[k], &n))
            return 0;
    return in->rank < 1 ? 0 : n;
}

static oct_status check_input(const oct_input_desc *in, oct_err *err)
{
    int h, w, c;
    if (oct_synthetic_is_picture(in, &h, &w, &c))
        return OCT_OK;
    if (!is_real(in->dtype)) {
        oct_fail(err, OCT_EUNSUPPORTED, "input '%s' is %s: nothing is known of its values, so none can be made",
                 in->name, oct_dtype_name(in->dtype));
        oct_hint(err, "give samples with --data, or convert without");
        return OCT_EUNSUPPORTED;
    }
    if (!row_elements(in)) {
        oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has open dimensions: it is not known how large a sample is",
                 in->name);
        oct_hint(err, "give samples with --data, or convert without");
        return OCT_EUNSUPPORTED;
    }
    return OCT_OK;
}

static oct_status synthetic_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    for (size_t i = 0; i < ctx->n; i++)
        OCT_TRY(check_input(&ctx->inputs[i], err));
    maker *m = oct_calloc(1, sizeof *m);
    if (!m)
        return oct_nomem(err);
    m->ctx = ctx;
    *self = m;
    return OCT_OK;
}

static int64_t synthetic_count(void *self)
{
    return OCT_SYNTHETIC_COUNT;
}

static oct_status make_part(const oct_feed_ctx *ctx, uint64_t sample, size_t i, oct_part *part, oct_err *err)
{
    const oct_input_desc *in = &ctx->inputs[i];
    int h, w, c;
    part->kind = OCT_PART_ROW;
    if (oct_synthetic_is_picture(in, &h, &w, &c)) {
        OCT_TRY(oct_array_create(&part->array, OCT_U8, 3, (const int64_t[]){ h, w, c }, err));
        oct_synthetic_picture(sample * ctx->n + i, h, w, c, part->array.data);
        return OCT_OK;
    }
    const size_t n = (size_t)row_elements(in), length = in->rank > 1 ? (size_t)in->dims[in->rank - 1] : 1;
    OCT_TRY(oct_array_create(&part->array, OCT_F32, in->rank - 1, in->dims + 1, err));
    oct_synthetic_row(sample / 2 * ctx->n + i, sample % 2 != 0, n, length, part->array.data);
    return OCT_OK;
}

static oct_status synthetic_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    maker *m = self;
    if (m->at >= OCT_SYNTHETIC_COUNT) {
        *end = true;
        return OCT_OK;
    }
    const int64_t at = m->at++;
    if (!(item->name = oct_strprintf(OCT_SYNTHETIC "[%lld]", (long long)at)))
        return oct_nomem(err);
    for (size_t i = 0; want && i < m->ctx->n; i++)
        OCT_TRY(make_part(m->ctx, (uint64_t)at, i, &item->parts[i], err));
    return OCT_OK;
}

static oct_status synthetic_rewind(void *self, oct_err *err)
{
    ((maker *)self)->at = 0;
    return OCT_OK;
}

static void synthetic_close(void *self)
{
    oct_free(self);
}

const oct_reader oct_read_synthetic = {
    .open = synthetic_open,
    .count = synthetic_count,
    .next = synthetic_next,
    .rewind = synthetic_rewind,
    .close = synthetic_close,
};
