/* lib/kernels/qgemm/qout_avx512.c -- output pipeline, 16 columns a step, the last ones masked. */
#include "kernels/qgemm/kernels.h"
#include "kernels/simd.h"

typedef struct row {
    const int32_t *acc, *add, *colmul;
    __m512i rowadd;
    bool has_rowadd;
} row;

OCT_INLINE __m512i sum_of(const row *r, size_t j, __mmask16 k)
{
    const __m512i v = _mm512_add_epi32(_mm512_maskz_loadu_epi32(k, r->acc + j), _mm512_maskz_loadu_epi32(k, r->add + j));
    return r->has_rowadd ? _mm512_add_epi32(v, _mm512_mullo_epi32(r->rowadd, _mm512_maskz_loadu_epi32(k, r->colmul + j))) : v;
}

OCT_INLINE __m512 scaled(const row *r, size_t j, __mmask16 k, const oct_qout *o)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(sum_of(r, j, k)), _mm512_maskz_loadu_ps(k, o->mult + j));
}

/* Columns j to j + 15 of one row, of which those in k exist. */
OCT_INLINE void finish_s32(const row *r, size_t j, __mmask16 k, const oct_qout *o, void *c)
{
    _mm512_mask_storeu_epi32((int32_t *)c + j, k, sum_of(r, j, k));
}

OCT_INLINE void finish_f32(const row *r, size_t j, __mmask16 k, const oct_qout *o, void *c)
{
    __m512 v = scaled(r, j, k, o);
    if (o->bias)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(k, o->bias + j));
    if (o->clamp)
        v = _mm512_min_ps(_mm512_set1_ps(o->hi), _mm512_max_ps(_mm512_set1_ps(o->lo), v));
    _mm512_mask_storeu_ps((float *)c + j, k, v);
}

/* Clamped float steps, rounded half to even (the default mode), plus the zero point, low byte. */
OCT_INLINE void finish_codes(const row *r, size_t j, __mmask16 k, const oct_qout *o, void *c)
{
    const __m512 v = _mm512_min_ps(_mm512_set1_ps(o->hi), _mm512_max_ps(_mm512_set1_ps(o->lo), scaled(r, j, k, o)));
    const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(o->zp));
    _mm_mask_storeu_epi8((uint8_t *)c + j, k, _mm512_cvtepi32_epi8(q));
}

#define COLUMNS(finish)                                             \
    do {                                                            \
        size_t j = 0;                                               \
        for (; j + 16 <= n; j += 16)                                \
            finish(&r, j, 0xffff, o, ci);                           \
        if (j < n)                                                  \
            finish(&r, j, (__mmask16)((1u << (n - j)) - 1), o, ci); \
    } while (0)

static void look_up(const uint8_t *lut, uint8_t *c, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] = lut[c[j]];
}

void oct_qout__avx512(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                      const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    const size_t elem = o->kind == OCT_QOUT_S32 || o->kind == OCT_QOUT_F32 ? 4 : 1;
    for (size_t i = 0; i < m; i++) {
        void *ci = (uint8_t *)c + i * ldc * elem;
        const row r = { acc + i * lda, add, colmul, _mm512_set1_epi32(rowadd ? rowadd[i] : 0), rowadd != NULL };
        if (o->kind == OCT_QOUT_S32)
            COLUMNS(finish_s32);
        else if (o->kind == OCT_QOUT_F32)
            COLUMNS(finish_f32);
        else
            COLUMNS(finish_codes);
        if (o->lut && elem == 1)
            look_up(o->lut, ci, n);
    }
}
