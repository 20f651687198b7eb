/* lib/runtime/lower_int.h -- what the files of lowering share: lower.c (nodes), values.c (operands, and steps between codes and reals),
 * products.c (products that are quantized when run, or have weights in blocks). */
#ifndef OCT_RUNTIME_LOWER_INT_H
#define OCT_RUNTIME_LOWER_INT_H

#include "ops/core/quantized.h"
#include "runtime/plan_int.h"

/* A value that is quantized when run: its codes, and what they stand for. */
typedef struct rt_dynamic {
    rt_operand *codes, *scale, *zero;
} rt_dynamic;

/* What is known of a value while lowering; p->value has its operand: codes where it is quantized, but for inputs. */
typedef struct rt_lowered {
    rt_operand *other; /* of a quantized value: the reals; of an input that is quantized: the codes */
    rt_dynamic *dynamic;
    const char *shown; /* the name under which it is tapped as it is, or NULL */
    const char *shown_reals; /* the name under which its reals are */
} rt_lowered;

typedef struct rt_lowering {
    oct_plan *p;
    oct_graph *g;
    bool *done; /* nodes that a step has taken in already */
    rt_lowered *value;
} rt_lowering;

/* The operand of a value as one reads it that computes on reals, made when first asked for: of what is quantized, after a step that
 * dequantizes it. */
oct_status rt_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err);
/* The operand of a value's codes. */
oct_status rt_codes(rt_lowering *l, int value, rt_operand **out, oct_err *err);
/* What a step writes that computes value on reals; rt_rounded, after the step, makes codes of it where it is quantized. */
oct_status rt_result(rt_lowering *l, int value, rt_operand **out, oct_err *err);
oct_status rt_rounded(rt_lowering *l, int value, rt_operand *result, oct_err *err);
/* Lowers a border (forms/forms.h). */
oct_status rt_lower_border(rt_lowering *l, int id, bool *made, oct_err *err);
/* An operand of no value: on constant data, which is not copied, or (NULL) of a step. */
oct_status rt_operand_on(rt_lowering *l, oct_dtype t, int rank, const int64_t *dims, const void *data, rt_operand **out, oct_err *err);

/* Follows a clamp behind a value when it may join the step: *value moves behind it. tapped_blocks: not when the value is tapped. */
void rt_join_clamp(rt_lowering *l, int *value, oct_epilogue *e, bool tapped_blocks);
/* Whether a value is tapped. */
bool rt_is_shown(const rt_lowering *l, int value);
/* Behind the step that makes a value's codes: its reals, where these are tapped. */
oct_status rt_show_reals(rt_lowering *l, int value, oct_err *err);
/* Shows `value` as output `slot` of a step when it is tapped. */
void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value);

/* Output 0 of the last step is value `end`, or what a clamp behind that makes; shown, and rounded where it is quantized. */
oct_status rt_finish(rt_lowering *l, rt_step *st, int end, oct_err *err);
/* Lowers a product that is quantized when run, with the addition of a constant row behind it. */
oct_status rt_lower_dynamic(rt_lowering *l, int id, oct_err *err);
/* Lowers a product of weights in blocks. */
oct_status rt_lower_blocks(rt_lowering *l, int id, oct_err *err);

#endif
