/* lib/ops/core/small.h -- elements of the small types: 2 and 4 bits (packed), and floats of 4 and 8 bits. */
#ifndef OCT_OPS_SMALL_H
#define OCT_OPS_SMALL_H

#include "base/dtype.h"

/* How float8e8m0 rounds to a power of two. */
typedef enum oct_small_round { OCT_SMALL_NEAREST, OCT_SMALL_UP, OCT_SMALL_DOWN } oct_small_round;

bool oct_is_small(oct_dtype t);
/* Whether t is one of the packed integers (U4, S4, U2, S2). */
bool oct_is_small_int(oct_dtype t);

/* Element i of a tensor; exact. NaN codes give NaN. */
float oct_small_get(oct_dtype t, const void *data, int64_t i);

/* To be called before a tensor of n elements is filled: clears the last byte, which elements may fill only partly. */
void oct_small_begin(oct_dtype t, void *data, int64_t n);
/* Stores v as element i: floats are rounded half to even (float8e8m0 as `round` says); beyond the range they become the
 * largest value when saturate is set, else infinity or NaN, as ONNX Cast-19 tells for each type. Integers take v, a
 * whole number of at most 32 bits, modulo their size. Other elements of the byte stay: writers of one tensor must not
 * run at once. */
void oct_small_set(oct_dtype t, void *data, int64_t i, float v, bool saturate, oct_small_round round);
void oct_small_set_int(oct_dtype t, void *data, int64_t i, int64_t v);

#endif
