/* lib/kernels/qgemm/qout_avx2.c -- output pipeline, 16 or 8 columns of all rows at a time. */
#include "kernels/qgemm/qout_int.h"
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
    return (columns){ add ? load(add + j) : _mm256_setzero_si256(), colmul ? load(colmul + j) : _mm256_setzero_si256(),
                      o->mult ? _mm256_loadu_ps(o->mult + j) : _mm256_setzero_ps(),
                      o->bias ? _mm256_loadu_ps(o->bias + j) : _mm256_setzero_ps() };
}

OCT_INLINE __m256i sum_of(const int32_t *acc, const columns *k, const int32_t *rowadd, size_t i)
{
    const __m256i v = _mm256_add_epi32(load(acc), k->add);
    return rowadd ? _mm256_add_epi32(v, _mm256_mullo_epi32(_mm256_set1_epi32(rowadd[i]), k->colmul)) : v;
}

static void block_s32(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd, int32_t *c,
                      size_t ldc)
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
OCT_INLINE void block_f32(const bool wide, size_t m, const int32_t *acc, size_t lda, const columns *k,
                          const int32_t *rowadd, const oct_qout *o, float *c, size_t ldc)
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

OCT_INLINE void look_up(const uint8_t *lut, uint8_t *c, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] = lut[c[j]];
}

/* What an inlined copy knows. */
typedef struct form {
    bool add;   /* sums lack what columns add */
    bool small; /* multipliers are below 1 */
    bool rows;  /* row sums may be added, a table may follow */
    bool whole; /* u8 without bounds of its own: packing bounds it */
} form;

/* 16 or 8 columns of a row, as words: four of the first eight, four of the others, in each half. */
OCT_INLINE __m256i row_words(form f, bool wide, const int32_t *acc, const columns *k, const int32_t *rowadd, size_t i,
                             const qbounds *q)
{
    const __m256i u = f.add || f.rows ? sum_of(acc, &k[0], f.rows ? rowadd : NULL, i) : load(acc);
    const __m256i a = qsteps(f.small, u, k[0].mult, q);
    if (!wide)
        return qwords(a, a, q);
    const __m256i v = f.add || f.rows ? sum_of(acc + 8, &k[1], f.rows ? rowadd : NULL, i) : load(acc + 8);
    return qwords(a, qsteps(f.small, v, k[1].mult, q), q);
}

/* The quantized values of two rows of 16 columns, each in one half. */
OCT_INLINE __m256i qvals_of(form f, __m256i a, __m256i b, const qbounds *q)
{
    const __m256i u = f.whole ? _mm256_packus_epi16(a, b) : qbytes(a, b, q);
    return _mm256_permutevar8x32_epi32(u, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

OCT_INLINE void store(bool wide, __m128i u, uint8_t *c)
{
    if (wide)
        _mm_storeu_si128((__m128i *)(void *)c, u);
    else
        _mm_storel_epi64((__m128i *)(void *)c, u);
}

/* 16 columns (wide) or 8. */
OCT_INLINE void block_qvals(form f, bool wide, size_t m, const int32_t *acc, size_t lda, const columns *k,
                            const int32_t *rowadd, const oct_qout *o, uint8_t *c, size_t ldc)
{
    const qbounds q = qbounds_of(o);
    size_t i = 0;
    for (; i + 2 <= m; i += 2, acc += 2 * lda, c += 2 * ldc) {
        const __m256i a = row_words(f, wide, acc, k, rowadd, i, &q),
                      b = row_words(f, wide, acc + lda, k, rowadd, i + 1, &q);
        const __m256i u = qvals_of(f, a, b, &q);
        store(wide, _mm256_castsi256_si128(u), c);
        store(wide, _mm256_extracti128_si256(u, 1), c + ldc);
        for (size_t r = 0; f.rows && o->lut && r < 2; r++)
            look_up(o->lut, c + r * ldc, wide ? 16 : 8);
    }
    if (i < m) {
        const __m256i a = row_words(f, wide, acc, k, rowadd, i, &q);
        store(wide, _mm256_castsi256_si128(qvals_of(f, a, a, &q)), c);
        if (f.rows && o->lut)
            look_up(o->lut, c, wide ? 16 : 8);
    }
}

OCT_INLINE void block_of(bool wide, bool small, bool add, size_t m, const int32_t *acc, size_t lda, const columns *k,
                         const int32_t *rowadd, const oct_qout *o, uint8_t *c, size_t ldc)
{
    const bool whole = o->kind == OCT_QOUT_U8 && (int32_t)o->lo + o->zp <= 0 && (int32_t)o->hi + o->zp >= 255;
    if (!small || rowadd || o->lut)
        block_qvals((form){ true, false, true, false }, wide, m, acc, lda, k, rowadd, o, c, ldc);
    else if (add)
        block_qvals((form){ true, true, false, false }, wide, m, acc, lda, k, NULL, o, c, ldc);
    else if (whole)
        block_qvals((form){ false, true, false, true }, wide, m, acc, lda, k, NULL, o, c, ldc);
    else
        block_qvals((form){ false, true, false, false }, wide, m, acc, lda, k, NULL, o, c, ldc);
}

static size_t qvals(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, uint8_t *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        const columns k[] = { columns_at(j, add, colmul, o), columns_at(j + 8, add, colmul, o) };
        block_of(true, are_small(&k[0]) && are_small(&k[1]), add, m, acc + j, lda, k, rowadd, o, c + j, ldc);
    }
    if (j + 8 <= n) {
        const columns k = columns_at(j, add, colmul, o);
        block_of(false, are_small(&k), add, m, acc + j, lda, &k, rowadd, o, c + j, ldc);
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
                          : qvals(m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
    oct_qout_rest(j, m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
}
