/* lib/kernels/nbits/nbits_s8_32_amx.c -- blockwise weights and quantized activations on tiles: tdpbssd of weights as
 * s8, exact. The sums of two blocks are multiplied by their scales and added to the chains beside the products that
 * come next. */
#include "kernels/nbits/nbits_int.h"
#include "kernels/simd.h"
#include "kernels/tiles.h"

#include <string.h>

enum { HALF = OCT_TILE_ROWS, WIDTH = 2 * HALF, TILE = 1024, LINE = 64, MOST_BLOCK = 256 };

/* Blocks of a panel that are multiplied together, their weights as s8: [k / step][2][step / 4][16][4], step up to
 * 64. */
typedef struct blocks {
    size_t n, first; /* 1 or 2 of them, the number of the first */
    const uint8_t *panel[2];
    _Alignas(LINE) int8_t w[2][MOST_BLOCK * WIDTH];
} blocks;

/* Sums of those for some rows. */
typedef struct pending {
    size_t n, first, row, end; /* rows from `row` on await their scales; the sums begin with row `base` */
    size_t base;
    const uint8_t *panel[2];
    const int32_t (*sums)[WIDTH * WIDTH];
} pending;

/* Zero points of 16 columns: as they are, and in each byte of a word. */
OCT_INLINE __m512i zeros(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

OCT_INLINE __m512i in_bytes(__m512i v)
{
    return _mm512_mullo_epi32(v, _mm512_set1_epi32(0x01010101));
}

/* Weights minus their zero points; of 8 bits minus 128, for the difference may pass 8 bits. */
OCT_INLINE void unpack(const int bits, const oct_nbits_form *f, const uint8_t *panel, int8_t *to)
{
    const uint8_t *word = panel + oct_nbits_at_qvals(f, WIDTH);
    const size_t step = f->block < LINE ? f->block : LINE, tile = step / 4 * LINE;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1)), middle = _mm512_set1_epi8((char)(1 << (bits - 1)));
    const bool own = bits < 8 && f->zero == OCT_NBITS_WHOLE;
    const __m512i zero[] = { own ? in_bytes(zeros(panel + oct_nbits_at_zero(WIDTH))) : middle,
                             own ? in_bytes(zeros(panel + oct_nbits_at_zero(WIDTH) + HALF)) : middle };
    for (size_t k = 0; k < f->block; k += step, to += 2 * tile)
        for (size_t quad = 0; quad < step / 4; quad += 8 / bits, word += 2 * LINE) /* those of a word */
#pragma GCC unroll 2
            for (size_t v = 0; v < 2; v++) {
                const __m512i words = _mm512_loadu_si512((const void *)(word + v * LINE));
#pragma GCC unroll 4
                for (int i = 0; i < 8 / bits; i++) {
                    const __m512i w =
                        bits == 8 ? words : _mm512_and_si512(_mm512_srli_epi32(words, (unsigned)(i * bits)), mask);
                    _mm512_storeu_si512(to + v * tile + (quad + (size_t)i) * LINE, _mm512_sub_epi8(w, zero[v]));
                }
            }
}

static void unpack_blocks(const oct_nbits_form *f, blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        f->bits == 2   ? unpack(2, f, b->panel[i], b->w[i])
        : f->bits == 4 ? unpack(4, f, b->panel[i], b->w[i])
                       : unpack(8, f, b->panel[i], b->w[i]);
}

/* The chains of up to `rows` rows, each by one link for every block. */
OCT_INLINE void link_rows(const int n, const bool whole8, const oct_nbits_form *f, const oct_nbits_rows *a, pending *p,
                          size_t rows, float *y)
{
    const size_t all = oct_nbits_blocks(f);
    const __m512i middle = _mm512_set1_epi32(128);
    __m512 scale[2][2];
    __m512i move[2][2];
#pragma GCC unroll 2
    for (int i = 0; i < n; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            scale[i][v] = _mm512_loadu_ps((const float *)(const void *)p->panel[i] + v * HALF);
            move[i][v] =
                whole8 ? _mm512_sub_epi32(middle, zeros(p->panel[i] + oct_nbits_at_zero(WIDTH) + v * HALF)) : middle;
        }
    const size_t from = p->row, end = p->end - from < rows ? p->end : from + rows, first = p->first;
    const int32_t *sums[] = { p->sums[0] + (from - p->base) * WIDTH, p->sums[n - 1] + (from - p->base) * WIDTH };
    p->row = end;
    for (size_t row = from; row < end; row++, sums[0] += WIDTH, sums[1] += WIDTH) {
        float *to = y + row * WIDTH;
        __m512 chain[] = { _mm512_loadu_ps(to), _mm512_loadu_ps(to + HALF) };
#pragma GCC unroll 2
        for (int i = 0; i < n; i++) {
            const size_t at = row * all + first + (size_t)i;
            const __m512 s = _mm512_set1_ps(a->scale[at]);
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++) {
                __m512i sum = _mm512_loadu_si512(sums[i] + v * HALF);
                if (whole8)
                    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(a->sum[at]), move[i][v]));
                chain[v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(s, scale[i][v]), chain[v]);
            }
        }
        _mm512_storeu_ps(to, chain[0]);
        _mm512_storeu_ps(to + HALF, chain[1]);
    }
}

