/* lib/ops/nn/product.h -- what integer products share: the bias with scale s_x * s_w, multipliers, requantization. */
#ifndef OCT_OPS_PRODUCT_H
#define OCT_OPS_PRODUCT_H

#include "kernels/qgemm/qout.h"
#include "ops/op.h"

/* Whether x, w and y of a step (in[0], in[1], out[0]) have the types and parameters that integer products take: x per
 * tensor, w constant parameters per tensor or with n == channels along `axis`, y quantized per tensor or real f32; and
 * the bias (in[bias] if bias < n_in): constant f32, s32 whose scale is s_x * s_w within 1 % (ONNX Runtime's tolerance),
 * or s8 whose scale is a whole number of times that. */
bool oct_product_fits(const oct_step *s, int64_t channels, int axis, int bias);

/* Bias as int32 at s_x * s_w[c], saturated: s32 constants as they are, s8 exactly, f32 rounded half to even. *out NULL
 * when there is none, or when the output is real (then oct_product_out keeps it in f32, which is more exact). */
oct_status oct_product_bias(const oct_step *s, const oct_prep *p, int64_t channels, int bias, int32_t **out,
                            oct_err *err);

/* The last step: multipliers f32[channels], range, clamp of the epilogue, real bias. factor: Gemm's alpha. */
oct_status oct_product_out(const oct_step *s, const oct_prep *p, int64_t channels, int bias, float factor,
                           oct_qout *out, oct_err *err);

/* Weights' zero points for packing; NULL when all are 0. *step is 0 per tensor, 1 per channel. */
const int32_t *oct_product_zero(const oct_quant *q, size_t *step);

#endif
