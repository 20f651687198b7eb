/* lib/kernels/qgemm/qout_avx2.c -- output pipeline, 16 or 8 columns of all rows at a time. */
#include "kernels/qgemm/kernels.h"
#include "kernels/qgemm/qout_ymm.inc"

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

OCT_INLINE __m256 real_of(__m256i acc, const columns *k, const oct_qout *o, __m256 lo, __m256 hi)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), k->mult);
    if (o->bias)
        v = _mm256_add_ps(v, k->bias);
    return o->clamp ? _mm256_min_ps(hi, _mm256_max_ps(lo, v)) : v;
}

/* 16 columns (wide) or 8. A line of the output is written at once: the next row's may take its place in the cache. */
OCT_INLINE void block_f32(const bool wide, size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd,
                          const oct_qout *o, float *c, size_t ldc)
{
    const __m256 lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    for (size_t i = 0; i < m; i++, acc += lda, c += ldc) {
        _mm256_storeu_ps(c, real_of(sum_of(acc, &k[0], rowadd, i), &k[0], o, lo, hi));
        if (wide)
            _mm256_storeu_ps(c + 8, real_of(sum_of(acc + 8, &k[1], rowadd, i), &k[1], o, lo, hi));
    }
}

/* Whether every multiplier is below 1. */
OCT_INLINE bool are_small(const columns *k)
{
    const __m256 m = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), k->mult);
    return _mm256_movemask_ps(_mm256_cmp_ps(m, _mm256_set1_ps(1.0f), _CMP_LT_OQ)) == 0xff;
}

OCT_INLINE __m256i steps_of(const bool small, __m256i acc, const columns *k, const qbounds *q)
{
    return qsteps(small, acc, k->mult, q);
}

/* The codes of two rows of 16 columns: a and b of the first, c and d of the second; each row in one half. */
OCT_INLINE __m256i codes_of(__m256i a, __m256i b, __m256i c, __m256i d, const qbounds *q)
{
    return _mm256_permutevar8x32_epi32(qbytes(qwords(a, b, q), qwords(c, d, q), q), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

OCT_INLINE void look_up(const uint8_t *lut, uint8_t *c, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] = lut[c[j]];
}

/* 16 columns (wide) or 8. plain: neither row sums nor a table. */
OCT_INLINE void block_codes(const bool wide, const bool small, const bool plain, size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd,
                            const oct_qout *o, uint8_t *c, size_t ldc)
{
    const qbounds q = qbounds_of(o);
    for (size_t i = 0; i < m; i += 2, acc += 2 * lda, c += 2 * ldc) {
        const bool two = i + 1 < m;
        const int32_t *next = two ? acc + lda : acc;
        const size_t row = two ? i + 1 : i;
        const __m256i a = steps_of(small, sum_of(acc, &k[0], plain ? NULL : rowadd, i), &k[0], &q);
        const __m256i e = steps_of(small, sum_of(next, &k[0], plain ? NULL : rowadd, row), &k[0], &q);
        const __m256i b = wide ? steps_of(small, sum_of(acc + 8, &k[1], plain ? NULL : rowadd, i), &k[1], &q) : a;
        const __m256i f = wide ? steps_of(small, sum_of(next + 8, &k[1], plain ? NULL : rowadd, row), &k[1], &q) : e;
        const __m256i u = codes_of(a, b, e, f, &q);
        const __m128i first = _mm256_castsi256_si128(u), second = _mm256_extracti128_si256(u, 1);
        if (wide)
            _mm_storeu_si128((__m128i *)(void *)c, first);
        else
            _mm_storel_epi64((__m128i *)(void *)c, first);
        if (two && wide)
            _mm_storeu_si128((__m128i *)(void *)(c + ldc), second);
        else if (two)
            _mm_storel_epi64((__m128i *)(void *)(c + ldc), second);
        for (size_t r = 0; !plain && o->lut && r <= two; r++)
            look_up(o->lut, c + r * ldc, wide ? 16 : 8);
    }
}

static size_t codes(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, uint8_t *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        const columns k[] = { columns_at(j, add, colmul, o), columns_at(j + 8, add, colmul, o) };
        const bool small = are_small(&k[0]) && are_small(&k[1]);
        if (small && !rowadd && !o->lut)
            block_codes(true, true, true, m, acc + j, lda, k, rowadd, o, c + j, ldc);
        else
            block_codes(true, false, false, m, acc + j, lda, k, rowadd, o, c + j, ldc);
    }
    if (j + 8 <= n) {
        const columns k = columns_at(j, add, colmul, o);
        block_codes(false, false, false, m, acc + j, lda, &k, rowadd, o, c + j, ldc);
        j += 8;
    }
    return j;
}

static size_t words(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 16 <= n && o->kind == OCT_QOUT_F32; j += 16) {
        const columns k[] = { columns_at(j, add, colmul, o), columns_at(j + 8, add, colmul, o) };
        block_f32(true, m, acc + j, lda, k, rowadd, o, (float *)c + j, ldc);
    }
    for (; j + 8 <= n; j += 8) {
        const columns k = columns_at(j, add, colmul, o);
        if (o->kind == OCT_QOUT_S32)
            block_s32(m, acc + j, lda, &k, rowadd, (int32_t *)c + j, ldc);
        else
            block_f32(false, m, acc + j, lda, &k, rowadd, o, (float *)c + j, ldc);
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
