/* lib/kernels/quantize.h -- between f32 and affine integers: real = scale * (q - zp).
 *
 * Formulas are those of ONNX Runtime's CPU provider, bit for bit. Types: OCT_U8, OCT_S8, OCT_U16, OCT_S16 (and
 * OCT_S32 for dequantizing). Layout per axis: [outer][channels][inner], scale f32[channels], zp s32[channels]. */
#ifndef OCT_KERNELS_QUANTIZE_H
#define OCT_KERNELS_QUANTIZE_H

#include "base/dtype.h"
#include "base/pool.h"

/* Smallest and largest code of u8, s8, u16, s16 (and of u4, s4 unpacked). */
void oct_quant_limits(oct_dtype t, int32_t *lo, int32_t *hi);

/* q = saturate(round_half_even(x / scale) + zp), a true division. NaN gives the smallest code. x f32[n]; q t[n]. */
void oct_quantize_f32(oct_pool *pool, oct_dtype t, const float *x, size_t n, float scale, int32_t zp, void *q);
/* channels = 1 (outer 1) is per tensor. zp NULL: zeros. */
void oct_quantize_f32_axis(oct_pool *pool, oct_dtype t, const float *x, size_t outer, size_t channels, size_t inner,
                           const float *scale, const int32_t *zp, void *q);

/* x = (float)(q - zp) * scale; q - zp wraps for s32. */
void oct_dequantize_f32(oct_pool *pool, oct_dtype t, const void *q, size_t n, float scale, int32_t zp, float *x);
void oct_dequantize_f32_axis(oct_pool *pool, oct_dtype t, const void *q, size_t outer, size_t channels, size_t inner,
                             const float *scale, const int32_t *zp, float *x);

/* For choosing a grid: the steps d = clamp(round_half_even(x * (1 / scale)), lo, hi) that a row takes on it, and
 * sums = { sum of x d, sum of d d }, so that sums[0] / sums[1] is the best scale for these steps, and sums[0]^2 / sums[1] what the
 * squared error is less by. In one fixed order, as reduce.h has it, of eight lanes. scale is not 0; lo <= 0 <= hi within 2^20. */
void oct_grid_sums_f32(const float *x, size_t n, float scale, float lo, float hi, double sums[2]);
/* q = d + zero, which must be a byte. */
void oct_grid_codes_f32(const float *x, size_t n, float scale, float lo, float hi, int32_t zero, uint8_t *q);

/* One value of each, the same arithmetic. */
int32_t oct_quantize_value(float x, float scale, int32_t zp, int32_t lo, int32_t hi);

/* ONNX DynamicQuantizeLinear: scale = (max(0, hi) - min(0, lo)) / 255 (1 when that is 0), zp = the code of zero. */
void oct_dynamic_params_u8(float lo, float hi, float *scale, int32_t *zp);
/* The whole operator on f32[n]; lo and hi as oct_min_max_f32. */
void oct_dynamic_quantize_u8(oct_pool *pool, const float *x, size_t n, uint8_t *q, float *scale, uint8_t *zp);

#endif
