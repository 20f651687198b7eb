/* lib/ops/core/infer.h -- helpers for the infer() functions of operator records.
 *
 * An input may be absent, or its type, rank or dimensions unknown; the getters report that, and infer() then leaves the
 * output unchanged. */
#ifndef OCT_OPS_INFER_H
#define OCT_OPS_INFER_H

#include "ops/op.h"

static inline const oct_node *oct_in_node(const oct_infer *c)
{
    return &c->g->node[c->node];
}
/* Value of an input or output; NULL if absent. */
const oct_value *oct_in_value(const oct_infer *c, int slot);
const oct_value *oct_out_value(const oct_infer *c, int slot);
/* Shape of an input; rank -1 if absent or unknown. */
oct_shape oct_in_shape(const oct_infer *c, int slot);
oct_dtype oct_in_dtype(const oct_infer *c, int slot); /* OCT_UNDEFINED if unknown */
/* Elements of an integer input (constant or propagated; s32 and s64), for shapes and axes: fills d with at most max
 * elements and returns their number; -1 when the number is unknown or above max. Unknown elements have n == -1. A
 * constant -1 (Reshape) reads as n == -1 with sym == oct_minus_one. Other negative constants keep their value. */
int oct_in_ints(const oct_infer *c, int slot, oct_dim *d, int max);
extern const char oct_minus_one[];
/* The same, but only when every element is a known number (negatives included): the count, or -1. */
int oct_in_consts(const oct_infer *c, int slot, int64_t *v, int max);

/* Sets the type of output `slot` (no-op when absent). */
void oct_out_dtype(const oct_infer *c, int slot, oct_dtype t);
/* Sets the shape; dimensions that are unknown here but declared in the model keep what was declared. A declared
 * dimension that contradicts a known one is OCT_EMALFORMED. */
oct_status oct_out_shape(const oct_infer *c, int slot, int rank, const oct_dim *d, oct_err *err);
/* Makes output `slot` a sequence or optional of tensors of type elem. */
void oct_out_kind(const oct_infer *c, int slot, oct_value_kind kind, oct_dtype elem);
/* Type and shape of input `from`. */
oct_status oct_out_like(const oct_infer *c, int slot, int from, oct_err *err);
/* The infer() of operators whose output 0 is like input 0. */
oct_status oct_infer_like(const oct_infer *c, oct_err *err);
/* Sets known elements of an integer output. */
oct_status oct_out_known(const oct_infer *c, int slot, int n, const oct_dim *d, oct_err *err);

static inline oct_dim oct_dim_of(int64_t n)
{
    return (oct_dim){ n, NULL };
}
bool oct_dim_same(oct_dim a, oct_dim b); /* both known and equal, or the same symbol */
/* Symbolic arithmetic: known numbers are computed; n/1, n*1, n+0 keep the symbol; everything else is unknown. */
oct_dim oct_dim_add(oct_dim a, oct_dim b);
oct_dim oct_dim_mul(oct_dim a, oct_dim b);
/* Multidirectional broadcasting of two shapes (rank <= OCT_MAX_RANK): the rank, or -1 when unknown. A clash is
 * OCT_EMALFORMED. */
oct_status oct_broadcast_dims(const oct_shape *a, const oct_shape *b, int *rank, oct_dim d[OCT_MAX_RANK], oct_err *err);
/* Axis in [-rank, rank) to [0, rank). */
oct_status oct_axis(int64_t axis, int rank, int *out, oct_err *err);

#endif
