/* lib/ops/core/q8.h -- 8-bit quantized operands, for element-wise functions and data movement. */
#ifndef OCT_OPS_Q8_H
#define OCT_OPS_Q8_H

#include "kernels/qelem.h"
#include "ops/op.h"

/* u8 or s8 with one scale and zero point. */
bool oct_q8(const oct_operand *t);
/* Same type, scale and zero point. */
bool oct_q8_same(const oct_operand *a, const oct_operand *b);
/* Scale and zero point of a q8 operand. */
oct_qparam oct_q8_param(const oct_operand *t);
/* Quantized value of a real value with t's parameters, as QuantizeLinear computes it. */
int oct_q8_quantize(const oct_operand *t, float real);
/* Quantized values of t between the bounds of a clamp: *lo..*hi; the type's limits without one. */
void oct_q8_clamp(const oct_operand *t, const oct_epilogue *e, int32_t *lo, int32_t *hi);

/* integer() of operators that only move data: input 0 and every output are q8. */
bool oct_q8_moves(const oct_step *s);
/* integer() of the same when bytes are shared (alias): the parameters must be equal. */
bool oct_q8_aliases(const oct_step *s);
/* Members of records whose output has the elements of input 0 elsewhere, and of those whose output has its bytes. */
#define OCT_MOVES_ELEMENTS .moves = true, .layout = OCT_RULE_ANY, .integer = oct_q8_moves, .quant = OCT_QUANT_SAME
#define OCT_ALIASES_ELEMENTS .alias = true, .integer = oct_q8_aliases, .quant = OCT_QUANT_SAME
/* table[byte of in] = byte of out under f (NULL: requantization), made in the arena. */
oct_status oct_q8_table(const oct_operand *in, const oct_operand *out, const oct_unary *f, oct_arena *a,
                        const uint8_t **table, oct_err *err);
/* For a move from `in` to `out`: such a table; NULL if quantized values do not change, or nothing is quantized. */
oct_status oct_q8_move_table(const oct_operand *in, const oct_operand *out, oct_arena *a, const uint8_t **table,
                             oct_err *err);
#endif
