/* lib/ops/q8.h -- 8-bit quantized operands: tables of 256 codes, and what data movement does with them. */
#ifndef OCT_OPS_Q8_H
#define OCT_OPS_Q8_H

#include "ops/op.h"

/* u8 or s8 with one scale and zero point. */
bool oct_q8(const oct_operand *t);
/* Same type, scale and zero point. */
bool oct_q8_same(const oct_operand *a, const oct_operand *b);
static inline int oct_q8_min(const oct_operand *t)
{
    return t->dtype == OCT_S8 ? -128 : 0;
}
static inline int oct_q8_max(const oct_operand *t)
{
    return t->dtype == OCT_S8 ? 127 : 255;
}
/* Code of a real value on t's grid, as QuantizeLinear computes it; NaN gives the lowest code. */
int oct_q8_code(const oct_operand *t, float real);
/* real[i]: what the byte i of t stands for. */
void oct_q8_reals(const oct_operand *t, float real[256]);
/* table[byte of in] = byte of out for real values y[256] (y as oct_q8_reals, after a function). */
void oct_q8_codes(const oct_operand *out, const float y[256], uint8_t table[256]);
/* Codes that an epilogue's clamp allows on t: *lo..*hi. */
void oct_q8_clamp(const oct_operand *t, const oct_epilogue *e, int *lo, int *hi);

/* integer() of operators that only move data: input 0 and every output are q8. */
bool oct_q8_moves(const oct_step *s);
/* integer() of the same when bytes are shared (alias): the grids must be equal. */
bool oct_q8_aliases(const oct_step *s);
/* For a move from `in` to `out`: NULL when codes stay, else a table made in the arena. */
oct_status oct_q8_move_table(const oct_operand *in, const oct_operand *out, oct_arena *a, const uint8_t **table,
                             oct_err *err);
#endif
