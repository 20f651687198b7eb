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

/* A place for n <= OCT_ND_CHUNK elements of any domain. */
typedef union oct_chunk {
    float f[1024];
    double d[1024];
    int64_t i[1024];
    uint64_t u[1024];
} oct_chunk;

/* n elements of type t, the first at base[offset], `stride` apart, in their own domain. Returns a pointer into
 * base when they already lie there so, else to buf, filled. */
const void *oct_elem_load(oct_dtype t, const void *base, int64_t offset, int64_t stride, int64_t n, oct_chunk *buf);
/* Where to compute n elements that oct_elem_store will be given: base itself when it can be written directly. */
void *oct_elem_place(oct_dtype t, void *base, int64_t offset, int64_t stride, oct_chunk *buf);
/* Converts n values of a domain to type t and stores them; nothing to do when v is where they belong. Integers wrap;
 * floats are truncated towards zero, saturate at 64 bits, NaN gives 0; any non-zero is true. */
void oct_elem_store(oct_dtype t, void *base, int64_t offset, int64_t stride, int64_t n, oct_dom from, const void *v);

/* Truncated; saturates, NaN gives 0. */
int64_t oct_int_of_double(double x);
/* One element of a constant or computed operand as an integer (truncated). */
int64_t oct_elem_int(const oct_operand *t, int64_t i);
double oct_elem_double(const oct_operand *t, int64_t i);
/* An image of element i that orders as the numbers do (both zeros are equal, NaN comes last or first by its sign). */
uint64_t oct_elem_key(const oct_operand *t, int64_t i);
/* Bytes of one element; 0 for packed types and strings. */
size_t oct_elem_size(oct_dtype t);

/* oct_step.overwrites of an operator that goes through its first n inputs and output 0 element by element: those that
 * lie as the output does. */
uint32_t oct_elem_overwrites(const oct_step *s, int n);

#endif
