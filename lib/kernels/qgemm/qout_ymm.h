/* lib/kernels/qgemm/qout_ymm.h -- the last step of sums that are in 256-bit registers, to 8-bit outputs. Internal. */
#ifndef OCT_KERNELS_QOUT_YMM_H
#define OCT_KERNELS_QOUT_YMM_H

#include "kernels/qgemm/qout.h"
#include "kernels/simd.h"

/* What bounds codes. Steps are bounded above as floats where a multiplier of 1 or more could carry them beyond int32, which
 * would make them INT32_MIN; bounds and zero point follow in 16 and 8 bits, where packing saturates. */
typedef struct qbounds {
    __m256 top;
    __m256i zp, lo, hi;
    __m256i sign; /* s8: codes are computed as u8 and turned back */
} qbounds;

OCT_INLINE qbounds qbounds_of(const oct_qout *o)
{
    const int32_t flip = o->kind == OCT_QOUT_S8 ? 128 : 0;
    return (qbounds){ _mm256_set1_ps(o->hi), _mm256_set1_epi16((int16_t)(o->zp + flip)),
                      _mm256_set1_epi8((char)((int32_t)o->lo + o->zp + flip)), _mm256_set1_epi8((char)((int32_t)o->hi + o->zp + flip)),
                      _mm256_set1_epi8((char)flip) };
}

/* Steps from the zero point, rounded half to even (the default mode). small: the multipliers are below 1. */
OCT_INLINE __m256i qsteps(const bool small, __m256i acc, __m256 mult, const qbounds *q)
{
    const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), mult);
    return _mm256_cvtps_epi32(small ? v : _mm256_min_ps(q->top, v));
}

/* Steps to 16-bit codes: of each half, four of a, then four of b. */
OCT_INLINE __m256i qwords(__m256i a, __m256i b, const qbounds *q)
{
    return _mm256_adds_epi16(_mm256_packs_epi32(a, b), q->zp);
}

/* To bytes: of each half, eight of a, then eight of b. */
OCT_INLINE __m256i qbytes(__m256i a, __m256i b, const qbounds *q)
{
    return _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), q->lo), q->hi), q->sign);
}

#endif
