/* Operators that move elements and compute nothing: they are the same in all runtimes. */
#include "twins/twin_ops.h"

#include <string.h>

static size_t element(const oct_twin_call *c, int i)
{
    return oct_tfl_type_bytes(c->in[i]->t->type);
}

/* Moves keep the integers, so both sides must mean the same by them. */
static oct_status same_kind(const oct_twin_call *c, const oct_twin_tensor *x, const oct_twin_tensor *y, oct_err *err)
{
    if (!x || !y || x->t->type != y->t->type)
        return oct_twin_unfit(c, "its operands have other types than its result", err);
    if (x->scale > 0 && y->scale > 0 && (x->scale != y->scale || x->zero != y->zero))
        return oct_twin_cannot(c, err, "its result has another scale than its operand");
    return OCT_OK;
}

static oct_status reshape(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    OCT_TRY(same_kind(c, c->in[0], c->out[0], err));
    if (c->in[0]->count != c->out[0]->count)
        return oct_twin_unfit(c, "its result has another size", err);
    memmove(c->out[0]->data, c->in[0]->data, (size_t)c->in[0]->count * element(c, 0));
    return OCT_OK;
}

/* Element i of the result comes from `first` + the sum of step[k] times its place along axis k; axes in front are
 * outer. */
static void gather(const oct_twin_tensor *y, const char *x, size_t bytes, int64_t first, const int64_t *step)
{
    int64_t at[OCT_MAX_RANK] = { 0 };
    char *to = y->data;
    for (int64_t i = 0, from = first; i < y->count; i++, to += bytes) {
        memcpy(to, x + (size_t)from * bytes, bytes);
        for (int k = y->t->rank - 1; k >= 0; k--) {
            from += step[k];
            if (++at[k] < y->t->dims[k])
                break;
            from -= step[k] * at[k];
            at[k] = 0;
        }
    }
}

static void strides(const oct_tfl_tensor *t, int64_t stride[OCT_MAX_RANK])
{
    int64_t step = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= t->dims[k];
    }
}

static oct_status transpose(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_tfl_tensor *x = c->in[0]->t, *y = c->out[0]->t;
    int64_t perm[OCT_MAX_RANK], stride[OCT_MAX_RANK], step[OCT_MAX_RANK];
    int n;
    (void)how;
    OCT_TRY(same_kind(c, c->in[0], c->out[0], err));
    OCT_TRY(oct_twin_numbers(c, 1, perm, &n, err));
    strides(x, stride);
    unsigned seen = 0;
    for (int k = 0; k < n && n == x->rank && n == y->rank; k++) {
        if (perm[k] < 0 || perm[k] >= n || x->dims[perm[k]] != y->dims[k])
            return oct_twin_unfit(c, "its axes do not fit", err);
        seen |= 1u << perm[k];
        step[k] = stride[perm[k]];
    }
    if (n != x->rank || n != y->rank || seen + 1 != 1u << n)
        return oct_twin_unfit(c, "its axes do not fit", err);
    gather(c->out[0], c->in[0]->data, element(c, 0), 0, step);
    return OCT_OK;
}

static oct_status concat(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_tfl_tensor *y = c->out[0]->t;
    int64_t axis = oct_tfl_option(c->op, OCT_TFL_CONCAT_AXIS, 0), outer = 1, inner = 1, sum = 0, begin = 0;
    (void)how;
    axis += axis < 0 ? y->rank : 0;
    if (axis < 0 || axis >= y->rank)
        return oct_twin_unfit(c, "its axis is not there", err);
    for (int k = 0; k < y->rank; k++) {
        outer *= k < axis ? y->dims[k] : 1;
        inner *= k > axis ? y->dims[k] : 1;
    }
    for (int i = 0; i < c->n_in; i++) {
        OCT_TRY(same_kind(c, c->in[i], c->out[0], err));
        const oct_tfl_tensor *x = c->in[i]->t;
        if (x->rank != y->rank || c->in[i]->count != outer * x->dims[axis] * inner)
            return oct_twin_unfit(c, "its operands do not fit", err);
        sum += x->dims[axis];
    }
    if (sum != y->dims[axis])
        return oct_twin_unfit(c, "its operands do not fit", err);
    for (int i = 0; i < c->n_in; i++) {
        const size_t bytes = element(c, i), each = (size_t)(c->in[i]->t->dims[axis] * inner) * bytes;
        for (int64_t o = 0; o < outer; o++)
            memcpy((char *)c->out[0]->data + (size_t)(o * sum * inner + begin) * bytes,
                   (const char *)c->in[i]->data + (size_t)o * each, each);
        begin += c->in[i]->t->dims[axis] * inner;
    }
    return OCT_OK;
}

