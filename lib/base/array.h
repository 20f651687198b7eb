/* lib/base/array.h -- a small dense array: element type, shape and bytes in C order. */
#ifndef OCT_BASE_ARRAY_H
#define OCT_BASE_ARRAY_H

#include "base/dtype.h"

enum { OCT_ARRAY_RANK = 8 }; /* the largest rank of sample data */

typedef struct oct_array {
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_ARRAY_RANK];
    void *data; /* bytes in C order; aligned to 64 bytes when owned, of any alignment otherwise. Of OCT_STRING: oct_str
                   whose texts the array does not own (data/text/interned.h) */
    size_t bytes;
    bool owned; /* data is released by oct_array_free; otherwise it is a view */
} oct_array;

/* An input of the model that samples fill. */
typedef struct oct_input_desc {
    const char *name;
    oct_dtype dtype;
    int rank;            /* -1: unknown */
    const int64_t *dims; /* [rank], -1 for a free one; borrowed */
    bool unread;         /* no node reads it, so it holds zeros unless something else is asked for */
    bool takes_nan;      /* whatever reads it replaces NaN or tests for it, so that samples may have it */
    int past; /* 1 + the dimension that counts what a cache holds, which is empty if samples leave it out, or the rank
                 for the flag that says whether there is one; 0: neither */
} oct_input_desc;

/* Gives a an owned, uninitialised block for dtype and dims. OCT_EUNSUPPORTED for a rank above
 * OCT_ARRAY_RANK or a type without a size, OCT_EMALFORMED when the size overflows, OCT_ENOMEM. */
oct_status oct_array_create(oct_array *a, oct_dtype dtype, int rank, const int64_t *dims, oct_err *err);
void oct_array_free(oct_array *a);           /* leaves a zeroed; NULL and views allowed */
int64_t oct_array_count(const oct_array *a); /* elements */
/* Bytes of n elements in an array: as oct_dtype_bytes, and of strings n oct_str. */
bool oct_array_bytes(oct_dtype t, int64_t n, size_t *bytes);

/* "[3,224,224]" into dst; dims of -1 print as ?. Returns dst. */
char *oct_dims_text(char dst[96], int rank, const int64_t *dims);

/* Converts n elements. Allowed: integers and bool to any integer, bool or float type that holds every value exactly,
 * and floats to f32, f64, f16 and bf16, rounded to the nearest. From float to an integer type is OCT_EUNSUPPORTED.
 * OCT_ENUMERIC, with the index: an integer that the type does not hold, or a finite float that would become infinite.
 * src and dst need no alignment and must not overlap. */
oct_status oct_array_convert(oct_dtype from, const void *src, oct_dtype to, void *dst, size_t n, oct_err *err);

/* Index of the first NaN, or -1. Types other than f16, bf16, f32 and f64 hold none. */
int64_t oct_array_find_nan(const oct_array *a);

#endif
