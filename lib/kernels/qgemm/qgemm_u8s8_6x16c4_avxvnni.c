/* lib/kernels/qgemm/qgemm_u8s8_6x16c4_avxvnni.c -- 6 rows by 16 columns, vpdpbusd in 256-bit registers: four products
 * and their sum in 32 bits, exact. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

/* Sixteen columns of a row. */
typedef struct pair {
    __m256i lo, hi;
} pair;

OCT_INLINE pair step(pair v, uint32_t four, uint8_t flip, __m256i b0, __m256i b1)
{
    const __m256i all = _mm256_set1_epi32((int)four),
                  x = flip ? _mm256_xor_si256(all, _mm256_set1_epi8((char)flip)) : all;
    return (pair){ _mm256_dpbusd_avx_epi32(v.lo, x, b0), _mm256_dpbusd_avx_epi32(v.hi, x, b1) };
}

OCT_INLINE __m256i load(const int8_t *b)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)b);
}

#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

OCT_INLINE void tile(const size_t m, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a,
                     const int8_t *b, int32_t *c)
{
#define ROW(i) pair v##i = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    ROWS
#undef ROW
        for (size_t t = 0; t < taps; t++, a += 6)
    {
#define ROW(i) const uint8_t *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 4 <= kc; k += 4, b += 64) {
            const __m256i b0 = load(b), b1 = load(b + 32);
#define ROW(i) \
    if (m > i) \
        v##i = step(v##i, oct_quad(a##i + k), flip, b0, b1);
            ROWS
#undef ROW
        }
        if (k < kc) {
            const __m256i b0 = load(b), b1 = load(b + 32);
#define ROW(i) \
    if (m > i) \
        v##i = step(v##i, oct_quad_part(a##i + k, kc - k), flip, b0, b1);
            ROWS
#undef ROW
                b += 64;
        }
    }
#define ROW(i)                                                             \
    if (m > i) {                                                           \
        _mm256_storeu_si256((__m256i *)(void *)(c + i * 16), v##i.lo);     \
        _mm256_storeu_si256((__m256i *)(void *)(c + i * 16 + 8), v##i.hi); \
    }
    ROWS
#undef ROW
}

#define CASE(m) \
    case m: flip ? tile(m, 0x80, taps, kc, a, b, c) : tile(m, 0, taps, kc, a, b, c); break;

void oct_qgemm_u8s8_6x16c4__avxvnni(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                    const int8_t *b, int32_t *c)
{
    switch (m) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
    }
}
