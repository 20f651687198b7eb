/* lib/ops/attention/rope.h -- rotary position embedding: pairs of a head's values are rotated by angles that depend on
 * the position. */
#ifndef OCT_OPS_ROPE_H
#define OCT_OPS_ROPE_H

#include "ops/attention/attention.h"

typedef struct oct_rope {
    const float *cos, *sin; /* f32[positions][half] */
    int64_t positions, half;
    bool interleaved; /* pairs are neighbours, else `half` apart */
} oct_rope;

/* y = x with the first 2 * half values of each head rotated, the others copied. at[b * length + i] is the row of the
 * tables for position i of sample b. x and y are f32, may be the same memory with the same strides. OCT_EMALFORMED when
 * a row does not exist. */
oct_status oct_rope_run(const oct_rope *r, oct_pool *pool, const oct_heads *x, oct_attn_part y, const int64_t *at,
                        oct_err *err);

#endif
