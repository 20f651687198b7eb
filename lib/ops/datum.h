/* lib/ops/datum.h -- what a value holds while a graph runs node by node: a tensor, a sequence, or nothing.
 *
 * Data do not change once they are made, and references to them are counted (all by one thread). A borrowed tensor's
 * bytes belong to someone else, who says how long they last; oct_datum_keep() gives one that lasts. */
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
/* Appends to a sequence that only the caller knows. x is kept, not taken. */
oct_status oct_datum_push(oct_datum *sequence, oct_datum *x, oct_err *err);
/* The bytes of a tensor that only the caller knows, to be filled. */
static inline void *oct_datum_data(oct_datum *x)
{
    return (void *)(uintptr_t)x->t.data;
}
/* One integer, or truth value, of a tensor with one element; OCT_EMALFORMED when it is none. what: for the message. */
oct_status oct_datum_int(const oct_datum *x, const char *what, int64_t *v, oct_err *err);

/* ---- parts (datum_parts.c); of packed types OCT_EUNSUPPORTED ---- */
/* The n parts of a tensor from `at` on along an axis; keep_dim: with that dimension, else n must be 1. Borrowed from x
 * where they lie in one piece. */
oct_status oct_datum_range(const oct_datum *x, int axis, int64_t at, int64_t n, bool keep_dim, oct_datum **out,
                           oct_err *err);
/* The tensors of a sequence along a new dimension `axis` (of the result; may be negative); reversed: the last comes
 * first. like: says type and shape of one where there are none; may be NULL. OCT_EMALFORMED when they differ in shape
 * or type. */
oct_status oct_datum_stack(const oct_datum *parts, int64_t axis, bool reversed, const oct_value *like, oct_datum **out,
                           oct_err *err);
/* The tensors of a sequence, one behind the other along an axis that they have. */
oct_status oct_datum_concat(const oct_datum *parts, int64_t axis, oct_datum **out, oct_err *err);

#endif
