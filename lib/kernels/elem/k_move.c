/* lib/kernels/elem/k_move.c -- transposing tiles and resizing rows, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#define TILE 8

/* Full tiles first in registers' reach, then the edges. */
#define TRANSPOSE(type)                                                                                        \
    static void transpose_##type(const type *x, size_t xs, size_t rows, size_t cols, type *y, size_t ys)       \
    {                                                                                                          \
        const size_t full_r = rows - rows % TILE, full_c = cols - cols % TILE;                                 \
        for (size_t r = 0; r < full_r; r += TILE)                                                              \
            for (size_t c = 0; c < full_c; c += TILE) {                                                        \
                type t[TILE][TILE];                                                                            \
                for (size_t i = 0; i < TILE; i++)                                                              \
                    for (size_t j = 0; j < TILE; j++)                                                          \
                        t[j][i] = x[(r + i) * xs + c + j];                                                     \
                for (size_t j = 0; j < TILE; j++)                                                              \
                    for (size_t i = 0; i < TILE; i++)                                                          \
                        y[(c + j) * ys + r + i] = t[j][i];                                                     \
            }                                                                                                  \
        for (size_t c = 0; c < cols; c++)                                                                      \
            for (size_t r = c < full_c ? full_r : 0; r < rows; r++)                                            \
                y[c * ys + r] = x[r * xs + c];                                                                 \
    }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

void K(transpose_tile)(const void *x, size_t xs, size_t rows, size_t cols, void *y, size_t ys, size_t size)
{
    switch (size) {
    case 1:
        transpose_uint8_t(x, xs, rows, cols, y, ys);
        break;
    case 2:
        transpose_uint16_t(x, xs, rows, cols, y, ys);
        break;
    case 4:
        transpose_uint32_t(x, xs, rows, cols, y, ys);
        break;
    default:
        transpose_uint64_t(x, xs, rows, cols, y, ys);
    }
}

void K(resize_row)(const float *x, size_t inner, int taps, const int32_t *index, const float *weight, float *y)
{
    const float *a = x + (size_t)index[0] * inner;
    const float wa = weight[0];
    int k = 1;
    if (taps >= 2) {
        const float *b = x + (size_t)index[1] * inner;
        const float wb = weight[1];
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = fmaf(b[i], wb, a[i] * wa);
        k = 2;
    } else {
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = a[i] * wa;
    }
    for (; k < taps; k++) {
        const float *b = x + (size_t)index[k] * inner;
        const float wb = weight[k];
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = fmaf(b[i], wb, y[i]);
    }
}

void K(resize_line)(const float *x, size_t n_out, int taps, const int32_t *index, const float *weight, float *y)
{
    for (size_t i = 0; i < n_out; i++, index += taps, weight += taps) {
        float v = x[index[0]] * weight[0];
        for (int k = 1; k < taps; k++)
            v = fmaf(x[index[k]], weight[k], v);
        y[i] = v;
    }
}
