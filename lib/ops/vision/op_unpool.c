/* lib/ops/vision/op_unpool.c -- MaxUnpool: values go back to where MaxPool took them from, zeros elsewhere. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/nn/window.h"

#include <assert.h>
#include <string.h>

/* Size along spatial dimension i that the indices refer to: what MaxPool was given. */
static int64_t source_size(const oct_window *w, int i, int64_t in)
{
    if (in > INT32_MAX)
        return -1;
    return (in - 1) * w->stride[i] - w->before[i] - w->after[i] + w->kernel[i];
}

static oct_status unpool_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), at = oct_in_shape(c, 1);
    oct_dim d[OCT_MAX_RANK];
    int64_t given[OCT_MAX_RANK + 1];
    oct_window w;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 3 || x.rank > 2 + OCT_SPATIAL_MAX || (at.rank >= 0 && at.rank != x.rank))
        return oct_fail(err, OCT_EMALFORMED, "an input of %d dimensions with indices of %d", x.rank, at.rank);
    OCT_TRY(oct_window_read(oct_in_node(c), x.rank - 2, NULL, &w, err));
    const int n = oct_arg_ints(c, NULL, 2, given, OCT_MAX_RANK + 1);
    if (n >= 0 && n != x.rank)
        return oct_fail(err, OCT_EMALFORMED, "output_shape has %d sizes for %d dimensions", n, x.rank);
    for (int i = 0; i < x.rank; i++) {
        d[i] = i < 2 ? x.d[i] : (oct_dim){ -1, NULL };
        if (i >= 2 && x.d[i].n >= 0)
            d[i].n = source_size(&w, i - 2, x.d[i].n);
        if (x.d[i].n >= 0 && d[i].n < 0)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d of the output would be %lld", i, (long long)d[i].n);
        if (n == OCT_ARG_UNKNOWN && i >= 2)
            d[i] = (oct_dim){ -1, NULL };
        if (n >= 0 && (given[i] < 0 || (d[i].n >= 0 && given[i] < d[i].n)))
            return oct_fail(err, OCT_EMALFORMED,
                            "output_shape asks for %lld along dimension %d, at least %lld are needed",
                            (long long)given[i], i, (long long)d[i].n);
        if (n >= 0)
            d[i] = oct_dim_of(given[i]);
    }
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status unpool_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0];
    if (oct_elem_size(x->dtype) == 0 || s->in[1]->dtype != OCT_S64 || s->in[1]->count != x->count)
        return oct_fail(err, OCT_EMALFORMED, "there is not one int64 index for each value");
    return OCT_OK;
}

static oct_status unpool_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const int64_t *index = s->in[1]->data;
    const size_t size = oct_elem_size(x->dtype);
    int64_t source[OCT_MAX_RANK] = { 0 }, stride[OCT_MAX_RANK] = { 0 }, count;
    oct_window w;
    OCT_TRY(oct_window_read(s->node, x->rank - 2, NULL, &w, err));
    for (int i = 0; i < x->rank; i++) {
        source[i] = i < 2 ? x->dims[i] : source_size(&w, i - 2, x->dims[i]);
        if (source[i] < 0 || source[i] > y->dims[i])
            return oct_fail(err, OCT_EMALFORMED, "dimension %d of the output is %lld, at least %lld are needed", i,
                            (long long)y->dims[i], (long long)source[i]);
    }
    if (!oct_count(source, x->rank, &count))
        return oct_fail(err, OCT_EMALFORMED, "the output has more elements than can be counted");
    oct_operand_strides(y, stride);
    memset(y->data, 0, (size_t)y->count * size);
    for (int64_t e = 0; e < x->count; e++) {
        int64_t rest = index[e], at = 0;
        if (rest < 0 || rest >= count)
            return oct_fail(err, OCT_EMALFORMED, "index %lld of %lld elements", (long long)rest, (long long)count);
        for (int i = x->rank - 1; i >= 0; i--) {
            assert(source[i] > 0); /* an index is below their product */
            at += rest % source[i] * stride[i];
            rest /= source[i];
        }
        memcpy((char *)y->data + (size_t)at * size, (const char *)x->data + (size_t)e * size, size);
    }
    return OCT_OK;
}

const oct_op oct_op_max_unpool = {
    OCT_SCHEMA("MaxUnpool", "", 9, 2, 3, 1, 1),
    .infer = unpool_infer,
    .prepare = unpool_prepare,
    .run = unpool_run,
};
