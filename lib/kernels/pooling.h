/* lib/kernels/pooling.h -- 2-D pooling, channels last (NHWC). 1-D: h = kh = 1. */
#ifndef OCT_KERNELS_POOLING_H
#define OCT_KERNELS_POOLING_H

#include "kernels/qelem.h"

/* Output pixel (oy, ox) covers the input rows oy * sh - pt + i * dh (i < kh) and columns ox * sw - pl + j * dw that lie
 * inside the image. ceil_mode is in oh and ow. pb and pr (bottom, right) only matter for count_include_pad. */
typedef struct oct_pool2d {
    size_t n, h, w, c, oh, ow;
    size_t kh, kw, sh, sw, dh, dw;
    size_t pt, pl, pb, pr;
    bool count_include_pad; /* averages: divide by the window within the padded image, not by the pixels inside the
                               image */
} oct_pool2d;

/* Largest value; NaN wins. A window without a pixel gives -FLT_MAX, as ONNX Runtime. */
void oct_max_pool_f32(oct_pool *pool, const oct_pool2d *g, const float *x, float *y);
void oct_max_pool_8(oct_pool *pool, const oct_pool2d *g, bool is_signed, const void *x, void *y);
/* Sum in the order of the window, divided by the count. */
void oct_average_pool_f32(oct_pool *pool, const oct_pool2d *g, const float *x, float *y);
/* (sum |x|^p)^(1/p). */
void oct_lp_pool_f32(oct_pool *pool, const oct_pool2d *g, float p, const float *x, float *y);
/* Dequantize, average in f32, rint(avg / sy + zy). */
void oct_average_pool_8(oct_pool *pool, const oct_pool2d *g, bool is_signed, const void *x, oct_qparam in,
                        oct_qparam out, void *y);

/* Averages over hw: x [n][hw][c] -> y [n][c]. f32: the order of reduce.h. 8-bit: QLinearGlobalAveragePool,
 * rint(sum(q - zx) * (sx / (sy * hw))) + zy, the sum exact for hw < 2^23. */
void oct_global_average_pool_f32(oct_pool *pool, const float *x, size_t n, size_t hw, size_t c, float *y);
void oct_global_average_pool_8(oct_pool *pool, bool is_signed, const void *x, size_t n, size_t hw, size_t c,
                               oct_qparam in, oct_qparam out, void *y);

#endif