/* The parts follow one another along the axis. */
static oct_status cut(const oct_twin_call *c, const oct_twin_tensor *x, int64_t axis, oct_err *err)
{
    int64_t stride[OCT_MAX_RANK], begin = 0;
    axis += axis < 0 ? x->t->rank : 0;
    if (axis < 0 || axis >= x->t->rank)
        return oct_twin_unfit(c, "its axis is not there", err);
    strides(x->t, stride);
    for (int i = 0; i < c->n_out; i++) {
        OCT_TRY(same_kind(c, x, c->out[i], err));
        const oct_tfl_tensor *y = c->out[i]->t;
        for (int k = 0; k < x->t->rank; k++)
            if (y->rank != x->t->rank || (k == axis ? begin + y->dims[k] > x->t->dims[k] : y->dims[k] != x->t->dims[k]))
                return oct_twin_unfit(c, "its parts do not fit", err);
        gather(c->out[i], x->data, oct_tfl_type_bytes(x->t->type), begin * stride[axis], stride);
        begin += y->dims[axis];
    }
    return OCT_OK;
}

static oct_status split(const oct_twin_call *c, const void *how, oct_err *err) /* the axis, the operand */
{
    int64_t axis[OCT_MAX_RANK];
    int n;
    (void)how;
    OCT_TRY(oct_twin_numbers(c, 0, axis, &n, err));
    return n == 1 ? cut(c, c->in[1], axis[0], err) : oct_twin_unfit(c, "it has no axis", err);
}

static oct_status split_sizes(const oct_twin_call *c, const void *how, oct_err *err) /* operand, sizes, axis */
{
    int64_t axis[OCT_MAX_RANK];
    int n;
    (void)how;
    OCT_TRY(oct_twin_numbers(c, 2, axis, &n, err));
    return n == 1 ? cut(c, c->in[0], axis[0], err) : oct_twin_unfit(c, "it has no axis", err);
}

/* A result from `begin` in steps, by the result's dimensions. */
static oct_status slice_from(const oct_twin_call *c, const int64_t *begin, const int64_t *by, oct_err *err)
{
    const oct_tfl_tensor *x = c->in[0]->t, *y = c->out[0]->t;
    int64_t stride[OCT_MAX_RANK], first = 0;
    OCT_TRY(same_kind(c, c->in[0], c->out[0], err));
    strides(x, stride);
    for (int k = 0; k < x->rank; k++) {
        const int64_t last = y->rank == x->rank ? begin[k] + (int64_t)(y->dims[k] - 1) * by[k] : -1;
        if (y->rank != x->rank ||
            (y->dims[k] > 0 && (begin[k] < 0 || begin[k] >= x->dims[k] || last < 0 || last >= x->dims[k])))
            return oct_twin_unfit(c, "it reaches over its operand", err);
        first += begin[k] * stride[k];
        stride[k] *= by[k];
    }
    gather(c->out[0], c->in[0]->data, element(c, 0), first, stride);
    return OCT_OK;
}

