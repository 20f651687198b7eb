/* lib/runtime/lower_int.h -- what the files of lowering share: lower.c (nodes, quantized groups), lower_dynamic.c (chains of dynamic
 * quantization), blocks.c (weights in blocks). */
#ifndef OCT_RUNTIME_LOWER_INT_H
#define OCT_RUNTIME_LOWER_INT_H

#include "ops/traits.h"
#include "runtime/plan_int.h"

typedef struct rt_lowering {
    oct_plan *p;
    oct_graph *g;
    bool *done; /* nodes that a step has taken in already */
    const oct_quant **grid; /* by value: what its integers stand for, as far as steps have said so */
} rt_lowering;

/* Whether a node is this operator, of the default domain or com.microsoft. */
bool rt_is_op(const oct_node *n, const char *op);
/* The operand of a value, made when first asked for. */
oct_status rt_lower_operand(rt_lowering *l, int value, rt_operand **out, oct_err *err);
/* Follows a clamp behind a value when it may join the step: *value moves behind it; its node, or -1. tapped_blocks: not when the
 * value is tapped. */
int rt_join_clamp(rt_lowering *l, int *value, oct_epilogue *e, bool tapped_blocks);
/* Shows `value` as output `slot` of a step when it is tapped. */
void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value);

/* Lowers MatMulInteger - Cast - Mul [- Add] to one step, and repeated DynamicQuantizeLinear of one value to the first;
 * *made: nothing is left to do for this node. */
oct_status rt_lower_dynamic(rt_lowering *l, int id, bool *made, oct_err *err);

#endif
