/* lib/kernels/qgemm/qout_avx2.c -- output pipeline, 16 or 8 columns of all rows at a time. */
#include "kernels/qgemm/kernels.h"
#include "kernels/simd.h"

/* Eight columns: what is the same for every row. */
typedef struct columns {
    __m256i add, colmul;
    __m256 mult, bias;
} columns;

OCT_INLINE __m256i load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

OCT_INLINE columns columns_at(size_t j, const int32_t *add, const int32_t *colmul, const oct_qout *o)
{
    return (columns){ load(add + j), colmul ? load(colmul + j) : _mm256_setzero_si256(),
                      o->mult ? _mm256_loadu_ps(o->mult + j) : _mm256_setzero_ps(),
                      o->bias ? _mm256_loadu_ps(o->bias + j) : _mm256_setzero_ps() };
}

OCT_INLINE __m256i sum_of(const int32_t *acc, const columns *k, const int32_t *rowadd, size_t i)
{
    const __m256i v = _mm256_add_epi32(load(acc), k->add);
    return rowadd ? _mm256_add_epi32(v, _mm256_mullo_epi32(_mm256_set1_epi32(rowadd[i]), k->colmul)) : v;
}

static void block_s32(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd, int32_t *c, size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        _mm256_storeu_si256((__m256i *)(void *)(c + i * ldc), sum_of(acc + i * lda, k, rowadd, i));
}

static void block_f32(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd, const oct_qout *o,
                      float *c, size_t ldc)
{
    const __m256 lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    for (size_t i = 0; i < m; i++) {
        __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum_of(acc + i * lda, k, rowadd, i)), k->mult);
        if (o->bias)
            v = _mm256_add_ps(v, k->bias);
        if (o->clamp)
            v = _mm256_min_ps(hi, _mm256_max_ps(lo, v));
        _mm256_storeu_ps(c + i * ldc, v);
    }
}

/* Clamped float steps, rounded half to even (the default mode), plus the zero point. */
OCT_INLINE __m256i code_of(__m256i acc, const columns *k, __m256 lo, __m256 hi, __m256i zp)
{
    const __m256 v = _mm256_min_ps(hi, _mm256_max_ps(lo, _mm256_mul_ps(_mm256_cvtepi32_ps(acc), k->mult)));
    return _mm256_add_epi32(_mm256_cvtps_epi32(v), zp);
}

/* The low byte of each of 16 codes, in order. Codes are in the grid by then, so masking loses nothing. */
OCT_INLINE __m128i bytes_of(__m256i a, __m256i b)
{
    const __m256i low = _mm256_set1_epi32(255);
    const __m256i w = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    const __m256i ordered = _mm256_permute4x64_epi64(w, 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

OCT_INLINE void look_up(const uint8_t *lut, uint8_t *c, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] = lut[c[j]];
}

/* 16 columns (wide) or 8. */
OCT_INLINE void block_codes(const bool wide, size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd,
                            const oct_qout *o, uint8_t *c, size_t ldc)
{
    const __m256 lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    const __m256i zp = _mm256_set1_epi32(o->zp);
    for (size_t i = 0; i < m; i++, acc += lda, c += ldc) {
        const __m256i a = code_of(sum_of(acc, &k[0], rowadd, i), &k[0], lo, hi, zp);
        if (wide)
            _mm_storeu_si128((__m128i *)(void *)c,
                             bytes_of(a, code_of(sum_of(acc + 8, &k[1], rowadd, i), &k[1], lo, hi, zp)));
        else
            _mm_storel_epi64((__m128i *)(void *)c, bytes_of(a, a));
        if (o->lut)
            look_up(o->lut, c, wide ? 16 : 8);
    }
}

static size_t codes(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, uint8_t *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        const columns k[] = { columns_at(j, add, colmul, o), columns_at(j + 8, add, colmul, o) };
        block_codes(true, m, acc + j, lda, k, rowadd, o, c + j, ldc);
    }
    if (j + 8 <= n) {
        const columns k = columns_at(j, add, colmul, o);
        block_codes(false, m, acc + j, lda, &k, rowadd, o, c + j, ldc);
        j += 8;
    }
    return j;
}

static size_t words(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        const columns k = columns_at(j, add, colmul, o);
        if (o->kind == OCT_QOUT_S32)
            block_s32(m, acc + j, lda, &k, rowadd, (int32_t *)c + j, ldc);
        else
            block_f32(m, acc + j, lda, &k, rowadd, o, (float *)c + j, ldc);
    }
    return j;
}

void oct_qout__avx2(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    const bool wide = o->kind == OCT_QOUT_S32 || o->kind == OCT_QOUT_F32;
    const size_t j = wide ? words(m, n, acc, lda, add, rowadd, colmul, o, c, ldc)
                          : codes(m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
    oct_qout_rest(j, m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
}
