/* lib/runtime/lower_int.h -- what the files of lowering share: lower.c (nodes), values.c (operands, and steps between
 * quantized values and reals), sums.c (sums that become part of a product). */
#ifndef OCT_RUNTIME_LOWER_INT_H
#define OCT_RUNTIME_LOWER_INT_H

#include "ops/core/quantized.h"
#include "runtime/plan_int.h"

/* What is known of a value while lowering. */
typedef struct rt_lowered {
    rt_operand *reals, *qvals; /* made when first asked for */
    rt_operand *scale, *zero;  /* of what is quantized when run; else NULL */
    size_t shown;              /* the tap that shows it as it is, or OCT_NO_TAP */
    size_t shown_reals;        /* the tap that shows its reals */
} rt_lowered;

typedef struct rt_lowering {
    oct_plan *p;
    oct_graph *g;
    bool *done; /* nodes that are part of an earlier step */
    rt_lowered *value;
} rt_lowering;

/* The operand of a value for a reader that computes on reals. A quantized value is dequantized by a step. */
oct_status rt_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err);
/* The operand of a value's quantized values. */
oct_status rt_qvals(rt_lowering *l, int value, rt_operand **out, oct_err *err);
/* The operand that a step on reals writes for a value. If the value is quantized, rt_rounded, called after the step,
 * quantizes it. */
oct_status rt_result(rt_lowering *l, int value, rt_operand **out, oct_err *err);
oct_status rt_rounded(rt_lowering *l, int value, rt_operand *result, oct_err *err);
/* Runs a step on constants now, without adding it to the plan: `out`, its output 0, becomes a constant. */
oct_status rt_run_now(rt_lowering *l, rt_step *st, rt_operand *out, oct_err *err);
oct_status rt_lower_border(rt_lowering *l, int id, oct_border border, oct_err *err);
/* An operand without a value: of constant data, which are not copied, or (NULL) of a step. */
oct_status rt_operand_on(rt_lowering *l, oct_dtype t, int rank, const int64_t *dims, const void *data, rt_operand **out,
                         oct_err *err);

/* Whether a value is tapped. */
bool rt_is_shown(const rt_lowering *l, int value);
/* To be called after the step that computes a quantized value: dequantizes it if its real values are tapped. */
oct_status rt_show_reals(rt_lowering *l, int value, oct_err *err);
/* Has output `slot` of a step shown as `value` if that is tapped. */
void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value);

/* Whether one of the two values that a node adds is the result of a product that has no other reader and can add the
 * other value itself. Then the product's step is removed from the plan, and st, which has the node's inputs, takes its
 * place. */
oct_status rt_join_sum(rt_lowering *l, const oct_node *n, rt_step *st, oct_err *err);

#endif