static void link_some(const oct_nbits_form *f, const oct_nbits_rows *a, pending *p, size_t rows, float *y)
{
    const bool whole8 = f->bits == 8 && f->zero == OCT_NBITS_WHOLE;
    if (p->row == p->end)
        return;
    if (p->n == 2)
        whole8 ? link_rows(2, true, f, a, p, rows, y) : link_rows(2, false, f, a, p, rows, y);
    else
        whole8 ? link_rows(1, true, f, a, p, rows, y) : link_rows(1, false, f, a, p, rows, y);
}

/* One block for two tiles of rows, `apart` rows from each other, or one: tiles 0 to 3 are the sums, 4 and 5 rows, 6 and
 * 7 columns. */
OCT_INLINE void products(const bool tall, size_t block, const uint8_t *x, size_t pitch, size_t apart, const int8_t *w)
{
    const size_t step = block < LINE ? block : LINE, tile = step / 4 * LINE;
    oct_tile_zero(0);
    oct_tile_zero(1);
    if (tall) {
        oct_tile_zero(2);
        oct_tile_zero(3);
    }
    for (size_t k = 0; k < block; k += step, w += 2 * tile) {
        oct_tile_load(4, x + k, pitch);
        oct_tile_load(6, w, LINE);
        oct_tile_dot_ss(0, 4, 6);
        oct_tile_load(7, w + tile, LINE);
        oct_tile_dot_ss(1, 4, 7);
        if (tall) {
            oct_tile_load(5, x + apart * pitch + k, pitch);
            oct_tile_dot_ss(2, 5, 6);
            oct_tile_dot_ss(3, 5, 7);
        }
    }
}

static void store(bool tall, size_t apart, int32_t *to)
{
    oct_tile_store(0, to, WIDTH * sizeof *to);
    oct_tile_store(1, to + HALF, WIDTH * sizeof *to);
    if (tall) {
        oct_tile_store(2, to + apart * WIDTH, WIDTH * sizeof *to);
        oct_tile_store(3, to + apart * WIDTH + HALF, WIDTH * sizeof *to);
    }
    OCT_TILES_SETTLE();
}

/* Rows are as many tiles of one height as they need; the last begins earlier where they are fewer. */
void oct_nbits_s8_32__amx(const oct_nbits_form *f, size_t nr, size_t m, const oct_nbits_rows *a, const uint8_t *panel,
                          float *y)
{
    const size_t all = oct_nbits_blocks(f), pitch = all * f->block, bytes = oct_nbits_block_bytes(f, nr),
                 step = f->block < LINE ? f->block : LINE;
    const size_t tiles = (m + HALF - 1) / HALF, height = (m + tiles - 1) / tiles, last = m - height;
    _Alignas(LINE) int32_t sums[2][2][WIDTH * WIDTH];
    pending p = { 0 };
    blocks b;
    oct_tiles_shape shape = oct_tiles_whole;
    for (size_t i = 0; i < 8; i++) {
        shape.rows[i] = (uint8_t)(i < 6 ? height : step / 4);
        shape.bytes[i] = (uint16_t)(i == 4 || i == 5 ? step : LINE);
    }
    oct_tiles_begin_shape(&shape);
    for (b.first = 0; b.first < all; b.first += 2, panel += 2 * bytes) {
        b.n = all - b.first < 2 ? 1 : 2;
        b.panel[0] = panel;
        b.panel[1] = panel + bytes;
        unpack_blocks(f, &b);
        OCT_TILES_SETTLE();
        for (size_t t = 0, done = 0, which = b.first / 2 * ((tiles + 1) / 2); t < tiles; t += 2, which++) {
            const bool tall = t + 1 < tiles;
            const size_t row = t * height < last ? t * height : last,
                         apart = tall ? ((t + 1) * height < last ? (t + 1) * height : last) - row : 0;
            for (size_t i = 0; i < b.n; i++) {
                const uint8_t *x = (const uint8_t *)a->q + row * pitch + (b.first + i) * f->block;
                tall ? products(true, f->block, x, pitch, apart, b.w[i])
                     : products(false, f->block, x, pitch, apart, b.w[i]);
                link_some(f, a, &p, i + 1 < b.n ? (p.end - p.row + 1) / 2 : WIDTH, y);
                store(tall, apart, sums[which % 2][i]);
            }
            p = (pending){ .n = b.n,
                           .first = b.first,
                           .row = done,
                           .end = row + apart + height,
                           .base = row,
                           .panel = { b.panel[0], b.panel[1] },
                           .sums = (const int32_t(*)[WIDTH * WIDTH]) sums[which % 2] };
            done = p.end;
        }
    }
    oct_tiles_end();
    link_some(f, a, &p, WIDTH, y);
}
