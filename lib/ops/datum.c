#include "ops/datum.h"

#include <string.h>

static oct_status new_item(oct_datum_kind kind, oct_datum **out, oct_err *err)
{
    oct_datum *x = oct_calloc(1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    x->kind = kind;
    x->refs = 1;
    *out = x;
    return OCT_OK;
}

/* Sets type and shape; the bytes are still to come. */
static oct_status new_tensor(oct_dtype t, int rank, const int64_t *dims, oct_datum **out, oct_err *err)
{
    int64_t count = 0;
    size_t bytes = 0;
    if (rank < 0 || rank > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "a tensor of %d dimensions; at most %d are supported", rank,
                        OCT_MAX_RANK);
    if (!oct_count(dims, rank, &count) || count > (int64_t)(SIZE_MAX / sizeof(oct_str)) ||
        !(t == OCT_STRING ? oct_mul_size((size_t)count, sizeof(oct_str), &bytes) : oct_dtype_bytes(t, count, &bytes)))
        return oct_fail(err, OCT_EMALFORMED, "a tensor of type %s is larger than memory can be", oct_dtype_name(t));
    OCT_TRY(new_item(OCT_DATUM_TENSOR, out, err));
    oct_datum *x = *out;
    if (rank)
        memcpy(x->dims, dims, (size_t)rank * sizeof *dims);
    x->t = (oct_tensor){ .dtype = t, .rank = rank, .dims = x->dims, .count = count, .bytes = bytes };
    return OCT_OK;
}

oct_status oct_datum_tensor(oct_dtype t, int rank, const int64_t *dims, oct_datum **out, oct_err *err)
{
    OCT_TRY(new_tensor(t, rank, dims, out, err));
    oct_datum *x = *out;
    x->t.data = t == OCT_STRING ? oct_calloc(x->t.bytes + 1, 1) : oct_alloc(x->t.bytes);
    if (x->t.data)
        return OCT_OK;
    *out = NULL;
    oct_free(x);
    return oct_nomem(err);
}

oct_status oct_datum_borrow(oct_dtype t, int rank, const int64_t *dims, const void *data, oct_datum **out, oct_err *err)
{
    OCT_TRY(new_tensor(t, rank, dims, out, err));
    (*out)->borrowed = true;
    (*out)->t.data = data;
    return OCT_OK;
}

oct_status oct_datum_strings(int rank, const int64_t *dims, const oct_str *s, oct_datum **out, oct_err *err)
{
    OCT_TRY(new_tensor(OCT_STRING, rank, dims, out, err));
    oct_datum *x = *out;
    size_t size = x->t.bytes;
    bool fits = true;
    for (int64_t i = 0; i < x->t.count; i++)
        fits &= oct_add_size(size, s[i].n, &size);
    oct_str *to = fits ? oct_alloc(size) : NULL;
    if (!to) {
        *out = NULL;
        oct_free(x);
        return oct_nomem(err);
    }
    char *bytes = (char *)to + x->t.bytes;
    for (int64_t i = 0; i < x->t.count; i++) {
        if (s[i].n)
            memcpy(bytes, s[i].s, s[i].n);
        to[i] = (oct_str){ bytes, s[i].n };
        bytes += s[i].n;
    }
    x->t.data = to;
    return OCT_OK;
}

oct_status oct_datum_sequence(oct_dtype elem, oct_datum **out, oct_err *err)
{
    OCT_TRY(new_item(OCT_DATUM_SEQUENCE, out, err));
    (*out)->elem = elem;
    return OCT_OK;
}

oct_status oct_datum_none(oct_datum **out, oct_err *err)
{
    return new_item(OCT_DATUM_NONE, out, err);
}

oct_datum *oct_datum_ref(oct_datum *x)
{
    x->refs++;
    return x;
}

void oct_datum_unref(oct_datum *x)
{
    if (!x || --x->refs)
        return;
    if (x->kind == OCT_DATUM_TENSOR && !x->borrowed)
        oct_free((void *)(uintptr_t)x->t.data);
    for (size_t i = 0; i < x->n; i++)
        oct_datum_unref(x->at[i]);
    oct_free(x->at);
    oct_free(x);
}

oct_status oct_datum_keep(oct_datum *x, oct_datum **kept, oct_err *err)
{
    if (!x->borrowed) {
        *kept = oct_datum_ref(x);
        return OCT_OK;
    }
    if (x->t.dtype == OCT_STRING)
        return oct_datum_strings(x->t.rank, x->dims, x->t.data, kept, err);
    OCT_TRY(oct_datum_tensor(x->t.dtype, x->t.rank, x->dims, kept, err));
    if (x->t.bytes)
        memcpy(oct_datum_data(*kept), x->t.data, x->t.bytes);
    return OCT_OK;
}

oct_status oct_datum_push(oct_datum *s, oct_datum *x, oct_err *err)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8, bytes;
        oct_datum **at = oct_mul_size(cap, sizeof *at, &bytes) ? oct_realloc(s->at, s->n * sizeof *at, bytes) : NULL;
        if (!at)
            return oct_nomem(err);
        s->at = at;
        s->cap = cap;
    }
    OCT_TRY(oct_datum_keep(x, &s->at[s->n], err));
    s->n++;
    return OCT_OK;
}

oct_status oct_datum_int(const oct_datum *x, const char *what, int64_t *v, oct_err *err)
{
    if (x->kind != OCT_DATUM_TENSOR || x->t.count != 1)
        return oct_fail(err, OCT_EMALFORMED, "%s is not a single number", what);
    switch (x->t.dtype) {
    case OCT_S64: *v = *(const int64_t *)x->t.data; return OCT_OK;
    case OCT_S32: *v = *(const int32_t *)x->t.data; return OCT_OK;
    case OCT_BOOL: *v = *(const uint8_t *)x->t.data != 0; return OCT_OK;
    default: return oct_fail(err, OCT_EMALFORMED, "%s has type %s", what, oct_dtype_name(x->t.dtype));
    }
}
