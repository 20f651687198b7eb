/* lib/kernels/qgemm/qgemm_u8s8_32x32c4_amx.c -- 32 rows by 32 columns in four tiles, tdpbusd: 64 products and their sum in 32 bits, wrapping, exact. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/simd.h"
#include "kernels/tiles.h"

#include <string.h>

enum { HALF = OCT_TILE_ROWS, DEPTH = OCT_TILE_BYTES, QUADS = 2 * OCT_TILE_BYTES /* bytes of four k of a panel */ };

/* Sixteen rows from a value of k on, as a tile is loaded. */
typedef struct rows {
    const uint8_t *x;
    size_t stride;
} rows;

/* Where the rows are equally far from each other, and all 64 bytes may be read, there; else a copy. */
static rows find(const uint8_t *const *a, size_t m, size_t k, size_t left, uint8_t flip, uint8_t copy[HALF][DEPTH])
{
    const uintptr_t stride = (uintptr_t)a[1] - (uintptr_t)a[0];
    size_t i = 1;
    while (i < HALF && (uintptr_t)a[i] - (uintptr_t)a[i - 1] == stride)
        i++;
    if (i == HALF && left >= DEPTH && !flip)
        return (rows){ a[0] + k, (size_t)stride };
    for (i = 0; i < m; i++)
        for (size_t j = 0; j < DEPTH; j++)
            copy[i][j] = j < left ? a[i][k + j] ^ flip : 0;
    return (rows){ copy[0], DEPTH };
}

/* Tiles 0 to 3 are the sums, 4 and 5 rows, 6 and 7 columns. */
OCT_INLINE void step(const bool tall, const bool wide, rows x0, rows x1, const int8_t *w)
{
    oct_tile_load(4, x0.x, x0.stride);
    oct_tile_load(6, w, QUADS);
    oct_tile_dot_us(0, 4, 6);
    if (wide) {
        oct_tile_load(7, w + OCT_TILE_BYTES, QUADS);
        oct_tile_dot_us(1, 4, 7);
    }
    if (tall) {
        oct_tile_load(5, x1.x, x1.stride);
        oct_tile_dot_us(2, 5, 6);
        if (wide)
            oct_tile_dot_us(3, 5, 7);
    }
}

OCT_INLINE void product(const bool tall, const bool wide, size_t m, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip, const int8_t *b, int32_t *c)
{
    uint8_t copy[2][HALF][DEPTH];
    int8_t last[DEPTH / 4 * QUADS]; /* quads beyond the panel's last are not read */
    memset(copy, 0, sizeof copy);
    memset(last, 0, sizeof last);
    oct_tiles_begin();
    oct_tile_zero(0);
    oct_tile_zero(1);
    oct_tile_zero(2);
    oct_tile_zero(3);
    for (size_t t = 0; t < taps; t++, a += 2 * HALF)
        for (size_t k = 0; k < kc; k += DEPTH) {
            const size_t left = kc - k, size = (left + 3) / 4 * QUADS;
            const rows x0 = find(a, tall ? HALF : m, k, left, flip, copy[0]), x1 = tall ? find(a + HALF, m - HALF, k, left, flip, copy[1]) : x0;
            if (left < DEPTH)
                memcpy(last, b, size);
            OCT_TILES_SETTLE();
            step(tall, wide, x0, x1, left < DEPTH ? last : b);
            b += left < DEPTH ? size : sizeof last;
        }
    oct_tile_store(0, c, 2 * OCT_TILE_BYTES);
    if (wide)
        oct_tile_store(1, c + HALF, 2 * OCT_TILE_BYTES);
    if (tall)
        oct_tile_store(2, c + 2 * HALF * HALF, 2 * OCT_TILE_BYTES);
    if (tall && wide)
        oct_tile_store(3, c + 2 * HALF * HALF + HALF, 2 * OCT_TILE_BYTES);
    OCT_TILES_SETTLE();
    oct_tiles_end();
}

void oct_qgemm_u8s8_32x32c4__amx(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip, const int8_t *b, int32_t *c)
{
    if (m > HALF)
        n > HALF ? product(true, true, m, taps, kc, a, flip, b, c) : product(true, false, m, taps, kc, a, flip, b, c);
    else
        n > HALF ? product(false, true, m, taps, kc, a, flip, b, c) : product(false, false, m, taps, kc, a, flip, b, c);
}
