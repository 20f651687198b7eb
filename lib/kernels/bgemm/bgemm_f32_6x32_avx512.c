/* lib/kernels/bgemm/bgemm_f32_6x32_avx512.c -- 6 rows by 32 columns: both chains of each output in 24 accumulators;
 * sums in memory. */
#include "kernels/bgemm/bgemm_int.h"
#include "kernels/bgemm/flushing.h"
#include "kernels/sgemm/sout_zmm.inc"

/* ROW(i) expands to the statement for row i where the tile has it; m and wide (columns 16 to 31 matter)
 * are constants once inlined. */
#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

/* Value `at` of row i in the chains v and w. */
#define STEP(i, at, v, w, b0, b1)                  \
    if (m > i) {                                   \
        const __m512 x = _mm512_set1_ps(a##i[at]); \
        v = OCT_FMA512(x, b0, v);                  \
        if (wide)                                  \
            w = OCT_FMA512(x, b1, w);              \
    }

/* Where a tile begins and ends. */
typedef struct ends {
    const float *bias;   /* first blocks add to it, or to zero, else to c */
    const oct_sout *out; /* last blocks end by it; NULL: with the sums */
    bool first;
} ends;

/* Up to 32 values of k from `from` on. */
OCT_INLINE void block(const size_t m, const bool wide, size_t n, const float *const *a, size_t from, const float *b,
                      float *c, size_t ldc, const ends *e)
{
    const __m512 zero = _mm512_setzero_ps();
#define ROW(i)                                   \
    const float *a##i = a[m > i ? i : 0] + from; \
    __m512 v##i = zero, w##i = zero, odd_v##i = zero, odd_w##i = zero;
    ROWS
#undef ROW
        size_t k = 0;
    for (; k + 1 < n; k += 2, b += 64) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = wide ? _mm512_loadu_ps(b + 16) : b0;
#define ROW(i) STEP(i, k, v##i, w##i, b0, b1)
        ROWS
#undef ROW
            const __m512 c0 = _mm512_loadu_ps(b + 32),
                         c1 = wide ? _mm512_loadu_ps(b + 48) : c0;
#define ROW(i) STEP(i, k + 1, odd_v##i, odd_w##i, c0, c1)
        ROWS
#undef ROW
    }
    if (k < n) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = wide ? _mm512_loadu_ps(b + 16) : b0;
#define ROW(i) STEP(i, k, v##i, w##i, b0, b1)
        ROWS
#undef ROW
    }
    const __m512 bias0 = e->bias ? _mm512_loadu_ps(e->bias) : zero,
                 bias1 = e->bias && wide ? _mm512_loadu_ps(e->bias + 16) : zero;
#define ROW(i)                                                                                                   \
    if (m > i) {                                                                                                 \
        v##i = OCT_ADD512(e->first ? bias0 : _mm512_loadu_ps(c + i * ldc), OCT_ADD512(v##i, odd_v##i));          \
        _mm512_storeu_ps(c + i * ldc, e->out ? finish(v##i, e->out, i, 0, 0xffff) : v##i);                       \
        if (wide) {                                                                                              \
            w##i = OCT_ADD512(e->first ? bias1 : _mm512_loadu_ps(c + i * ldc + 16), OCT_ADD512(w##i, odd_w##i)); \
            _mm512_storeu_ps(c + i * ldc + 16, e->out ? finish(w##i, e->out, i, 16, 0xffff) : w##i);             \
        }                                                                                                        \
    }
    ROWS
#undef ROW
}

OCT_INLINE void blocks(const size_t m, const bool wide, size_t taps, size_t kc, const float *const *a, const float *b,
                       float *c, size_t ldc, const ends *whole)
{
    ends e = { whole->bias, NULL, whole->first };
    for (size_t t = 0; t < taps; t++, a += 6, b += kc * 32)
        for (size_t k = 0; k < kc; k += OCT_BGEMM_BLOCK) {
            const size_t n = kc - k < OCT_BGEMM_BLOCK ? kc - k : OCT_BGEMM_BLOCK;
            if (t + 1 == taps && k + n == kc)
                e.out = whole->out;
            block(m, wide, n, a, k, b + k * 32, c, ldc, &e);
            e.first = false;
        }
}

#define CASE(m) \
    case m: wide ? blocks(m, true, taps, kc, a, b, c, ldc, e) : blocks(m, false, taps, kc, a, b, c, ldc, e); break;

OCT_OUTLINE void sums(size_t m, bool wide, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                      size_t ldc, const ends *e)
{
    switch (m) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
    }
}

void oct_bgemm_f32_6x32__avx512(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                                float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    const size_t width = n > 16 ? 32 : 16;
    const bool ends_there = last && oct_bgemm_ends_flushed(out) && taps && kc;
    const ends e = { first ? out->bias : NULL, ends_there ? out : NULL, first };
    for (size_t i = 0; i < m && first && !(taps && kc); i++)
        for (size_t j = 0; j < width; j += 16)
            _mm512_storeu_ps(c + i * ldc + j, out->bias ? _mm512_loadu_ps(out->bias + j) : _mm512_setzero_ps());
    OCT_FLUSHING(sums(m, n > 16, taps, kc, a, b, c, ldc, &e));
    for (size_t i = 0; i < m && last && !ends_there; i++)
        for (size_t j = 0; j < width; j += 16)
            _mm512_storeu_ps(c + i * ldc + j, finish(_mm512_loadu_ps(c + i * ldc + j), out, i, j, 0xffff));
}
