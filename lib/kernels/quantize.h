/* lib/kernels/quantize.h -- between f32 and affine integers: real = scale * (q - zp).
 *
 * Formulas are those of ONNX Runtime's CPU provider, bit for bit. Types: OCT_U8, OCT_S8, OCT_U16, OCT_S16 (and
 * OCT_S32 for dequantizing). Layout per axis: [outer][channels][inner], scale f32[channels], zp s32[channels]. */
#ifndef OCT_KERNELS_QUANTIZE_H
#define OCT_KERNELS_QUANTIZE_H

#include "base/dtype.h"
#include "base/pool.h"

/* Smallest and largest quantized value of u8, s8, u16, s16 (and of u4, s4 unpacked). */
void oct_quant_limits(oct_dtype t, int32_t *lo, int32_t *hi);

/* q = saturate(round_half_even(x / scale) + zp), a true division. NaN gives the smallest quantized value. x f32[n]; q
 * t[n]. */
void oct_quantize_f32(oct_pool *pool, oct_dtype t, const float *x, size_t n, float scale, int32_t zp, void *q);
/* channels = 1 (outer 1) is per tensor. zp NULL: zeros. */
void oct_quantize_f32_axis(oct_pool *pool, oct_dtype t, const float *x, size_t outer, size_t channels, size_t inner,
                           const float *scale, const int32_t *zp, void *q);

/* x = (float)(q - zp) * scale; q - zp wraps for s32. */
void oct_dequantize_f32(oct_pool *pool, oct_dtype t, const void *q, size_t n, float scale, int32_t zp, float *x);
void oct_dequantize_f32_axis(oct_pool *pool, oct_dtype t, const void *q, size_t outer, size_t channels, size_t inner,
                             const float *scale, const int32_t *zp, float *x);

/* y f32[n]: x after quantizing and dequantizing, bit for bit; y may be x. t: any type to which x can be quantized. */
void oct_fake_quantize_f32(oct_dtype t, const float *x, size_t n, float scale, int32_t zp, float *y);

/* Weights below this become zeros, because the reciprocal of a scale must be finite. */
#define OCT_LEAST_SCALE 0x1p-120f

/* Parameters of columns side by side. By `scale` and `zero` values are rounded: x becomes the step d =
 * clamp(round_half_even(x * (1 / scale)), -zero, top - zero). `fit` is the scale of least squared error for these
 * steps, scale * (1 + ed / dd) where e = x * (1 / scale) - d and sums are over the rows, in order; `error` is that
 * error, scale^2 * (ee - ed^2 / dd), and `signal` the sum of squares, which is the error of zeros. */
enum { OCT_QPARAMS_COLUMNS = 16 };
typedef struct oct_column_qparams {
    float scale[OCT_QPARAMS_COLUMNS], fit[OCT_QPARAMS_COLUMNS];
    int32_t zero[OCT_QPARAMS_COLUMNS];
    double error[OCT_QPARAMS_COLUMNS], signal[OCT_QPARAMS_COLUMNS];
} oct_column_qparams;

/* Chooses those of the least error for x f32[n][OCT_QPARAMS_COLUMNS], and quantized values 0..top: the first of equal
 * ones. Tried are 1, 0.95, 0.9, 0.85 and 0.8 of the step between the extremes and 0, with the zero point that belongs
 * to it and those beside it, unless `symmetric`, and of the steps by which the extreme farthest from 0 is the lowest or
 * the highest value around the middle one. Where scale or fit would be below OCT_LEAST_SCALE, or zeros are better,
 * scale and fit are 1 and zero is the middle. Where signal is not finite, the others mean nothing. */
void oct_choose_columns_f32(const float *x, size_t n, int top, bool symmetric, oct_column_qparams *g);
/* q u8[n][OCT_QPARAMS_COLUMNS] = d + zero. */
void oct_quantize_columns_f32(const float *x, size_t n, int top, const oct_column_qparams *g, uint8_t *q);
/* Stores the first `columns` of q [n][OCT_QPARAMS_COLUMNS] one after the other, `stride` bytes apart: n * bits / 8
 * bytes each, the lowest bits first. bits: 4 or 8; n is even. */
void oct_pack_columns(const uint8_t *q, size_t n, int bits, size_t columns, uint8_t *to, size_t stride);

/* Quantizes a row block by block, symmetrically: scale = largest magnitude / 127, q = round_half_even(x * (127 /
 * largest magnitude)), sum = of q. If all magnitudes of a block are below 2^-100, its scale and q are 0; if some values
 * are not finite, its scale is NaN and q are 0. x f32[n]; q s8[blocks * block], zeros beyond n; scale f32[blocks], sum
 * s32[blocks]; blocks = ceil(n / block) */
void oct_quantize_blocks_s8(const float *x, size_t n, size_t block, int8_t *q, float *scale, int32_t *sum);

/* One value of each, the same arithmetic. */
int32_t oct_quantize_value(float x, float scale, int32_t zp, int32_t lo, int32_t hi);

/* ONNX DynamicQuantizeLinear on f32[n], with lo and hi as oct_min_max_f32 finds them: scale = (max(0, hi) - min(0, lo))
 * / 255 (1 when that is 0), zp = zero's quantized value. */
void oct_dynamic_quantize_u8(oct_pool *pool, const float *x, size_t n, uint8_t *q, float *scale, uint8_t *zp);
/* y f32[n]: the real numbers that the same quantized values stand for; y may be x. */
void oct_fake_dynamic_quantize_f32(const float *x, size_t n, float *y);

#endif
