/* Taking tensors apart and putting them together. */
#include "ops/core/infer.h"
#include "ops/datum.h"

#include <string.h>

/* Bytes of one element; strings move as pointers. 0: packed. */
static size_t element(oct_dtype t)
{
    return t == OCT_STRING ? sizeof(oct_str) : (size_t)oct_dtype_bits(t) / 8;
}

/* Replaces a tensor of strings with borrowed bytes by a copy that owns them. */
static oct_status own_strings(oct_datum **x, oct_err *err)
{
    oct_datum *copy;
    if ((*x)->t.dtype != OCT_STRING)
        return OCT_OK;
    oct_status s = oct_datum_strings((*x)->t.rank, (*x)->dims, (*x)->t.data, &copy, err);
    oct_datum_unref(*x);
    *x = s == OCT_OK ? copy : NULL;
    return s;
}

oct_status oct_datum_range(const oct_datum *x, int axis, int64_t at, int64_t n, bool keep_dim, oct_datum **out,
                           oct_err *err)
{
    const int64_t outer = oct_product(x->dims, axis), inner = oct_product(x->dims + axis + 1, x->t.rank - axis - 1);
    int64_t dims[OCT_MAX_RANK];
    size_t size = element(x->t.dtype);
    int rank = 0;
    for (int k = 0; k < x->t.rank; k++)
        if (k != axis || keep_dim)
            dims[rank++] = k == axis ? n : x->dims[k];
    if (!size)
        return oct_fail(err, OCT_EUNSUPPORTED, "parts of a tensor of %s cannot be taken", oct_dtype_name(x->t.dtype));
    const char *from = (const char *)x->t.data + (size_t)at * (size_t)inner * size;
    if (outer == 1)
        return oct_datum_borrow(x->t.dtype, rank, dims, from, out, err);
    OCT_TRY(oct_datum_tensor(x->t.dtype, rank, dims, out, err));
    size_t row = (size_t)(n * inner) * size, step = (size_t)(x->dims[axis] * inner) * size;
    char *to = oct_datum_data(*out);
    for (int64_t o = 0; o < outer && row; o++, to += row, from += step)
        memcpy(to, from, row);
    return own_strings(out, err);
}

static oct_status check_alike(const oct_datum *parts, oct_err *err)
{
    const oct_datum *a = parts->at[0];
    for (size_t i = 0; i < parts->n; i++) {
        const oct_datum *b = parts->at[i];
        if (b->kind != OCT_DATUM_TENSOR || b->t.dtype != a->t.dtype || b->t.rank != a->t.rank ||
            memcmp(a->dims, b->dims, (size_t)a->t.rank * sizeof *a->dims) != 0)
            return oct_fail(err, OCT_EMALFORMED,
                            "tensor %zu of those to be stacked has another shape or type than the first", i);
    }
    return OCT_OK;
}

/* The sequence is empty: the shape that inference found for an element, with 0 for unknown dimensions. */
static oct_status stack_none(int64_t axis, const oct_value *like, oct_datum **out, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK] = { 0 };
    int rank = like && like->shape.rank >= 0 && like->shape.rank < OCT_MAX_RANK ? like->shape.rank : 0;
    for (int k = 0, n = 0; k < rank; k++, n++) {
        n += n == axis;
        if (n <= rank)
            dims[n] = like->shape.d[k].n > 0 ? like->shape.d[k].n : 0;
    }
    if (axis >= 0 && axis <= rank)
        dims[axis] = 0;
    oct_dtype t = like && like->dtype != OCT_UNDEFINED ? like->dtype : OCT_F32;
    return oct_datum_tensor(t, rank + 1, dims, out, err);
}

oct_status oct_datum_stack(const oct_datum *parts, int64_t axis, bool reversed, const oct_value *like, oct_datum **out,
                           oct_err *err)
{
    int rank = parts->n ? parts->at[0]->t.rank : like && like->shape.rank >= 0 ? like->shape.rank : 0, to_axis;
    OCT_TRY(oct_axis(axis, rank + 1, &to_axis, err));
    if (!parts->n)
        return stack_none(to_axis, like, out, err);
    OCT_TRY(check_alike(parts, err));
    const oct_datum *a = parts->at[0];
    const int64_t outer = oct_product(a->dims, to_axis), inner = oct_product(a->dims + to_axis, rank - to_axis);
    int64_t dims[OCT_MAX_RANK + 1];
    size_t size = element(a->t.dtype);
    if (!size)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensors of %s cannot be joined", oct_dtype_name(a->t.dtype));
    for (int k = 0; k <= rank; k++)
        dims[k] = k == to_axis ? (int64_t)parts->n : a->dims[k - (k > to_axis)];
    OCT_TRY(oct_datum_tensor(a->t.dtype, rank + 1, dims, out, err));
    size_t row = (size_t)inner * size;
    for (size_t i = 0; i < parts->n && row; i++) {
        const char *from = parts->at[reversed ? parts->n - 1 - i : i]->t.data;
        char *to = (char *)oct_datum_data(*out) + i * row;
        for (int64_t o = 0; o < outer; o++, from += row, to += row * parts->n)
            memcpy(to, from, row);
    }
    return own_strings(out, err);
}

/* Sizes along the axis may differ, everything else may not. */
static oct_status check_joinable(const oct_datum *parts, int axis, int64_t *sum, oct_err *err)
{
    const oct_datum *a = parts->at[0];
    *sum = 0;
    for (size_t i = 0; i < parts->n; i++) {
        const oct_datum *b = parts->at[i];
        bool same = b->kind == OCT_DATUM_TENSOR && b->t.dtype == a->t.dtype && b->t.rank == a->t.rank;
        for (int k = 0; same && k < a->t.rank; k++)
            same = k == axis || a->dims[k] == b->dims[k];
        if (!same || __builtin_add_overflow(*sum, b->dims[axis], sum))
            return oct_fail(err, OCT_EMALFORMED, "tensor %zu of the sequence does not fit the first along axis %d", i,
                            axis);
    }
    return OCT_OK;
}

oct_status oct_datum_concat(const oct_datum *parts, int64_t axis, oct_datum **out, oct_err *err)
{
    if (!parts->n)
        return oct_fail(err, OCT_EMALFORMED, "an empty sequence cannot be joined");
    const oct_datum *a = parts->at[0];
    int64_t dims[OCT_MAX_RANK];
    const size_t size = element(a->t.dtype);
    int to_axis;
    OCT_TRY(oct_axis(axis, a->t.rank, &to_axis, err));
    if (a->t.rank < 1 || !size)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensors of %s and %d dimensions cannot be joined",
                        oct_dtype_name(a->t.dtype), a->t.rank);
    memcpy(dims, a->dims, sizeof dims);
    OCT_TRY(check_joinable(parts, to_axis, &dims[to_axis], err));
    OCT_TRY(oct_datum_tensor(a->t.dtype, a->t.rank, dims, out, err));
    const int64_t outer = oct_product(dims, to_axis);
    const size_t row = (size_t)oct_product(dims + to_axis + 1, a->t.rank - to_axis - 1) * size;
    char *to = oct_datum_data(*out);
    for (size_t i = 0; i < parts->n; i++) {
        size_t own = row * (size_t)parts->at[i]->dims[to_axis];
        const char *from = parts->at[i]->t.data;
        for (int64_t o = 0; o < outer && own; o++)
            memcpy(to + (size_t)o * row * (size_t)dims[to_axis], from + (size_t)o * own, own);
        to += own;
    }
    return own_strings(out, err);
}