static oct_status slice(const oct_twin_call *c, const void *how, oct_err *err)
{
    static const int64_t ones[OCT_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    int64_t begin[OCT_MAX_RANK];
    int n;
    (void)how;
    OCT_TRY(oct_twin_numbers(c, 1, begin, &n, err));
    return n == c->in[0]->t->rank ? slice_from(c, begin, ones, err)
                                  : oct_twin_unfit(c, "its begin has another rank", err);
}

static oct_status strided_slice(const oct_twin_call *c, const void *how, oct_err *err)
{
    const int rank = c->in[0]->t->rank;
    const int32_t mask = oct_tfl_option(c->op, OCT_TFL_STRIDED_SLICE_BEGIN_MASK, 0);
    int64_t begin[OCT_MAX_RANK], by[OCT_MAX_RANK];
    int n, m;
    (void)how;
    OCT_TRY(oct_twin_numbers(c, 1, begin, &n, err));
    OCT_TRY(oct_twin_numbers(c, 3, by, &m, err));
    if (n != rank || m != rank)
        return oct_twin_cannot(c, err, "its begin or step has another rank than its operand");
    for (int slot = 2; slot <= 4; slot++)
        if (oct_tfl_option(c->op, slot, 0))
            return oct_twin_cannot(c, err, "it has masks other than those of begin and end");
    for (int k = 0; k < rank; k++) {
        const int64_t most = c->in[0]->t->dims[k];
        if (by[k] == 0 || by[k] > INT32_MAX || by[k] < -INT32_MAX)
            return oct_twin_unfit(c, "its step is 0", err);
        begin[k] += begin[k] < 0 ? most : 0;
        if (mask >> k & 1)
            begin[k] = by[k] > 0 ? 0 : most - 1;
        begin[k] = begin[k] < 0 ? 0 : begin[k] >= most ? most - 1 : begin[k];
    }
    return slice_from(c, begin, by, err);
}

/* The pads in front of each axis; n[k] fits between them. */
static oct_status read_pads(const oct_twin_call *c, int64_t front[OCT_MAX_RANK], oct_err *err)
{
    const oct_tfl_tensor *x = c->in[0]->t, *y = c->out[0]->t, *p = c->n_in > 1 && c->in[1] ? c->in[1]->t : NULL;
    OCT_TRY(same_kind(c, c->in[0], c->out[0], err));
    if (!p || !p->data || p->type != OCT_TFL_INT32 || c->in[1]->count != 2 * (int64_t)x->rank || y->rank != x->rank)
        return oct_twin_cannot(c, err, "its pads are no constant of 32-bit integers");
    for (int k = 0; k < x->rank; k++) {
        int32_t v[2];
        memcpy(v, (const char *)c->in[1]->data + 8 * k, sizeof v);
        if (v[0] < 0 || v[1] < 0 || (int64_t)v[0] + v[1] + x->dims[k] != y->dims[k])
            return oct_twin_unfit(c, "its pads do not fit its result", err);
        front[k] = v[0];
    }
    return OCT_OK;
}

/* PAD with zeros (of quantized values: the zero point), PADV2 with its third operand. */
static oct_status pad(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const size_t bytes = element(c, 0);
    int64_t front[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, step[OCT_MAX_RANK];
    char value[8] = { 0 };
    (void)how;
    OCT_TRY(read_pads(c, front, err));
    if (x->t->type == OCT_TFL_INT8 || x->t->type == OCT_TFL_UINT8)
        value[0] = (char)y->zero;
    if (c->n_in > 2 && c->in[2]) {
        OCT_TRY(same_kind(c, c->in[2], y, err));
        if (c->in[2]->count != 1)
            return oct_twin_unfit(c, "its value is not one", err);
        memcpy(value, c->in[2]->data, bytes);
    }
    for (int64_t i = 0; i < y->count; i++)
        memcpy((char *)y->data + (size_t)i * bytes, value, bytes);
    strides(y->t, step);
    int64_t to = 0;
    for (int k = 0; k < y->t->rank; k++)
        to += front[k] * step[k];
    for (int64_t i = 0; i < x->count; i++) {
        memcpy((char *)y->data + (size_t)to * bytes, (const char *)x->data + (size_t)i * bytes, bytes);
        for (int k = x->t->rank - 1; k >= 0; k--) {
            to += step[k];
            if (++at[k] < x->t->dims[k])
                break;
            to -= step[k] * at[k];
            at[k] = 0;
        }
    }
    return OCT_OK;
}

static oct_status mirror_pad(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const size_t bytes = element(c, 0);
    const int64_t edge = oct_tfl_option(c->op, OCT_TFL_MIRROR_PAD_MODE, 0) ? 0 : 1; /* 1: it is not repeated */
    int64_t front[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, step[OCT_MAX_RANK];
    (void)how;
    OCT_TRY(read_pads(c, front, err));
    strides(x->t, step);
    for (int k = 0; k < x->t->rank; k++)
        if (front[k] > x->t->dims[k] - edge || y->t->dims[k] - front[k] - x->t->dims[k] > x->t->dims[k] - edge)
            return oct_twin_unfit(c, "its pads are larger than its operand", err);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t from = 0;
        for (int k = 0; k < x->t->rank; k++) {
            const int64_t n = x->t->dims[k], p = at[k] - front[k];
            from += step[k] * (p < 0 ? -p - 1 + edge : p >= n ? 2 * n - 1 - edge - p : p);
        }
        memcpy((char *)y->data + (size_t)i * bytes, (const char *)x->data + (size_t)from * bytes, bytes);
        for (int k = y->t->rank - 1; k >= 0 && ++at[k] >= y->t->dims[k]; k--)
            at[k] = 0;
    }
    return OCT_OK;
}

static oct_status gather_axis(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *at = c->n_in > 1 ? c->in[1] : NULL, *y = c->out[0];
    int64_t axis = oct_tfl_option(c->op, OCT_TFL_GATHER_AXIS, 0), outer = 1, inner = 1;
    (void)how;
    OCT_TRY(same_kind(c, x, y, err));
    axis += axis < 0 ? x->t->rank : 0;
    if (!at || axis < 0 || axis >= x->t->rank || (at->t->type != OCT_TFL_INT32 && at->t->type != OCT_TFL_INT64))
        return oct_twin_unfit(c, "its axis is not there", err);
    if (oct_tfl_option(c->op, 1, 0))
        return oct_twin_cannot(c, err, "it has axes of a batch");
    for (int k = 0; k < x->t->rank; k++) {
        outer *= k < axis ? x->t->dims[k] : 1;
        inner *= k > axis ? x->t->dims[k] : 1;
    }
    if (y->count != outer * at->count * inner)
        return oct_twin_unfit(c, "its result has another size", err);
    const size_t each = (size_t)inner * element(c, 0);
    char *to = y->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < at->count; i++, to += each) {
            const int64_t v =
                at->t->type == OCT_TFL_INT32 ? ((const int32_t *)at->data)[i] : ((const int64_t *)at->data)[i];
            if (v < 0 || v >= x->t->dims[axis])
                return oct_twin_unfit(c, "an index is not there", err);
            memcpy(to, (const char *)x->data + (size_t)(o * x->t->dims[axis] + v) * each, each);
        }
    return OCT_OK;
}

/* DEPTH_TO_SPACE, and SPACE_TO_DEPTH, which is the way back. */
static oct_status blocks(const oct_twin_call *c, const void *how, oct_err *err)
{
    const bool back = c->op->code == OCT_TFL_SPACE_TO_DEPTH;
    const oct_twin_tensor *deep = back ? c->out[0] : c->in[0], *wide = back ? c->in[0] : c->out[0];
    const int64_t size = oct_tfl_option(c->op, OCT_TFL_BLOCK_SIZE, 0);
    (void)how;
    OCT_TRY(same_kind(c, c->in[0], c->out[0], err));
    const oct_tfl_tensor *d = deep->t, *w = wide->t;
    if (d->rank != 4 || w->rank != 4 || size < 1 || d->dims[0] != w->dims[0] || d->dims[1] * size != w->dims[1] ||
        d->dims[2] * size != w->dims[2] || w->dims[3] * size * size != d->dims[3])
        return oct_twin_unfit(c, "its block does not fit", err);
    const size_t each = (size_t)w->dims[3] * element(c, 0);
    for (int64_t b = 0; b < w->dims[0]; b++)
        for (int64_t y = 0; y < w->dims[1]; y++)
            for (int64_t x = 0; x < w->dims[2]; x++) {
                const int64_t at = ((b * w->dims[1] + y) * w->dims[2] + x),
                              from = (((b * d->dims[1] + y / size) * d->dims[2] + x / size) * size + y % size) * size +
                                     x % size;
                char *const u = (char *)wide->data + (size_t)at * each, *const v =
                                                                            (char *)deep->data + (size_t)from * each;
                memcpy(back ? v : u, back ? u : v, each);
            }
    return OCT_OK;
}

const oct_twin_rule oct_twin_moves[] = {
    { OCT_TFL_RESHAPE, OCT_TWIN_ANY, reshape, NULL },
    { OCT_TFL_TRANSPOSE, OCT_TWIN_ANY, transpose, NULL },
    { OCT_TFL_CONCATENATION, OCT_TWIN_ANY, concat, NULL },
    { OCT_TFL_SPLIT, OCT_TWIN_ANY, split, NULL },
    { OCT_TFL_SPLIT_V, OCT_TWIN_ANY, split_sizes, NULL },
    { OCT_TFL_SLICE, OCT_TWIN_ANY, slice, NULL },
    { OCT_TFL_STRIDED_SLICE, OCT_TWIN_ANY, strided_slice, NULL },
    { OCT_TFL_PAD, OCT_TWIN_ANY, pad, NULL },
    { OCT_TFL_PADV2, OCT_TWIN_ANY, pad, NULL },
    { OCT_TFL_MIRROR_PAD, OCT_TWIN_ANY, mirror_pad, NULL },
    { OCT_TFL_GATHER, OCT_TWIN_ANY, gather_axis, NULL },
    { OCT_TFL_DEPTH_TO_SPACE, OCT_TWIN_ANY, blocks, NULL },
    { OCT_TFL_SPACE_TO_DEPTH, OCT_TWIN_ANY, blocks, NULL },
    { OCT_TFL_RESIZE_NEAREST_NEIGHBOR, OCT_TWIN_ANY, oct_twin_nearest, NULL },
    { OCT_TFL_REDUCE_MAX, OCT_TWIN_INT8, oct_twin_reduce_extreme, NULL },
    { OCT_TFL_REDUCE_MIN, OCT_TWIN_INT8, oct_twin_reduce_extreme, NULL },
    { OCT_TFL_MAXIMUM, OCT_TWIN_INT8, oct_twin_extreme, NULL },
    { OCT_TFL_MINIMUM, OCT_TWIN_INT8, oct_twin_extreme, NULL },
    { OCT_TFL_DEQUANTIZE, OCT_TWIN_ANY, oct_twin_dequantize, NULL },
    { 0, 0, NULL, NULL },
};
