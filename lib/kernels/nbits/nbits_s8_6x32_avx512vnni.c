/* lib/kernels/nbits/nbits_s8_6x32_avx512vnni.c -- blockwise weights and quantized activations, many rows: some blocks
 * of weights become bytes once for all rows, then tiles of 6 rows by 32 columns by vpdpbusd, with sums and chains in
 * registers. Quads of 6 rows lie together. */
#include "kernels/nbits/nbits_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

enum { LANES = 16, WIDTH = 2 * LANES, HEIGHT = 6, LINE = 64, DEPTH = 256, MOST_BLOCKS = DEPTH / 16 };

/* Blocks that follow each other in a panel: their weights as [quads][2][16][4] bytes, of each block scales and zero
 * points with the other sign, these in the low halves of words. */
typedef struct unpacked {
    size_t blocks, quads; /* quads of one block */
    __m512 scale[MOST_BLOCKS][2];
    __m512i minus_zero[MOST_BLOCKS][2];
    _Alignas(LINE) uint8_t w[DEPTH * WIDTH];
} unpacked;

OCT_INLINE void unpack_words(const int bits, size_t words, const uint8_t *word, uint8_t *to)
{
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    for (size_t i = 0; i < words; i++, word += 2 * LINE)
#pragma GCC unroll 4
        for (int p = 0; p < 8 / bits; p++, to += 2 * LINE)
#pragma GCC unroll 2
            for (size_t v = 0; v < 2; v++) {
                const __m512i codes = _mm512_loadu_si512((const void *)(word + v * LINE));
                _mm512_store_si512((void *)(to + v * LINE),
                                   bits == 8 ? codes
                                             : _mm512_and_si512(_mm512_srli_epi32(codes, (unsigned)(p * bits)), mask));
            }
}

static void unpack(const oct_nbits_form *f, const uint8_t *panel, unpacked *u, size_t at)
{
    const uint8_t *word = panel + oct_nbits_at_qvals(f, WIDTH);
    const size_t words = f->block * (size_t)f->bits / 32;
    uint8_t *to = u->w + at * f->block * WIDTH;
    f->bits == 2   ? unpack_words(2, words, word, to)
    : f->bits == 4 ? unpack_words(4, words, word, to)
                   : unpack_words(8, words, word, to);
    for (size_t v = 0; v < 2; v++) {
        const __m128i *zero = (const __m128i *)(const void *)(panel + oct_nbits_at_zero(WIDTH) + v * LANES);
        const __m512i point = f->zero == OCT_NBITS_WHOLE ? _mm512_cvtepu8_epi32(_mm_loadu_si128(zero))
                                                         : _mm512_set1_epi32(1 << (f->bits - 1));
        u->scale[at][v] = _mm512_loadu_ps((const float *)(const void *)panel + v * LANES);
        u->minus_zero[at][v] =
            _mm512_and_si512(_mm512_sub_epi32(_mm512_setzero_si512(), point), _mm512_set1_epi32(0xffff));
    }
}

/* Links of the chains of some rows of a group: q, scale and row_sum are those of the first of them in the first of the
 * blocks. */
OCT_INLINE void tile(const int rows, const unpacked *u, const uint8_t *q, const float *scale, const int32_t *row_sum,
                     float *y)
{
    const uint8_t *w = u->w;
    __m512 chain[HEIGHT][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        chain[i][0] = _mm512_loadu_ps(y + i * WIDTH);
        chain[i][1] = _mm512_loadu_ps(y + i * WIDTH + LANES);
    }
    for (size_t b = 0; b < u->blocks; b++, scale += HEIGHT, row_sum += HEIGHT) {
        __m512i sum[HEIGHT][2];
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) { /* what the zero point adds comes first; both fit 16 bits */
            const __m512i row = _mm512_set1_epi32(row_sum[i]);
            sum[i][0] = _mm512_madd_epi16(u->minus_zero[b][0], row);
            sum[i][1] = _mm512_madd_epi16(u->minus_zero[b][1], row);
        }
        size_t left = u->quads;
        do {
            const __m512i w0 = _mm512_load_si512((const void *)w), w1 = _mm512_load_si512((const void *)(w + LINE));
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++) {
                const __m512i x = _mm512_set1_epi32((int)oct_quad(q + 4 * i));
                sum[i][0] = _mm512_dpbusd_epi32(sum[i][0], w0, x);
                sum[i][1] = _mm512_dpbusd_epi32(sum[i][1], w1, x);
                OCT_KEEP(sum[i][0]);
                OCT_KEEP(sum[i][1]);
            }
            w += 2 * LINE;
            q += HEIGHT * 4;
        } while (--left);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const __m512 s = _mm512_set1_ps(scale[i]);
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++) {
                chain[i][v] =
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i][v]), _mm512_mul_ps(s, u->scale[b][v]), chain[i][v]);
                OCT_KEEP(chain[i][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_ps(y + i * WIDTH, chain[i][0]);
        _mm512_storeu_ps(y + i * WIDTH + LANES, chain[i][1]);
    }
}

/* Functions of their own: the compiler divides registers best so. */
#define TILE(rows)                                                                                            \
    static __attribute__((noinline)) void tile##rows(const unpacked *u, const uint8_t *q, const float *scale, \
                                                     const int32_t *row_sum, float *y)                        \
    {                                                                                                         \
        tile(rows, u, q, scale, row_sum, y);                                                                  \
    }
TILE(6)
TILE(4)
TILE(2)
TILE(1)
#undef TILE

void oct_nbits_s8_6x32__avx512vnni(const oct_nbits_form *f, size_t nr, size_t m, const oct_nbits_rows *a,
                                   const uint8_t *panel, float *y)
{
    const size_t blocks = oct_nbits_blocks(f), depth = blocks * f->block, most = DEPTH / f->block;
    unpacked u = { .quads = f->block / 4 };
    for (size_t at = 0; at < blocks; at += u.blocks) {
        u.blocks = blocks - at < most ? blocks - at : most;
        for (size_t b = 0; b < u.blocks; b++, panel += oct_nbits_block_bytes(f, WIDTH))
            unpack(f, panel, &u, b);
        for (size_t i = 0; i < m;) {
            const size_t first = i % HEIGHT, group = i - first, number = group * blocks + at * HEIGHT + first;
            const size_t left = m - i, rows = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            (rows == 6   ? tile6
             : rows == 4 ? tile4
             : rows == 2 ? tile2
                         : tile1)(&u, (const uint8_t *)a->q + group * depth + at * f->block * HEIGHT + 4 * first,
                                  a->scale + number, a->sum + number, y + i * nr);
            i += rows;
        }
    }
}
