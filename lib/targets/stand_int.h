/* lib/targets/stand_int.h -- within lib/targets: targets that find operators by the quantizers around them (around.c), or by what dequantizes their
 * inputs, before whatever it is carried through (carried.c). */
#ifndef OCT_TARGETS_STAND_INT_H
#define OCT_TARGETS_STAND_INT_H

#include "targets/stand.h"

/* Judges the nodes that are OCT_STANDS_FLOAT so far, by index. */
oct_status oct_target_stand_around(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err);
oct_status oct_target_stand_carried(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err);

/* ---- linear.c: QuantizeLinear and DequantizeLinear ---- */

/* A value's constant with data, or NULL. */
const oct_tensor *oct_linear_constant(const oct_graph *g, int value);
/* Whether n is of this type, and scales and zero points are constants. */
bool oct_linear_is(const oct_graph *g, const oct_node *n, const char *op);
/* The type of the quantized values. */
oct_dtype oct_linear_type(const oct_graph *g, const oct_node *q);
/* The first zero point, of 8 bits; 0 of other types, whose zero points are not asked for. */
int oct_linear_zero(const oct_graph *g, const oct_node *q);

#endif
