/* lib/ops/core/elem.h -- elements of any numeric type, through four domains in which operators compute:
 * float (for f32, f16, bf16), double, int64_t (signed integers, bool and unsigned ones up to 32 bits), uint64_t. */
#ifndef OCT_OPS_ELEM_H
#define OCT_OPS_ELEM_H

#include "ops/op.h"

typedef enum oct_dom {
    OCT_DOM_NONE, /* strings, complex, sub-byte and 8-bit float types */
    OCT_DOM_F,
    OCT_DOM_D,
    OCT_DOM_I,
    OCT_DOM_U
} oct_dom;

oct_dom oct_dom_of(oct_dtype t);
/* oct_op.prepare of an operator that takes numbers of any domain as input 0, and needs nothing else. */
oct_status oct_elem_prepare(oct_step *s, const oct_prep *p, oct_err *err);

/* A buffer for OCT_ND_CHUNK elements of any domain. */
typedef union oct_chunk {
    float f[1024];
    double d[1024];
    int64_t i[1024];
    uint64_t u[1024];
} oct_chunk;

/* n elements of type t, the first at base[offset], `stride` apart, in their own domain. Returns a pointer into base if
 * they are stored there in that form, else buf, filled. */
const void *oct_elem_load(oct_dtype t, const void *base, int64_t offset, int64_t stride, int64_t n, oct_chunk *buf);
/* The buffer in which to compute n elements for oct_elem_store: base itself if it can be written directly. */
void *oct_elem_buffer(oct_dtype t, void *base, int64_t offset, int64_t stride, oct_chunk *buf);
/* Converts n values of a domain to type t and stores them; does nothing if v is their destination. Integers wrap;
 * floats are truncated towards zero, saturate at 64 bits, NaN gives 0; any non-zero is true. */
void oct_elem_store(oct_dtype t, void *base, int64_t offset, int64_t stride, int64_t n, oct_dom from, const void *v);

/* Truncated; saturates, NaN gives 0. */
int64_t oct_int_of_double(double x);
/* One element of a constant or computed operand as an integer (truncated). */
int64_t oct_elem_int(const oct_operand *t, int64_t i);
double oct_elem_double(const oct_operand *t, int64_t i);
/* Keys of n <= 1024 elements, the first at `first`, `stride` apart, with the same order as the numbers (both zeros are
 * equal, NaN is last or first by its sign). */
void oct_elem_keys(const oct_operand *t, int64_t first, int64_t stride, int64_t n, uint64_t *keys);
/* Bytes of one element; 0 for packed types and strings. */
size_t oct_elem_size(oct_dtype t);

/* oct_step.overwrites of an operator that processes its first n inputs and output 0 element by element: the inputs with
 * the output's type and layout. */
uint32_t oct_elem_overwrites(const oct_step *s, int n);

bool oct_elem_by_rows(const oct_step *s); /* oct_op.by_rows of functions of elements: always */

#endif
