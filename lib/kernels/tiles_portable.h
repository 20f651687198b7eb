/* lib/kernels/tiles_portable.h -- AMX's tiles in C, as the instructions treat them: what lies beyond a tile's rows and
 * bytes becomes zero, shapes that do not agree and tiles that were not begun are faults (here a trap). One set of tiles
 * a thread. Internal. */
#ifndef OCT_KERNELS_TILES_PORTABLE_H
#define OCT_KERNELS_TILES_PORTABLE_H

#include "kernels/denormals.h"
#include "kernels/tiles_shape.h"

#define OCT_PORTABLE_TILE static __attribute__((noinline, unused))

typedef uint8_t oct_portable_tile[16][64];

static _Thread_local struct {
    oct_tiles_shape shape;
    oct_portable_tile tile[8];
} oct_portable;

static inline void oct_portable_must(int holds)
{
    if (!holds)
        __builtin_trap();
}

/* NULL ends what was begun. */
OCT_PORTABLE_TILE void oct_portable_tiles(const oct_tiles_shape *shape)
{
    memset(&oct_portable, 0, sizeof oct_portable);
    if (!shape)
        return;
    oct_portable_must(shape->palette == 1 && shape->start == 0);
    for (int i = 0; i < 16; i++) {
        oct_portable_must(shape->rows[i] <= (i < 8 ? 16 : 0) && shape->bytes[i] <= (i < 8 ? 64 : 0));
        oct_portable_must(!shape->rows[i] == !shape->bytes[i]);
    }
    oct_portable.shape = *shape;
}

/* Rows and bytes of a tile that is in use. */
static inline size_t oct_portable_rows(int t)
{
    oct_portable_must(t >= 0 && t < 8 && oct_portable.shape.rows[t]);
    return oct_portable.shape.rows[t];
}
static inline size_t oct_portable_bytes(int t)
{
    oct_portable_must(t >= 0 && t < 8 && oct_portable.shape.bytes[t]);
    return oct_portable.shape.bytes[t];
}

OCT_PORTABLE_TILE void oct_portable_zero(int t)
{
    oct_portable_rows(t);
    memset(oct_portable.tile[t], 0, sizeof oct_portable.tile[t]);
}

OCT_PORTABLE_TILE void oct_portable_load(int t, const void *p, size_t stride)
{
    oct_portable_zero(t);
    for (size_t i = 0; i < oct_portable_rows(t); i++)
        memcpy(oct_portable.tile[t][i], (const uint8_t *)p + i * stride, oct_portable_bytes(t));
}

OCT_PORTABLE_TILE void oct_portable_store(int t, void *p, size_t stride)
{
    for (size_t i = 0; i < oct_portable_rows(t); i++)
        memcpy((uint8_t *)p + i * stride, oct_portable.tile[t][i], oct_portable_bytes(t));
}

/* Rows and columns (of four bytes) of c, and groups of four bytes that a product goes over. */
typedef struct oct_portable_product {
    size_t m, n, k;
} oct_portable_product;

static inline oct_portable_product oct_portable_shapes(int c, int a, int b)
{
    const oct_portable_product p = { oct_portable_rows(c), oct_portable_bytes(c) / 4, oct_portable_rows(b) };
    oct_portable_must(c != a && c != b && a != b && oct_portable_rows(a) == p.m && oct_portable_bytes(b) == 4 * p.n &&
                      oct_portable_bytes(a) == 4 * p.k);
    return p;
}

/* c + a * b; is_signed: the bytes of a are. */
static inline void oct_portable_dot(int c, int a, int b, int is_signed)
{
    const oct_portable_product p = oct_portable_shapes(c, a, b);
    oct_portable_tile out = { { 0 } };
    for (size_t m = 0; m < p.m; m++)
        for (size_t n = 0; n < p.n; n++) {
            uint32_t sum;
            memcpy(&sum, &oct_portable.tile[c][m][4 * n], sizeof sum);
            for (size_t k = 0; k < 4 * p.k; k++) {
                const uint8_t x = oct_portable.tile[a][m][k];
                sum += (uint32_t)((is_signed ? (int8_t)x : x) * (int8_t)oct_portable.tile[b][k / 4][4 * n + k % 4]);
            }
            memcpy(&out[m][4 * n], &sum, sizeof sum);
        }
    memcpy(oct_portable.tile[c], out, sizeof out);
}

OCT_PORTABLE_TILE void oct_portable_dot_us(int c, int a, int b)
{
    oct_portable_dot(c, a, b, 0);
}

OCT_PORTABLE_TILE void oct_portable_dot_ss(int c, int a, int b)
{
    oct_portable_dot(c, a, b, 1);
}

static inline float oct_portable_bf16(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

OCT_PORTABLE_TILE void oct_portable_dot_bf16(int c, int a, int b)
{
    const oct_portable_product p = oct_portable_shapes(c, a, b);
    oct_portable_tile out = { { 0 } };
    for (size_t m = 0; m < p.m; m++)
        for (size_t n = 0; n < p.n; n++) {
            float chain[2] = { 0, 0 }, sum;
            for (size_t k = 0; k < 2 * p.k; k++) {
                const float x = oct_portable_bf16(&oct_portable.tile[a][m][2 * k]),
                            y = oct_portable_bf16(&oct_portable.tile[b][k / 2][4 * n + k % 2 * 2]);
                chain[k % 2] = oct_flushed_fma(x, y, chain[k % 2]);
            }
            memcpy(&sum, &oct_portable.tile[c][m][4 * n], sizeof sum);
            sum = oct_flushed_add(sum, oct_flushed_add(chain[0], chain[1]));
            memcpy(&out[m][4 * n], &sum, sizeof sum);
        }
    memcpy(oct_portable.tile[c], out, sizeof out);
}

#endif
