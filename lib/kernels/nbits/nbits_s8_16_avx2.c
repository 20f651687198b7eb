/* lib/kernels/nbits/nbits_s8_16_avx2.c -- panels of 16 columns, 4 rows, vpmaddubsw: weights of up to 4 bits times
 * activations within 127, two products added in 16 bits and eight such pairs added: at most 8 * 2 * 15 * 127 = 30480,
 * exact. Weights of 8 bits are two of 4. */
#include "kernels/nbits/nbits_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

enum { W = 8, MR = 4, RUN = 32 /* values of k that are added in 16 bits */ };

typedef struct sums {
    __m256i v[MR][2];
} sums;

/* Adds `times` the products of `n` values of k, the `part`-th 4 bits of weights of 8. */
OCT_INLINE void run(const int bits, const int part, const int rows, size_t n, const uint8_t *q, size_t row,
                    const uint8_t *word, sums *s)
{
    const __m256i times = _mm256_set1_epi16(part ? 16 : 1), mask = _mm256_set1_epi8((char)(bits == 2 ? 3 : 15));
    __m256i pair[MR][2];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        pair[i][0] = pair[i][1] = _mm256_setzero_si256();
    for (size_t k = 0; k < n; k += 32 / (size_t)bits, word += 2 * W * 4) {
        const __m256i word0 = _mm256_loadu_si256((const __m256i *)(const void *)word),
                      word1 = _mm256_loadu_si256((const __m256i *)(const void *)(word + W * 4));
#pragma GCC unroll 4
        for (int p = 0; p < 8 / bits; p++) {
            const int shift = bits == 8 ? part * 4 : p * bits;
            const __m256i w0 = _mm256_and_si256(_mm256_srli_epi32(word0, shift), mask),
                          w1 = _mm256_and_si256(_mm256_srli_epi32(word1, shift), mask);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                const __m256i x = _mm256_set1_epi32((int)oct_quad(q + (size_t)i * row + k + 4 * (size_t)p));
                pair[i][0] = _mm256_add_epi16(pair[i][0], _mm256_maddubs_epi16(w0, x));
                pair[i][1] = _mm256_add_epi16(pair[i][1], _mm256_maddubs_epi16(w1, x));
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            s->v[i][v] = _mm256_add_epi32(s->v[i][v], _mm256_madd_epi16(pair[i][v], times));
}

OCT_INLINE void block(const int bits, const int rows, const oct_nbits_form *f, size_t at, size_t blocks,
                      const oct_nbits_rows *a, const uint8_t *panel, float *y)
{
    const uint8_t *word = panel + oct_nbits_at_qvals(f, 2 * W), *q = (const uint8_t *)a->q + at * f->block;
    const size_t row = blocks * f->block;
    __m256i zero[2];
    sums s;
#pragma GCC unroll 2
    for (int v = 0; v < 2; v++)
        zero[v] = f->zero == OCT_NBITS_WHOLE
                      ? _mm256_cvtepu8_epi32(
                            _mm_loadl_epi64((const __m128i *)(const void *)(panel + oct_nbits_at_zero(2 * W) + v * W)))
                      : _mm256_set1_epi32(1 << (bits - 1));
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) /* what the zero point adds to the sums: both fit 16 bits */
            s.v[i][v] = _mm256_madd_epi16(zero[v], _mm256_set1_epi32(-a->sum[(size_t)i * blocks + at]));
    for (size_t k = 0; k < f->block; k += RUN) {
        const size_t n = f->block - k < RUN ? f->block - k : RUN;
        const uint8_t *from = word + k * (size_t)bits / 32 * (2 * W * 4);
        run(bits, 0, rows, n, q + k, row, from, &s);
        if (bits == 8)
            run(bits, 1, rows, n, q + k, row, from, &s);
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(a->scale[(size_t)i * blocks + at]),
                                               _mm256_loadu_ps((const float *)(const void *)panel + v * W));
            float *to = y + (i * 2 + v) * W;
            _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(s.v[i][v]), scale, _mm256_loadu_ps(to)));
        }
}

OCT_INLINE void rows(const int bits, const int rows, const oct_nbits_form *f, const oct_nbits_rows *a,
                     const uint8_t *panel, float *y)
{
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t b = 0; b < blocks; b++, panel += oct_nbits_block_bytes(f, 2 * W))
        block(bits, rows, f, b, blocks, a, panel, y);
}

OCT_INLINE void any(const int bits, const oct_nbits_form *f, size_t m, const oct_nbits_rows *a, const uint8_t *panel,
                    float *y)
{
    const size_t blocks = oct_nbits_blocks(f);
    size_t i = 0;
    for (; i + MR <= m; i += MR)
        rows(bits, MR, f, &(oct_nbits_rows){ a->q + i * blocks * f->block, a->scale + i * blocks, a->sum + i * blocks },
             panel, y + i * 2 * W);
    for (; i < m; i++)
        rows(bits, 1, f, &(oct_nbits_rows){ a->q + i * blocks * f->block, a->scale + i * blocks, a->sum + i * blocks },
             panel, y + i * 2 * W);
}

void oct_nbits_s8_16__avx2(const oct_nbits_form *f, size_t nr, size_t m, const oct_nbits_rows *a, const uint8_t *panel,
                           float *y)
{
    f->bits == 2 ? any(2, f, m, a, panel, y) : f->bits == 4 ? any(4, f, m, a, panel, y) : any(8, f, m, a, panel, y);
}
