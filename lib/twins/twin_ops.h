/* lib/twins/twin_ops.h -- the operators, as functions that rules name. `how` is what the comment says, else NULL. */
#ifndef OCT_TWINS_TWIN_OPS_H
#define OCT_TWINS_TWIN_OPS_H

#include "twins/rescale.h"
#include "twins/twin_int.h"

#define OCT_TWIN_OPERATOR(name) oct_status name(const oct_twin_call *c, const void *how, oct_err *err)

/* Roundings for a zero point that is 0, and for others: XNNPACK takes what has none. */
typedef struct oct_twin_by_zero {
    const oct_rescaling *none, *some;
} oct_twin_by_zero;

/* twin_conv.c, twin_matmul.c: products of int8; how: const oct_rescaling *. */
OCT_TWIN_OPERATOR(oct_twin_conv);
OCT_TWIN_OPERATOR(oct_twin_depthwise);
OCT_TWIN_OPERATOR(oct_twin_transpose_conv);
OCT_TWIN_OPERATOR(oct_twin_dense);
OCT_TWIN_OPERATOR(oct_twin_matmul);
OCT_TWIN_OPERATOR(oct_twin_matmul_by_zero); /* how: const oct_twin_by_zero *, of the second factor */
OCT_TWIN_OPERATOR(oct_twin_matmul_real);    /* of float32 */

/* twin_pool.c */
OCT_TWIN_OPERATOR(oct_twin_average_pool);      /* how: const oct_rescaling *, for the bounds of its activation alone */
OCT_TWIN_OPERATOR(oct_twin_average_pool_tosa); /* by a factor, without its activation */
OCT_TWIN_OPERATOR(
    oct_twin_max_pool); /* how: as of averages, or NULL: without its activation, which TOSA's converter drops */

/* The window of a pool, of any type. */
oct_status oct_twin_pool_window(const oct_twin_call *c, oct_twin_window *w, oct_err *err);

/* twin_binary.c: two operands of int8, one of which may be repeated along axes. */
OCT_TWIN_OPERATOR(oct_twin_add_fixed);   /* ADD, SUB by multipliers of 31 bits; how: const oct_rescaling * */
OCT_TWIN_OPERATOR(oct_twin_add_sixteen); /* the same of int16, where vectors round otherwise */
OCT_TWIN_OPERATOR(oct_twin_add_shift);   /* by multipliers of 21 bits that share a shift; how: const oct_rescaling * */
OCT_TWIN_OPERATOR(oct_twin_mul);         /* how: const oct_rescaling * */
OCT_TWIN_OPERATOR(oct_twin_prelu);       /* how: const oct_rescaling * */
OCT_TWIN_OPERATOR(oct_twin_extreme);     /* MAXIMUM, MINIMUM of equal scales */

/* twin_mean.c */
OCT_TWIN_OPERATOR(oct_twin_mean_fixed); /* how: const oct_rescaling * */
OCT_TWIN_OPERATOR(oct_twin_mean_float);
OCT_TWIN_OPERATOR(oct_twin_reduce_extreme); /* REDUCE_MAX, REDUCE_MIN */
/* places: for each element, that of the result into which the axes of the second operand take it, whether these stay or
 * not; in scratch. each: how many elements a result has. */
oct_status oct_twin_reduced(const oct_twin_call *c, const int64_t **places, int64_t *each, oct_err *err);

/* twin_table.c: functions of one number of 8 bits; how: const oct_twin_table *. */
typedef int32_t oct_twin_table_fn(const oct_twin_call *c, int32_t x);
typedef struct oct_twin_table {
    oct_twin_table_fn *of;
} oct_twin_table;
OCT_TWIN_OPERATOR(oct_twin_apply_table);
extern const oct_twin_table oct_table_logistic_float, oct_table_tanh_float, oct_table_logistic_fixed,
    oct_table_tanh_fixed, oct_table_hard_swish_fixed, oct_table_leaky_fixed, oct_table_leaky_shift,
    oct_table_relu_fixed, oct_table_relu6_clamp, oct_table_requantize_fixed, oct_table_requantize_shift,
    oct_table_abs_fixed, oct_table_function_away; /* the last: EXP, LOG, ELU, GELU */
/* twin_tosa_ops.c */
extern const oct_twin_table oct_table_function_tosa, oct_table_leaky_tosa, oct_table_requantize_tosa,
    oct_table_relu_tosa;
OCT_TWIN_OPERATOR(oct_twin_softmax_tosa);

/* twin_softmax.c */
OCT_TWIN_OPERATOR(oct_twin_softmax_fixed);
OCT_TWIN_OPERATOR(oct_twin_softmax_float);
/* of: exponentials in fixed point, by how far below the largest; -1: 0. */
void oct_twin_exponentials(const oct_twin_call *c, int32_t of[256]);

/* wide/twin_lstm.c: UNIDIRECTIONAL_SEQUENCE_LSTM; how: const struct oct_twin_lstm *. */
OCT_TWIN_OPERATOR(oct_twin_lstm);
OCT_TWIN_OPERATOR(oct_twin_lstm_real); /* of float32 */
extern const struct oct_twin_lstm oct_twin_lstm_fixed,
    oct_twin_lstm_table; /* logistic and tanh in fixed point, or by a table */

/* wide/twin_wide.c: SOFTMAX of int16; how: const struct oct_twin_softmax_wide *. */
OCT_TWIN_OPERATOR(oct_twin_softmax_wide);
extern const struct oct_twin_softmax_wide oct_twin_softmax_single, oct_twin_softmax_double, oct_twin_softmax_wraps;

/* twin_quantize.c: reals to int8 and back. */
OCT_TWIN_OPERATOR(oct_twin_quantize_away); /* divided, half away from zero */
OCT_TWIN_OPERATOR(oct_twin_quantize_even); /* times the reciprocal, half to even */
OCT_TWIN_OPERATOR(oct_twin_quantize_wrap); /* the same, and what is beyond 8 bits is cut off */
OCT_TWIN_OPERATOR(oct_twin_dequantize);
OCT_TWIN_OPERATOR(oct_twin_requantize); /* integers to others; how: const oct_rescaling * */

/* twin_resize.c */
OCT_TWIN_OPERATOR(oct_twin_bilinear_fixed); /* weights of 10 bits each way */
OCT_TWIN_OPERATOR(oct_twin_bilinear_shift); /* weights of 11 bits, of which the first is rounded */
OCT_TWIN_OPERATOR(oct_twin_bilinear_tosa);  /* weights that are whole */
OCT_TWIN_OPERATOR(oct_twin_bilinear_real);  /* of float32 */
OCT_TWIN_OPERATOR(oct_twin_nearest);
OCT_TWIN_OPERATOR(oct_twin_nearest_tosa);

OCT_TWIN_OPERATOR(oct_twin_div_tosa); /* twin_real.c: DIV of float32 as a product with the reciprocal */

/* twin_move.c, twin_real.c, twin_real_layers.c: lists of rules that all twins share. */
extern const oct_twin_rule oct_twin_moves[], oct_twin_reals[], oct_twin_real_layers[];
float oct_twin_activated(const oct_twin_call *c, int slot, float x); /* by the activation that is fused into it */
/* twin_builtin.c: what runtimes with the reference kernels of TensorFlow Lite share; of those for microcontrollers; of
 * others. wide: on int16, of runtimes and of TOSA. */
extern const oct_twin_rule oct_twin_builtin[], oct_twin_micro[], oct_twin_large[], oct_twin_wide[],
    oct_twin_tosa_wide[];

#endif
