/* lib/ops/attention/projected.h -- attention whose queries, keys and values are columns of one product with merged
 * weights: Attention and QAttention of com.microsoft. They differ in the product. */
#ifndef OCT_OPS_PROJECTED_H
#define OCT_OPS_PROJECTED_H

#include "ops/attention/merged.h"

/* Slots of the inputs; -1: the operator has none. */
typedef struct oct_projected_slots {
    int x, weights, bias, mask, past, scores, end;
} oct_projected_slots;

typedef struct oct_projected {
    oct_merged m;
    const oct_projected_slots *at;
    int64_t h[3]; /* hidden sizes of queries, keys and values */
    size_t rows_at;
} oct_projected;

/* Shapes of the output and of the present state, and their type. */
oct_status oct_projected_infer(const oct_infer *c, const oct_projected_slots *at, oct_dtype type, oct_err *err);

/* Plans all but the product, whose rows f32[batch * length][columns] are in the scratch: takes from s->scratch, which
 * must be 0. */
oct_status oct_projected_prepare(oct_projected *t, oct_step *s, const oct_projected_slots *at, const oct_prep *p,
                                 oct_err *err);

static inline float *oct_projected_rows(const oct_projected *t, const oct_run *r)
{
    return (float *)(void *)((char *)r->scratch + t->rows_at);
}

/* From the rows on. */
oct_status oct_projected_run(const oct_projected *t, const oct_step *s, const oct_run *r, oct_err *err);

#endif
