/* lib/ops/tensor/op_arrange.c -- data moved whole: ReverseSequence, CenterCropPad, TensorScatter. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"

#include <string.h>

static oct_status move_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

/* ------------------------------------------------------------------ ReverseSequence */

static oct_status reverse_axes(const oct_node *n, int *batch, int *time, oct_err *err)
{
    int64_t b = oct_node_int(n, "batch_axis", 1), t = oct_node_int(n, "time_axis", 0);
    if (b < 0 || b > 1 || t != 1 - b)
        return oct_fail(err, OCT_EMALFORMED, "batch axis %lld and time axis %lld, expected 0 and 1 or 1 and 0",
                        (long long)b, (long long)t);
    *batch = (int)b;
    *time = (int)t;
    return OCT_OK;
}

static oct_status reverse_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), n = oct_in_shape(c, 1);
    int batch = 0, time = 1;
    OCT_TRY(reverse_axes(oct_in_node(c), &batch, &time, err));
    if (x.rank >= 0 && x.rank < 2)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 2 or more", x.rank);
    if (n.rank >= 0 && (n.rank != 1 || (x.rank >= 0 && n.d[0].n >= 0 && x.d[batch].n >= 0 && n.d[0].n != x.d[batch].n)))
        return oct_fail(err, OCT_EMALFORMED, "there is not one length for each sequence of the batch");
    return oct_out_like(c, 0, 0, err);
}

static oct_status reverse_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *len = s->in[1];
    int batch = 0, time = 1;
    OCT_TRY(reverse_axes(s->node, &batch, &time, err));
    if (len->dtype != OCT_S64 || len->count != x->dims[batch])
        return oct_fail(err, OCT_EMALFORMED, "the lengths are not one int64 for each sequence");
    if (x->count == 0)
        return OCT_OK;
    int64_t rows = x->dims[0] * x->dims[1], inner = x->count / rows, steps = x->dims[time];
    int64_t stride[2] = { x->dims[1], 1 };
    size_t bytes = (size_t)inner * oct_elem_size(x->dtype);
    for (int64_t b = 0; b < x->dims[batch]; b++) {
        int64_t n = ((const int64_t *)len->data)[b];
        if (n < 0 || n > steps)
            return oct_fail(err, OCT_EMALFORMED, "sequence %lld has length %lld of %lld steps", (long long)b,
                            (long long)n, (long long)steps);
        for (int64_t t = 0; t < steps; t++) {
            int64_t from = t < n ? n - 1 - t : t, base = b * stride[batch];
            memcpy((uint8_t *)s->out[0]->data + (size_t)(base + t * stride[time]) * bytes,
                   (const uint8_t *)x->data + (size_t)(base + from * stride[time]) * bytes, bytes);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_reverse_sequence = {
    OCT_SCHEMA("ReverseSequence", "", 10, 2, 2, 1, 1),
    .infer = reverse_infer,
    .prepare = move_prepare,
    .run = reverse_run,
    .moves = true,
    .bf16 = 28,
};

/* ------------------------------------------------------------------ CenterCropPad */

static oct_status crop_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK], size[OCT_MAX_RANK];
    int n_axes;
    uint32_t mask;
    const int64_t *axes = oct_node_ints(oct_in_node(c), "axes", &n_axes);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    if (axes != NULL)
        OCT_TRY(oct_axes_mask(axes, n_axes, x.rank, &mask, err));
    int wanted = axes != NULL ? n_axes : x.rank, n = oct_in_ints(c, 1, size, OCT_MAX_RANK);
    if (n >= 0 && n != wanted)
        return oct_fail(err, OCT_EMALFORMED, "%d sizes for %d axes", n, wanted);
    memcpy(d, x.d, (size_t)x.rank * sizeof *d);
    for (int i = 0; i < wanted; i++) {
        int axis = axes == NULL ? i : (int)(axes[i] < 0 ? axes[i] + x.rank : axes[i]);
        d[axis] = n >= 0 ? size[i] : (oct_dim){ -1, NULL };
        if (d[axis].n < -1 || d[axis].sym == oct_minus_one)
            return oct_fail(err, OCT_EMALFORMED, "axis %d would have a negative size", axis);
    }
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status crop_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    int64_t sx[OCT_MAX_RANK] = { 0 }, from = 0, to = 0;
    size_t size = oct_elem_size(x->dtype);
    oct_nd d;
    oct_nd_init(&d, y);
    oct_operand_strides(x, sx);
    bool whole = true;
    for (int i = 0; i < x->rank; i++) {
        int64_t more = y->dims[i] - x->dims[i];
        whole &= more <= 0;
        d.dims[i] = more < 0 ? y->dims[i] : x->dims[i];
        to += more > 0 ? more / 2 * d.stride[0][i] : 0;
        from += more < 0 ? -more / 2 * sx[i] : 0;
    }
    oct_nd_add_strides(&d, sx);
    if (!whole)
        memset(y->data, 0, (size_t)y->count * size);
    oct_nd_copy(&d, r->pool, (uint8_t *)y->data + (size_t)to * size, (const uint8_t *)x->data + (size_t)from * size,
                size, NULL);
    return OCT_OK;
}

