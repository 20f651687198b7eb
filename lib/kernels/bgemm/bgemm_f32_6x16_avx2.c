/* lib/kernels/bgemm/bgemm_f32_6x16_avx2.c -- 6 rows by 16 columns: the chains of even k in 12 accumulators, then those
 * of odd k; sums in memory. */
#include "kernels/bgemm/bgemm_int.h"
#include "kernels/bgemm/flushing.h"
#include "kernels/sgemm/sout_ymm.inc"

/* ROW(i) expands to the statement for row i where the tile has it; m is a constant once inlined. */
#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

/* One chain of each output, over every second k of `steps`: to `to`, or, of odd k, added to what even ones left there
 * and then to c. */
OCT_INLINE void chains(const size_t m, const bool odd, size_t steps, const float *const *a, size_t from, const float *b,
                       float *to, float *c, size_t ldc)
{
    const pair zero = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    pair v0 = zero, v1 = zero, v2 = zero, v3 = zero, v4 = zero, v5 = zero;
#define ROW(i) const float *a##i = a[m > i ? i : 0] + from;
    ROWS
#undef ROW
        for (size_t k = 0; k < 2 * steps; k += 2, b += 32)
    {
        const pair w = load(b);
#define ROW(i)                                          \
    if (m > i) {                                        \
        const __m256 x = _mm256_broadcast_ss(a##i + k); \
        v##i.lo = OCT_FMA256(x, w.lo, v##i.lo);         \
        v##i.hi = OCT_FMA256(x, w.hi, v##i.hi);         \
    }
        ROWS
#undef ROW
    }
#define ROW(i)                                                                               \
    if (m > i && odd) {                                                                      \
        const pair even = load(to + 16 * i), sum = load(c + i * ldc);                        \
        _mm256_storeu_ps(c + i * ldc, OCT_ADD256(sum.lo, OCT_ADD256(even.lo, v##i.lo)));     \
        _mm256_storeu_ps(c + i * ldc + 8, OCT_ADD256(sum.hi, OCT_ADD256(even.hi, v##i.hi))); \
    } else if (m > i) {                                                                      \
        _mm256_storeu_ps(to + 16 * i, v##i.lo);                                              \
        _mm256_storeu_ps(to + 16 * i + 8, v##i.hi);                                          \
    }
    ROWS
#undef ROW
}

OCT_INLINE void blocks(const size_t m, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                       size_t ldc)
{
    float even[6 * 16];
    for (size_t t = 0; t < taps; t++, a += 6, b += kc * 16)
        for (size_t k = 0; k < kc; k += OCT_BGEMM_BLOCK) {
            const size_t n = kc - k < OCT_BGEMM_BLOCK ? kc - k : OCT_BGEMM_BLOCK;
            chains(m, false, (n + 1) / 2, a, k, b + k * 16, even, c, ldc);
            chains(m, true, n / 2, a, k + 1, b + (k + 1) * 16, even, c, ldc);
        }
}

OCT_OUTLINE void sums(size_t m, size_t taps, size_t kc, const float *const *a, const float *b, float *c, size_t ldc)
{
    switch (m) {
    case 1: blocks(1, taps, kc, a, b, c, ldc); break;
    case 2: blocks(2, taps, kc, a, b, c, ldc); break;
    case 3: blocks(3, taps, kc, a, b, c, ldc); break;
    case 4: blocks(4, taps, kc, a, b, c, ldc); break;
    case 5: blocks(5, taps, kc, a, b, c, ldc); break;
    default: blocks(6, taps, kc, a, b, c, ldc); break;
    }
}

void oct_bgemm_f32_6x16__avx2(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                              float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    const pair zero = { _mm256_setzero_ps(), _mm256_setzero_ps() }, start = first && out->bias ? load(out->bias) : zero;
    for (size_t i = 0; i < m && first; i++) {
        _mm256_storeu_ps(c + i * ldc, start.lo);
        _mm256_storeu_ps(c + i * ldc + 8, start.hi);
    }
    OCT_FLUSHING(sums(m, taps, kc, a, b, c, ldc));
    for (size_t i = 0; i < m && last; i++) {
        const pair y = finish(load(c + i * ldc), out, i);
        _mm256_storeu_ps(c + i * ldc, y.lo);
        _mm256_storeu_ps(c + i * ldc + 8, y.hi);
    }
}
