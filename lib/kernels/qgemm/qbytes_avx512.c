/* lib/kernels/qgemm/qbytes_avx512.c -- 64 bytes or 16 columns at a time. */
#include "kernels/qgemm/qbytes.h"
#include "kernels/simd.h"

enum { WIDTH = 64 };

static uint32_t sum(const uint8_t *a, size_t n, uint8_t flip)
{
    const __m512i flips = _mm512_set1_epi8((char)flip);
    __m512i s = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += WIDTH) {
        const uint64_t k = n - i < WIDTH ? (UINT64_C(1) << (n - i)) - 1 : ~UINT64_C(0);
        const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(k, a + i), flips);
        s = _mm512_add_epi32(s, _mm512_sad_epu8(x, _mm512_setzero_si512()));
    }
    /* Bytes that are not there came to be flip. */
    const size_t beyond = (WIDTH - n % WIDTH) % WIDTH;
    return (uint32_t)_mm512_reduce_add_epi32(s) - (uint32_t)beyond * flip;
}

OCT_INLINE __m128i load(const uint8_t *p, size_t n, __mmask16 k)
{
    return n == OCT_QBYTES_COLUMNS ? _mm_loadu_si128((const __m128i *)(const void *)p) : _mm_maskz_loadu_epi8(k, p);
}

/* Four rows of 16 bytes as lanes; words of a column group side by side, then the bytes of each column. */
static void quads(const uint8_t *b, size_t step, size_t k, size_t n, uint8_t flip, size_t pitch, int8_t *to,
                  int32_t sums[OCT_QBYTES_COLUMNS])
{
    static const int32_t groups[] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 };
    const __m512i by_group = _mm512_loadu_si512(groups), flips = _mm512_set1_epi8((char)flip);
    const __m512i by_column = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    const __m512i ones8 = _mm512_set1_epi8(1), ones16 = _mm512_set1_epi16(1);
    __m512i sum = _mm512_loadu_si512(sums);
    for (size_t i = 0; i < k; i += 4, b += 4 * step, to += pitch) {
        const size_t rows = k - i < 4 ? k - i : 4;
        __m512i x = _mm512_castsi128_si512(load(b, n, some));
        x = _mm512_inserti32x4(x, load(b + (rows > 1 ? step : 0), n, some), 1);
        x = _mm512_inserti32x4(x, load(b + (rows > 2 ? 2 * step : 0), n, some), 2);
        x = _mm512_inserti32x4(x, load(b + (rows > 3 ? 3 * step : 0), n, some), 3);
        x = _mm512_maskz_xor_epi32((__mmask16)((1u << 4 * rows) - 1), x, flips);
        x = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(by_group, x), by_column);
        _mm512_storeu_si512(to, x);
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(ones8, x), ones16));
    }
    _mm512_storeu_si512(sums, sum);
}

static void fold(size_t n, const int32_t *bias, const int32_t *sums, const int32_t *colmul, int32_t za, size_t depth,
                 int32_t *add)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i by_sum = _mm512_set1_epi32(za),
                  by_zero = _mm512_set1_epi32((int32_t)((uint32_t)depth * (uint32_t)za));
    for (size_t j = 0; j < n; j += 16) {
        const __mmask16 k = n - j < 16 ? (__mmask16)((1u << (n - j)) - 1) : 0xffff;
        const __m512i s = _mm512_mullo_epi32(by_sum, _mm512_maskz_loadu_epi32(k, sums + j));
        const __m512i z = colmul ? _mm512_mullo_epi32(by_zero, _mm512_maskz_loadu_epi32(k, colmul + j)) : zero;
        const __m512i b = bias ? _mm512_maskz_loadu_epi32(k, bias + j) : zero;
        _mm512_mask_storeu_epi32(add + j, k, _mm512_sub_epi32(_mm512_sub_epi32(b, s), z));
    }
}

const oct_qbytes oct_qbytes__avx512 = { sum, quads, fold };
