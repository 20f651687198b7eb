/* lib/kernels/reduce.h -- reductions, softmax and normalisation of f32 in one fixed order.
 *
 * Layout of all: x f32[outer][n][inner], reduced or normalised over n. Order: lane l of 16 takes the elements
 * i = l mod 16 in increasing order; lanes are joined l with l + 8, then 4, 2, 1. So the result depends on the
 * n values alone: not on instruction set, threads, inner, or the place in the tensor. */
#ifndef OCT_KERNELS_REDUCE_H
#define OCT_KERNELS_REDUCE_H

#include "base/pool.h"

typedef enum oct_reduce_op {
    OCT_REDUCE_SUM = 0,
    OCT_REDUCE_MEAN,       /* sum / n                                     */
    OCT_REDUCE_MAX,        /* NaN when one is NaN; -inf for n = 0         */
    OCT_REDUCE_MIN,        /* NaN when one is NaN; inf for n = 0          */
    OCT_REDUCE_SUM_SQUARE, /* fma chain                                   */
    OCT_REDUCE_L1,
    OCT_REDUCE_L2, /* sqrt of the sum of squares                  */
    OCT_REDUCE_LOG_SUM,
    OCT_REDUCE_LOG_SUM_EXP, /* max + log(sum(exp(x - max)))               */
    OCT_REDUCE_PROD,
    OCT_REDUCE_COUNT
} oct_reduce_op;

/* y f32[outer][inner]. */
void oct_reduce_f32(oct_pool *pool, oct_reduce_op op, const float *x, size_t outer, size_t n, size_t inner, float *y);

/* Smallest and largest of f32[n], ignoring NaN; n = 0 or all NaN gives +inf and -inf. Returns whether a NaN was
 * seen. */
bool oct_min_max_f32(const float *x, size_t n, float *lo, float *hi);

/* The sum of x^2, or of (x - y)^2, over f32[n], in the same order, in double. */
double oct_sum_squares_f32(const float *x, size_t n);
double oct_squared_error_f32(const float *x, const float *y, size_t n);

/* y = exp(x - max) / sum(exp(x - max)), or with `log` x - max - log(sum(...)), along n. y may be x. */
void oct_softmax_f32(oct_pool *pool, bool log, const float *x, size_t outer, size_t n, size_t inner, float *y);

/* The same along rows of x * scale + bias, `ld` elements apart: one fma, or x * scale without bias. Row i has the bias
 * bias[i * step]. A row with a bias that leaves nothing above -inf gives zeros. y has x's strides and may be x. */
void oct_softmax_scaled_f32(oct_pool *pool, const float *x, size_t rows, size_t n, size_t ld, float scale,
                            const float *bias, size_t step, float *y);

/* Layer (and instance) normalisation of f32[rows][n]: mean and variance (divided by n) by two passes, then
 * y = fma((x - mean) * r, gamma, beta), r = 1 / sqrt(var + eps). gamma and beta are f32[n], or one value per row
 * (per_row: gamma[row % period], for instance norm with period = C), or NULL (1 and 0). y may be x. mean_out and
 * rstd_out (f32[rows]) may be NULL. */
typedef struct oct_layer_norm {
    size_t rows, n;
    float eps;
    const float *gamma, *beta;
    bool per_row;
    size_t period; /* used with per_row */
    bool rms;      /* mean taken as 0: RMS normalisation */
} oct_layer_norm;
void oct_layer_norm_f32(oct_pool *pool, const oct_layer_norm *p, const float *x, float *y, float *mean_out,
                        float *rstd_out);

/* Group normalisation of f32[rows][each][inner]: as layer normalisation of each row, but with mean and variance in
 * double. gamma and beta are of the `groups * each` channels, or with `shared` of the groups; a row's group is row %
 * groups. */
typedef struct oct_group_norm {
    size_t rows, groups, each, inner;
    float eps;
    const float *gamma, *beta;
    bool shared;
} oct_group_norm;
void oct_group_norm_f32(oct_pool *pool, const oct_group_norm *p, const float *x, float *y);

/* Channels-last instance norm: x f32[n][hw][c], mean and variance over hw per (n, c); gamma, beta f32[c]; scratch f32[2
 * * c] per image (n * 2 * c in all). y may be x. */
void oct_instance_norm_nhwc_f32(oct_pool *pool, const float *x, size_t n, size_t hw, size_t c, float eps,
                                const float *gamma, const float *beta, float *scratch, float *y);

/* Scale and shift per channel: y = fma(x, s[ch], b[ch]) on f32[outer][channels][inner] (inner 1: channels-last). y may
 * be x. */
void oct_scale_shift_f32(oct_pool *pool, const float *x, size_t outer, size_t channels, size_t inner, const float *s,
                         const float *b, float *y);

#endif
