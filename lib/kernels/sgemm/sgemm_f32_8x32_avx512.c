/* lib/kernels/sgemm/sgemm_f32_8x32_avx512.c -- 8 rows by 32 columns in 16 accumulators. */
#include "kernels/sgemm/sgemm_int.h"
#include "kernels/sgemm/sout_zmm.inc"

/* ROW(i) expands to the statement for row i where the tile has it; m and wide (columns 16 to 31 matter)
 * are constants once inlined. low and high: the columns that there are. */
#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)

OCT_INLINE void tile(const size_t m, const bool wide, size_t n, size_t taps, size_t kc, const float *const *a,
                     const float *b, float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    const __mmask16 low = wide ? 0xffff : (__mmask16)(0xffff >> (16 - n)),
                    high = wide ? (__mmask16)(0xffff >> (32 - n)) : 0;
    __m512 start_v = _mm512_setzero_ps(), start_w = start_v;
    if (first && out->bias) {
        start_v = _mm512_maskz_loadu_ps(low, out->bias);
        if (wide)
            start_w = _mm512_maskz_loadu_ps(high, out->bias + 16);
    }
#define ROW(i) __m512 v##i = start_v, w##i = start_w;
    ROWS
#undef ROW
        if (!first)
    {
#define ROW(i)                                                    \
    if (m > i) {                                                  \
        v##i = _mm512_maskz_loadu_ps(low, c + i * ldc);           \
        if (wide)                                                 \
            w##i = _mm512_maskz_loadu_ps(high, c + i * ldc + 16); \
    }
        ROWS
#undef ROW
    }
    for (size_t t = 0; t < taps; t++, a += 8) {
#define ROW(i) const float *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            for (size_t k = 0; k < kc; k++, b += 32)
        {
            const __m512 b0 = _mm512_loadu_ps(b), b1 = wide ? _mm512_loadu_ps(b + 16) : b0;
#define ROW(i)                                    \
    if (m > i) {                                  \
        const __m512 x = _mm512_set1_ps(a##i[k]); \
        v##i = _mm512_fmadd_ps(x, b0, v##i);      \
        if (wide)                                 \
            w##i = _mm512_fmadd_ps(x, b1, w##i);  \
    }
            ROWS
#undef ROW
        }
    }
#define ROW(i)                                                                                           \
    if (m > i) {                                                                                         \
        _mm512_mask_storeu_ps(c + i * ldc, low, last ? finish(v##i, out, i, 0, low) : v##i);             \
        if (wide)                                                                                        \
            _mm512_mask_storeu_ps(c + i * ldc + 16, high, last ? finish(w##i, out, i, 16, high) : w##i); \
    }
    ROWS
#undef ROW
}

#define CASE(m)                                                             \
    case m:                                                                 \
        wide ? tile(m, true, n, taps, kc, a, b, c, ldc, first, last, out)   \
             : tile(m, false, n, taps, kc, a, b, c, ldc, first, last, out); \
        break;

void oct_sgemm_f32_8x32__avx512(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                                float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    const bool wide = n > 16;
    switch (m) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
    }
}
