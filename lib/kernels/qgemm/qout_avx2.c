/* lib/kernels/qgemm/qout_avx2.c -- output pipeline, 8 columns a step. */
#include "kernels/qgemm/kernels.h"
#include "kernels/simd.h"

#include <string.h>

/* Row-independent parts, and the row's number. */
typedef struct row {
    const int32_t *acc, *add, *colmul;
    __m256i rowadd;
    bool has_rowadd;
} row;

OCT_INLINE __m256i load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

OCT_INLINE __m256i sum_of(const row *r, size_t j)
{
    const __m256i v = _mm256_add_epi32(load(r->acc + j), load(r->add + j));
    return r->has_rowadd ? _mm256_add_epi32(v, _mm256_mullo_epi32(r->rowadd, load(r->colmul + j))) : v;
}

/* Clamped float steps, rounded half to even (the default mode), plus the zero point. */
OCT_INLINE __m256i codes_of(const row *r, size_t j, const oct_qout *o, __m256 lo, __m256 hi, __m256i zp)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum_of(r, j)), _mm256_loadu_ps(o->mult + j));
    v = _mm256_min_ps(hi, _mm256_max_ps(lo, v));
    return _mm256_add_epi32(_mm256_cvtps_epi32(v), zp);
}

static size_t row_s32(const row *r, size_t n, int32_t *c)
{
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        _mm256_storeu_si256((__m256i *)(void *)(c + j), sum_of(r, j));
    return j;
}

static size_t row_f32(const row *r, size_t n, const oct_qout *o, float *c)
{
    const __m256 lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum_of(r, j)), _mm256_loadu_ps(o->mult + j));
        if (o->bias)
            v = _mm256_add_ps(v, _mm256_loadu_ps(o->bias + j));
        if (o->clamp)
            v = _mm256_min_ps(hi, _mm256_max_ps(lo, v));
        _mm256_storeu_ps(c + j, v);
    }
    return j;
}

/* The low byte of each of 16 codes, in order. Codes fit a byte by then, so masking loses nothing. */
OCT_INLINE __m128i bytes_of(__m256i a, __m256i b)
{
    const __m256i low = _mm256_set1_epi32(255);
    const __m256i w = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    const __m256i ordered = _mm256_permute4x64_epi64(w, 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

static void look_up(const uint8_t *lut, uint8_t *c, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] = lut[c[j]];
}

static size_t row_codes(const row *r, size_t n, const oct_qout *o, uint8_t *c)
{
    const __m256 lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    const __m256i zp = _mm256_set1_epi32(o->zp);
    size_t j = 0;
    for (; j + 16 <= n; j += 16)
        _mm_storeu_si128((__m128i *)(void *)(c + j),
                         bytes_of(codes_of(r, j, o, lo, hi, zp), codes_of(r, j + 8, o, lo, hi, zp)));
    if (j + 8 <= n) {
        _mm_storel_epi64((__m128i *)(void *)(c + j), bytes_of(codes_of(r, j, o, lo, hi, zp), zp));
        j += 8;
    }
    if (o->lut)
        look_up(o->lut, c, j);
    return j;
}

static void tail(const row *r, size_t j, size_t n, const int32_t *rowadd, const oct_qout *o, void *c)
{
    oct_qout rest = *o;
    if (rest.mult)
        rest.mult += j;
    if (rest.bias)
        rest.bias += j;
    oct_qout__ref(1, n - j, r->acc + j, n, r->add + j, rowadd, r->colmul ? r->colmul + j : NULL, &rest,
                  (uint8_t *)c + j * oct_qout_size(o->kind), n);
}

void oct_qout__avx2(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    const size_t elem = oct_qout_size(o->kind);
    for (size_t i = 0; i < m; i++) {
        void *ci = (uint8_t *)c + i * ldc * elem;
        const row r = { acc + i * lda, add, colmul, _mm256_set1_epi32(rowadd ? rowadd[i] : 0), rowadd != NULL };
        const size_t j = o->kind == OCT_QOUT_S32   ? row_s32(&r, n, ci)
                         : o->kind == OCT_QOUT_F32 ? row_f32(&r, n, o, ci)
                                                   : row_codes(&r, n, o, ci);
        if (j < n)
            tail(&r, j, n, rowadd ? rowadd + i : NULL, o, ci);
    }
}
