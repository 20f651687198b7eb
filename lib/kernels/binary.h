/* lib/kernels/binary.h -- functions of two f32, over arrays and with broadcasting. */
#ifndef OCT_KERNELS_BINARY_H
#define OCT_KERNELS_BINARY_H

#include "base/pool.h"

#define OCT_BROADCAST_RANK 8

typedef enum oct_binary_op {
    OCT_BINARY_ADD = 0,
    OCT_BINARY_SUB,
    OCT_BINARY_MUL,
    OCT_BINARY_DIV,
    OCT_BINARY_MIN, /* NaN when either is NaN */
    OCT_BINARY_MAX, /* NaN when either is NaN */
    OCT_BINARY_POW,
    OCT_BINARY_PRELU, /* a < 0 ? a * b : a      */
    OCT_BINARY_MOD,   /* with the sign of b      */
    OCT_BINARY_FMOD,  /* with the sign of a      */
    OCT_BINARY_COUNT
} oct_binary_op;

/* y[i] = f(a[i * sa], b[i * sb]) for i < n; sa, sb: elements; 0 repeats one value. 1/1, 1/0 and 0/1 are fast.
 * y may be a or b when that one's stride is 1. */
void oct_binary_f32(oct_pool *pool, oct_binary_op op, const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb,
                    float *y, size_t n);

/* Two operands broadcast to one output, dimensions outermost first. Strides are in elements; a stride of 0
 * repeats. The output's strides are free too, so any layouts may be mixed. */
typedef struct oct_broadcast {
    int rank; /* 0..OCT_BROADCAST_RANK */
    int64_t dims[OCT_BROADCAST_RANK];
    int64_t sa[OCT_BROADCAST_RANK], sb[OCT_BROADCAST_RANK], sy[OCT_BROADCAST_RANK];
} oct_broadcast;

/* Fills b for ONNX (NumPy) broadcasting of contiguous operands to a contiguous output. False when the shapes
 * do not broadcast or the rank is above OCT_BROADCAST_RANK. */
bool oct_broadcast_shapes(oct_broadcast *b, const int64_t *da, int ra, const int64_t *db, int rb);

/* Sorts dimensions by the output's strides, drops those of 1 and joins neighbours, in place; the meaning stays. The
 * callers below do it themselves. */
void oct_broadcast_collapse(oct_broadcast *b);

/* y = f(a, b) broadcast; y must not overlap an operand unless it is the same memory with the same strides. */
void oct_binary_f32_nd(oct_pool *pool, oct_binary_op op, const oct_broadcast *s, const float *a, const float *b,
                       float *y);

#endif
