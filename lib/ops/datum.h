/* lib/ops/datum.h -- the content of a value while a graph runs node by node: a tensor, a sequence, or nothing.
 *
 * Data are immutable and reference-counted, by one thread. The bytes of a borrowed tensor belong to someone else, who
 * defines how long they are valid; oct_datum_keep() gives a datum that stays valid. */
#ifndef OCT_OPS_DATUM_H
#define OCT_OPS_DATUM_H

#include "graph/graph.h"

typedef enum oct_datum_kind {
    OCT_DATUM_TENSOR,
    OCT_DATUM_SEQUENCE,
    OCT_DATUM_NONE /* an optional that holds nothing */
} oct_datum_kind;

typedef struct oct_datum {
    oct_datum_kind kind;
    int refs;
    bool borrowed;
    oct_tensor t; /* of a tensor; t.dims are `dims` */
    int64_t dims[OCT_MAX_RANK];
    struct oct_datum **at; /* of a sequence: n tensors */
    size_t n, cap;
    oct_dtype elem; /* of a sequence: the type of its tensors, as far as known */
} oct_datum;

/* Each makes a datum with one reference. */
/* A tensor that owns its bytes, which are uninitialised (strings: empty). OCT_ENOMEM, and OCT_EMALFORMED for sizes that
 * overflow. */
oct_status oct_datum_tensor(oct_dtype t, int rank, const int64_t *dims, oct_datum **out, oct_err *err);
/* A tensor whose bytes are data. */
oct_status oct_datum_borrow(oct_dtype t, int rank, const int64_t *dims, const void *data, oct_datum **out,
                            oct_err *err);
/* A tensor of strings; s[product of dims] is copied, its bytes too. */
oct_status oct_datum_strings(int rank, const int64_t *dims, const oct_str *s, oct_datum **out, oct_err *err);
oct_status oct_datum_sequence(oct_dtype elem, oct_datum **out, oct_err *err);
oct_status oct_datum_none(oct_datum **out, oct_err *err);

oct_datum *oct_datum_ref(oct_datum *x);
void oct_datum_unref(oct_datum *x); /* NULL allowed */
/* A reference to x, or to a copy where x is borrowed. */
oct_status oct_datum_keep(oct_datum *x, oct_datum **kept, oct_err *err);
/* Appends x to a sequence to which only the caller has a reference. The caller keeps its reference to x. */
oct_status oct_datum_push(oct_datum *sequence, oct_datum *x, oct_err *err);
/* The bytes of a tensor to which only the caller has a reference, to be filled. */
static inline void *oct_datum_data(oct_datum *x)
{
    return (void *)(uintptr_t)x->t.data;
}
/* The integer or truth value of a tensor with one element; OCT_EMALFORMED for other tensors. what: for the message. */
oct_status oct_datum_int(const oct_datum *x, const char *what, int64_t *v, oct_err *err);

/* ---- parts (datum_parts.c); of packed types OCT_EUNSUPPORTED ---- */
/* The slice of n indices from `at` on along an axis; keep_dim: keeps that dimension, else n must be 1. Borrowed from x
 * if it is contiguous. */
oct_status oct_datum_range(const oct_datum *x, int axis, int64_t at, int64_t n, bool keep_dim, oct_datum **out,
                           oct_err *err);
/* Stacks the tensors of a sequence along a new dimension `axis` (of the result; may be negative); reversed: the last
 * comes first. like: type and shape of a tensor if the sequence is empty; may be NULL. OCT_EMALFORMED if they differ in
 * shape or type. */
oct_status oct_datum_stack(const oct_datum *parts, int64_t axis, bool reversed, const oct_value *like, oct_datum **out,
                           oct_err *err);
/* Concatenates the tensors of a sequence along an existing axis. */
oct_status oct_datum_concat(const oct_datum *parts, int64_t axis, oct_datum **out, oct_err *err);

#endif
