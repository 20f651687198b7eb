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

/* For choosing parameters, a column each: column j's quantized values are 0..top, its steps d = clamp(round_half_even(x
 * * (1 / scale)), -zero, top - zero), and what rounding leaves of them e = x * (1 / scale) - d, in steps. Sums are over
 * the rows, in order. For these steps the scale of least squared error is scale * (1 + ed / dd), and that error scale^2
 * * (ee - ed^2 / dd). */
enum { OCT_QPARAMS_COLUMNS = 16 };
typedef struct oct_column_qparams {
    float scale[OCT_QPARAMS_COLUMNS];
    int32_t zero[OCT_QPARAMS_COLUMNS], top;
    float ee[OCT_QPARAMS_COLUMNS], ed[OCT_QPARAMS_COLUMNS], dd[OCT_QPARAMS_COLUMNS]; /* sums of e e, e d, d d */
} oct_column_qparams;

/* Sets the sums for x f32[n][OCT_QPARAMS_COLUMNS]. Those of a column whose scale is below OCT_LEAST_SCALE mean nothing.
 */
void oct_qparams_sums_f32(const float *x, size_t n, oct_column_qparams *g);

/* Weights below this become zeros, because the reciprocal of a scale must be finite. */
#define OCT_LEAST_SCALE 0x1p-120f

/* The best parameters of each column so far: those by which values are rounded, the scale of least squared error for
 * what that gives, and this error. */
typedef struct oct_column_best {
    float scale[OCT_QPARAMS_COLUMNS], fit[OCT_QPARAMS_COLUMNS];
    int32_t zero[OCT_QPARAMS_COLUMNS];
    double error[OCT_QPARAMS_COLUMNS];
} oct_column_best;

/* Replaces the parameters of those columns for which g, with its sums, has a smaller error; never by scales below
 * OCT_LEAST_SCALE. */
void oct_qparams_better(const oct_column_qparams *g, oct_column_best *b);
/* q u8[n][OCT_QPARAMS_COLUMNS] = d + zero. */
void oct_quantize_columns_f32(const float *x, size_t n, const oct_column_qparams *g, uint8_t *q);

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
