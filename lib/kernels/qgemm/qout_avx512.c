/* lib/kernels/qgemm/qout_avx512.c -- output pipeline, 16 columns of all rows at a time, the last ones masked; 8-bit
 * values 64 or 32 where there are as many. */
#include "kernels/qgemm/qout_int.h"
#include "kernels/qgemm/qlast_zmm.inc"
#include "kernels/simd.h"

/* Sixteen columns, of which those in k exist: what is the same for every row. */
typedef struct columns {
    __mmask16 k;
    __m512i add, colmul;
    __m512 mult, bias;
} columns;

OCT_INLINE columns columns_at(size_t j, size_t n, const int32_t *add, const int32_t *colmul, const oct_qout *o)
{
    columns v = { .k = n - j >= 16 ? 0xffff : (__mmask16)((1u << (n - j)) - 1) };
    v.add = add ? _mm512_maskz_loadu_epi32(v.k, add + j) : _mm512_setzero_si512();
    v.colmul = colmul ? _mm512_maskz_loadu_epi32(v.k, colmul + j) : _mm512_setzero_si512();
    v.mult = o->mult ? _mm512_maskz_loadu_ps(v.k, o->mult + j) : _mm512_setzero_ps();
    v.bias = o->bias ? _mm512_maskz_loadu_ps(v.k, o->bias + j) : _mm512_setzero_ps();
    return v;
}

OCT_INLINE __m512i sum_of(const int32_t *acc, const columns *w, const int32_t *rowadd, size_t i)
{
    const __m512i v = _mm512_add_epi32(_mm512_maskz_loadu_epi32(w->k, acc), w->add);
    return rowadd ? _mm512_add_epi32(v, _mm512_mullo_epi32(_mm512_set1_epi32(rowadd[i]), w->colmul)) : v;
}

static void block_s32(size_t m, const int32_t *acc, size_t lda, const columns *w, const int32_t *rowadd, int32_t *c,
                      size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        _mm512_mask_storeu_epi32(c + i * ldc, w->k, sum_of(acc + i * lda, w, rowadd, i));
}

static void block_f32(size_t m, const int32_t *acc, size_t lda, const columns *w, const int32_t *rowadd,
                      const oct_qout *o, float *c, size_t ldc)
{
    const bool biased = o->bias, clamped = o->clamp; /* not read again after each store */
    const __m512 lo = _mm512_set1_ps(o->lo), hi = _mm512_set1_ps(o->hi);
    for (size_t i = 0; i < m; i++) {
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum_of(acc + i * lda, w, rowadd, i)), w->mult);
        if (biased)
            v = _mm512_add_ps(v, w->bias);
        if (clamped)
            v = _mm512_min_ps(hi, _mm512_max_ps(lo, v));
        _mm512_mask_storeu_ps(c + i * ldc, w->k, v);
    }
}

/* Clamped float steps, rounded half to even (the default mode), plus the zero point, low byte. A full
 * block stores without a mask, which is several times cheaper on some CPUs. */
static void block_qvals(size_t m, const int32_t *acc, size_t lda, const columns *w, const int32_t *rowadd,
                        const oct_qout *o, uint8_t *c, size_t ldc)
{
    const __m512 lo = _mm512_set1_ps(o->lo), hi = _mm512_set1_ps(o->hi);
    const __m512i zp = _mm512_set1_epi32(o->zp);
    const size_t n = (size_t)__builtin_popcount(w->k);
    for (size_t i = 0; i < m; i++, acc += lda, c += ldc) {
        const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum_of(acc, w, rowadd, i)), w->mult);
        const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_min_ps(hi, _mm512_max_ps(lo, v))), zp);
        if (n == 16)
            _mm_storeu_si128((__m128i *)(void *)c, _mm512_cvtepi32_epi8(q));
        else
            _mm_mask_storeu_epi8(c, w->k, _mm512_cvtepi32_epi8(q));
        if (o->lut)
            for (size_t j = 0; j < n; j++)
                c[j] = o->lut[c[j]];
    }
}

/* 64 or 32 columns from j. */
OCT_INLINE void wide_qvals(const size_t width, size_t m, size_t j, const int32_t *acc, size_t lda, const int32_t *add,
                           const int32_t *rowadd, const int32_t *colmul, const oct_qout *o, uint8_t *c, size_t ldc)
{
    const oct_qlast last = oct_qlast_of(o);
    const columns w0 = columns_at(j, j + 16, add, colmul, o), w1 = columns_at(j + 16, j + 32, add, colmul, o);
    const columns w2 = width == 64 ? columns_at(j + 32, j + 48, add, colmul, o) : w0;
    const columns w3 = width == 64 ? columns_at(j + 48, j + 64, add, colmul, o) : w1;
    const __m512 mult[] = { w0.mult, w1.mult, w2.mult, w3.mult };
    for (size_t i = 0; i < m; i++, acc += lda, c += ldc) {
        const __m512i s0 = sum_of(acc, &w0, rowadd, i), s1 = sum_of(acc + 16, &w1, rowadd, i);
        const __m512i sums[] = { s0, s1, width == 64 ? sum_of(acc + 32, &w2, rowadd, i) : s0,
                                 width == 64 ? sum_of(acc + 48, &w3, rowadd, i) : s1 };
        const __m512i q = oct_qlast_bytes(false, &last, sums, mult);
        if (width == 64)
            _mm512_storeu_si512(c, q);
        else
            _mm256_storeu_si256((__m256i *)(void *)c, _mm512_castsi512_si256(q));
        for (size_t k = 0; o->lut && k < width; k++)
            c[k] = o->lut[c[k]];
    }
}

void oct_qout__avx512(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                      const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    size_t j = 0;
    if (o->kind == OCT_QOUT_U8 || o->kind == OCT_QOUT_S8) {
        for (; j + 64 <= n; j += 64)
            wide_qvals(64, m, j, acc + j, lda, add, rowadd, colmul, o, (uint8_t *)c + j, ldc);
        for (; j + 32 <= n; j += 32)
            wide_qvals(32, m, j, acc + j, lda, add, rowadd, colmul, o, (uint8_t *)c + j, ldc);
    }
    for (; j < n; j += 16) {
        const columns w = columns_at(j, n, add, colmul, o);
        if (o->kind == OCT_QOUT_S32)
            block_s32(m, acc + j, lda, &w, rowadd, (int32_t *)c + j, ldc);
        else if (o->kind == OCT_QOUT_F32)
            block_f32(m, acc + j, lda, &w, rowadd, o, (float *)c + j, ldc);
        else
            block_qvals(m, acc + j, lda, &w, rowadd, o, (uint8_t *)c + j, ldc);
    }
}
