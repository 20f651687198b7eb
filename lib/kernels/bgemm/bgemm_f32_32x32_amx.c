/* lib/kernels/bgemm/bgemm_f32_32x32_amx.c -- 32 rows by 32 columns in 2x2 tiles, tdpbf16ps: a block of 32 values of k
 * is one instruction a tile. */
#include "kernels/bgemm/bgemm_int.h"
#include "kernels/sgemm/sout_zmm.inc"
#include "kernels/tiles.h"

enum { HALF = OCT_TILE_ROWS, WIDTH = 2 * HALF, LINE = 64 };

/* n values from k on of `rows` rows, as bf16. They are values of bf16, so that the upper half is all. Behind them -0,
 * which times B's +0 changes no chain, not even one that is -0. */
static void take_rows(size_t rows, size_t n, const float *const *a, size_t k, uint8_t to[WIDTH][LINE])
{
    const __mmask16 first = n < HALF ? (__mmask16)((1u << n) - 1) : 0xffff,
                    second = n < WIDTH ? (__mmask16)(((1u << n) - 1) >> HALF) : 0xffff;
    const __m512i none = _mm512_set1_epi32(INT32_MIN),
                  in_order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    for (size_t i = 0; i < rows; i++) {
        const __m512i v = _mm512_mask_mov_epi32(none, first, _mm512_maskz_loadu_epi32(first, a[i] + k));
        const __m512i w =
            second ? _mm512_mask_mov_epi32(none, second, _mm512_maskz_loadu_epi32(second, a[i] + k + HALF)) : none;
        const __m512i halves = _mm512_packus_epi32(_mm512_srli_epi32(v, 16), _mm512_srli_epi32(w, 16));
        _mm512_storeu_si512(to[i], _mm512_permutexvar_epi32(in_order, halves));
    }
}

/* All taps, from the panel b: tiles 0 to 3 are the sums, 4 and 5 rows, 6 and 7 columns. */
static void products(bool tall, size_t taps, size_t kc, const float *const *a, const float *b)
{
    enum { BLOCK = OCT_BGEMM_BLOCK / 2 * WIDTH };
    _Alignas(LINE) uint8_t rows[2][WIDTH][LINE];
    for (size_t t = 0, which = 0; t < taps; t++, a += WIDTH)
        for (size_t k = 0; k < kc; k += OCT_BGEMM_BLOCK, b += BLOCK, which ^= 1) {
            take_rows(tall ? WIDTH : HALF, kc - k < OCT_BGEMM_BLOCK ? kc - k : OCT_BGEMM_BLOCK, a, k, rows[which]);
            OCT_TILES_SETTLE();
            oct_tile_load(4, rows[which][0], LINE);
            oct_tile_load(6, b, 2 * LINE);
            oct_tile_dot_bf16(0, 4, 6);
            oct_tile_load(7, b + HALF, 2 * LINE);
            oct_tile_dot_bf16(1, 4, 7);
            if (tall) {
                oct_tile_load(5, rows[which][HALF], LINE);
                oct_tile_dot_bf16(2, 5, 6);
                oct_tile_dot_bf16(3, 5, 7);
            }
        }
}

void oct_bgemm_f32_32x32__amx(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                              float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    _Alignas(LINE) float sums[WIDTH * WIDTH] = { 0 };
    const bool tall = m > HALF;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < WIDTH; j += HALF)
            _mm512_storeu_ps(sums + i * WIDTH + j, !first      ? _mm512_loadu_ps(c + i * ldc + j)
                                                   : out->bias ? _mm512_loadu_ps(out->bias + j)
                                                               : _mm512_setzero_ps());
    oct_tiles_begin();
    OCT_TILES_SETTLE();
    oct_tile_load(0, sums, 2 * LINE);
    oct_tile_load(1, sums + HALF, 2 * LINE);
    oct_tile_load(2, sums + HALF * WIDTH, 2 * LINE);
    oct_tile_load(3, sums + HALF * WIDTH + HALF, 2 * LINE);
    products(tall, taps, kc, a, b);
    oct_tile_store(0, sums, 2 * LINE);
    oct_tile_store(1, sums + HALF, 2 * LINE);
    oct_tile_store(2, sums + HALF * WIDTH, 2 * LINE);
    oct_tile_store(3, sums + HALF * WIDTH + HALF, 2 * LINE);
    OCT_TILES_SETTLE();
    oct_tiles_end();
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < WIDTH; j += HALF) {
            const __m512 v = _mm512_loadu_ps(sums + i * WIDTH + j);
            _mm512_storeu_ps(c + i * ldc + j, last ? finish(v, out, i, j, 0xffff) : v);
        }
}
