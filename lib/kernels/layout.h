/* lib/kernels/layout.h -- moving elements of 1, 2, 4 or 8 bytes: permutations, resizing. */
#ifndef OCT_KERNELS_LAYOUT_H
#define OCT_KERNELS_LAYOUT_H

#include "base/pool.h"

#define OCT_LAYOUT_RANK 8

/* y = x with its dimensions permuted: output dimension i is input dimension perm[i]; dims are the input's. Contiguous
 * both; must not overlap. size: 1, 2, 4 or 8 bytes. rank <= OCT_LAYOUT_RANK. Transposes of two (blocks of)
 * dimensions, as NCHW <-> NHWC, run in tiles. */
void oct_transpose(oct_pool *pool, const void *x, const int64_t *dims, const int *perm, int rank, size_t size, void *y);

/* The same for a box inside two arrays: y[sum of i[k] * sy[k]] = x[sum of i[k] * sx[k]] for all i[k] < dims[k], strides
 * in elements. sy[rank - 1] and sx of another dimension are 1. */
void oct_transpose_box(oct_pool *pool, int rank, const int64_t *dims, const int64_t *sx, const int64_t *sy, size_t size,
                       const void *x, void *y);

/* y[b][c][r] = x[b][r][c] for b < batch. NCHW to NHWC: rows = C, cols = H * W. */
void oct_transpose_2d(oct_pool *pool, const void *x, size_t batch, size_t rows, size_t cols, size_t size, void *y);

/* Resizing along one axis of f32[outer][n_in][inner] to [outer][n_out][inner]:
 *   y[i] = sum over k < taps of weight[i * taps + k] * x[index[i * taps + k]],
 * the first product rounded, the others added by fma, in order of k. weight NULL with taps 1: a plain copy (nearest).
 * Indices must lie in [0, n_in). Apply axis by axis, through a buffer, for linear (taps 2) and cubic (taps 4). Fast for
 * inner > 8: channels last, or the rows of channels first. */
void oct_resize_axis_f32(oct_pool *pool, const float *x, size_t outer, size_t n_in, size_t inner, size_t n_out,
                         int taps, const int32_t *index, const float *weight, float *y);

/* Nearest along one axis for elements of 1, 2, 4 or 8 bytes. */
void oct_resize_axis_nearest(oct_pool *pool, const void *x, size_t outer, size_t n_in, size_t inner, size_t n_out,
                             const int32_t *index, size_t size, void *y);

#endif
