/* lib/kernels/sgemm/sgemm_f32_6x16_avx2.c -- 6 rows by 16 columns in 12 accumulators; one row by 64 columns in 8. */
#include "kernels/sgemm/sgemm_int.h"
#include "kernels/sgemm/sout_ymm.inc"

/* ROW(i) expands to the statement for row i where the tile has it; m is a constant once inlined, and so is narrow: 8
 * columns will do. */
#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

OCT_INLINE void tile(const size_t m, const bool narrow, size_t taps, size_t kc, const float *const *a, const float *b,
                     float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    const pair zero = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    const pair start = first && out->bias ? load(out->bias) : zero;
    pair v0 = start, v1 = start, v2 = start, v3 = start, v4 = start, v5 = start;
    if (!first) {
#define ROW(i) \
    if (m > i) \
        v##i = load(c + i * ldc);
        ROWS
#undef ROW
    }
    for (size_t t = 0; t < taps; t++, a += 6) {
#define ROW(i) const float *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            for (size_t k = 0; k < kc; k++, b += 16)
        {
            const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
#define ROW(i)                                          \
    if (m > i) {                                        \
        const __m256 x = _mm256_broadcast_ss(a##i + k); \
        v##i.lo = _mm256_fmadd_ps(x, b0, v##i.lo);      \
        if (!narrow)                                    \
            v##i.hi = _mm256_fmadd_ps(x, b1, v##i.hi);  \
    }
            ROWS
#undef ROW
        }
    }
#define ROW(i)                                             \
    if (m > i) {                                           \
        const pair y = last ? finish(v##i, out, i) : v##i; \
        _mm256_storeu_ps(c + i * ldc, y.lo);               \
        if (!narrow)                                       \
            _mm256_storeu_ps(c + i * ldc + 8, y.hi);       \
    }
    ROWS
#undef ROW
}

void oct_sgemm_f32_6x16__avx2(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                              float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    switch (n <= 8 && m == 6 ? 7 : m) {
    case 1: tile(1, false, taps, kc, a, b, c, ldc, first, last, out); break;
    case 2: tile(2, false, taps, kc, a, b, c, ldc, first, last, out); break;
    case 3: tile(3, false, taps, kc, a, b, c, ldc, first, last, out); break;
    case 4: tile(4, false, taps, kc, a, b, c, ldc, first, last, out); break;
    case 5: tile(5, false, taps, kc, a, b, c, ldc, first, last, out); break;
    case 7: tile(6, true, taps, kc, a, b, c, ldc, first, last, out); break;
    default: tile(6, false, taps, kc, a, b, c, ldc, first, last, out); break;
    }
}

/* n panels side by side: one has too few chains to hide the latency of the fma. The processor fetches ahead too little
 * by itself. */
OCT_INLINE void panels_of_row(const size_t n, size_t kc, const float *a, const float *b, size_t panel, float *c,
                              const oct_sout *out)
{
    enum { AHEAD = 512 };
    const pair zero = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    pair v0 = zero, v1 = zero, v2 = zero, v3 = zero;
#define PANELS PANEL(0) PANEL(1) PANEL(2) PANEL(3)
#define PANEL(i)            \
    if (n > i && out->bias) \
        v##i = load(out->bias + 16 * i);
    PANELS
#undef PANEL
    for (size_t k = 0; k < kc; k++, b += 16) {
        const __m256 x = _mm256_broadcast_ss(a + k);
#define PANEL(i)                                                          \
    if (n > i) {                                                          \
        const pair w = load(b + i * panel);                               \
        _mm_prefetch((const char *)(b + i * panel + AHEAD), _MM_HINT_T0); \
        v##i.lo = _mm256_fmadd_ps(x, w.lo, v##i.lo);                      \
        v##i.hi = _mm256_fmadd_ps(x, w.hi, v##i.hi);                      \
    }
        PANELS
#undef PANEL
    }
#define PANEL(i)                                \
    if (n > i) {                                \
        oct_sout o = *out;                      \
        if (o.residual)                         \
            o.residual += 16 * i;               \
        const pair y = finish(v##i, &o, 0);     \
        _mm256_storeu_ps(c + 16 * i, y.lo);     \
        _mm256_storeu_ps(c + 16 * i + 8, y.hi); \
    }
    PANELS
#undef PANEL
}

void oct_sgemm_f32_1x16__avx2(size_t panels, size_t kc, const float *a, const float *b, size_t panel, float *c,
                              const oct_sout *out)
{
    oct_sout o = *out;
    for (size_t p = 0; p < panels;) {
        const size_t n = panels - p < 4 ? 1 : 4;
        if (n == 4)
            panels_of_row(4, kc, a, b, panel, c, &o);
        else
            panels_of_row(1, kc, a, b, panel, c, &o);
        p += n;
        b += n * panel;
        c += n * 16;
        if (o.bias)
            o.bias += n * 16;
        if (o.residual)
            o.residual += n * 16;
    }
}
