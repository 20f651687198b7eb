/* lib/targets/stand_int.h -- internals of lib/targets, for targets that recognize operators by the quantizers around
 * them (around.c), or by dequantizers of their inputs, which other nodes may follow (carried.c). */
#ifndef OCT_TARGETS_STAND_INT_H
#define OCT_TARGETS_STAND_INT_H

#include "targets/stand.h"

/* Judges the nodes that are OCT_STANDS_FLOAT so far. stand is indexed by node. */
oct_status oct_target_stand_around(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand,
                                   oct_err *err);
oct_status oct_target_stand_carried(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand,
                                    oct_err *err);

/* ---- linear.c: QuantizeLinear and DequantizeLinear ---- */

/* The constant of a value, if it has data; or NULL. */
const oct_tensor *oct_linear_constant(const oct_graph *g, int value);
/* Whether n has this operator type, with constant scales and zero points. */
bool oct_linear_is(const oct_graph *g, const oct_node *n, const char *op);
/* The type of the quantized values. */
oct_dtype oct_linear_type(const oct_graph *g, const oct_node *q);
/* The first zero point, for types of 8 and 16 bits; 0 for other types, which no rule concerns. */
int oct_linear_zero(const oct_graph *g, const oct_node *q);
/* The i-th scale, or the only one; NaN: it is not float32. */
float oct_linear_scale(const oct_graph *g, const oct_node *q, int64_t i);
/* Whether the scale that dequantizes a bias is the product of those of input and weights, which x and w dequantize. */
bool oct_linear_fits_bias(const oct_graph *g, const oct_node *x, const oct_node *w, const oct_node *b);

#endif