const oct_op oct_op_center_crop_pad = {
    OCT_SCHEMA("CenterCropPad", "", 18, 2, 2, 1, 1),
    .infer = crop_infer,
    .prepare = move_prepare,
    .run = crop_run,
    .layout = OCT_RULE_ANY,
};

/* ------------------------------------------------------------------ TensorScatter */

static oct_status tensor_scatter_axis(const oct_node *n, int rank, int *axis, oct_err *err)
{
    OCT_TRY(oct_axis(oct_node_int(n, "axis", -2), rank, axis, err));
    return *axis > 0 ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "the sequence axis is 0, which is the batch");
}

static oct_status tensor_scatter_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), u = oct_in_shape(c, 1);
    int axis;
    if (x.rank >= 0 && u.rank >= 0) {
        if (x.rank != u.rank)
            return oct_fail(err, OCT_EMALFORMED, "the cache has %d dimensions, the update %d", x.rank, u.rank);
        OCT_TRY(tensor_scatter_axis(oct_in_node(c), x.rank, &axis, err));
        for (int i = 0; i < x.rank; i++)
            if (x.d[i].n >= 0 && u.d[i].n >= 0 && (i == axis ? u.d[i].n > x.d[i].n : u.d[i].n != x.d[i].n))
                return oct_fail(err, OCT_EMALFORMED, "dimension %d of the update is %lld, of the cache %lld", i,
                                (long long)u.d[i].n, (long long)x.d[i].n);
    }
    return oct_out_like(c, 0, 0, err);
}

static oct_status tensor_scatter_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const char *mode = oct_node_str(s->node, "mode", "linear");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'mode' is '%s'", mode);
    if (s->in[0]->dtype != s->in[1]->dtype)
        return oct_fail(err, OCT_EMALFORMED, "types %s and %s", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->in[1]->dtype));
    return move_prepare(s, p, err);
}

static oct_status tensor_scatter_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *u = s->in[1], *at = s->n_in > 2 ? s->in[2] : NULL;
    bool circular = strcmp(oct_node_str(s->node, "mode", "linear"), "circular") == 0;
    size_t size = oct_elem_size(x->dtype);
    int axis;
    OCT_TRY(tensor_scatter_axis(s->node, x->rank, &axis, err));
    const int64_t inner = oct_product(x->dims + axis + 1, x->rank - axis - 1), outer = oct_product(x->dims, axis);
    const int64_t longest = x->dims[axis], n = u->dims[axis];
    if (at != NULL && (at->dtype != OCT_S64 || at->count != x->dims[0]))
        return oct_fail(err, OCT_EMALFORMED, "the write indices are not one int64 for each sample");
    memcpy(s->out[0]->data, x->data, (size_t)x->count * size);
    for (int64_t o = 0; o < outer && u->count > 0; o++) {
        int64_t first = at != NULL ? ((const int64_t *)at->data)[o / (outer / x->dims[0])] : 0;
        if (first < 0 || (!circular && first > longest - n))
            return oct_fail(err, OCT_EMALFORMED, "%lld elements from index %lld do not fit a cache of %lld",
                            (long long)n, (long long)first, (long long)longest);
        for (int64_t k = 0; k < n; k++) {
            int64_t row = (first % longest + k) % longest;
            memcpy((uint8_t *)s->out[0]->data + (size_t)((o * longest + row) * inner) * size,
                   (const uint8_t *)u->data + (size_t)((o * n + k) * inner) * size, (size_t)inner * size);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_tensor_scatter = {
    OCT_SCHEMA("TensorScatter", "", 24, 2, 3, 1, 1),
    .infer = tensor_scatter_infer,
    .prepare = tensor_scatter_prepare,
    .run = tensor_scatter_run,
};
