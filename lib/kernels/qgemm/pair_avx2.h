/* lib/kernels/qgemm/pair_avx2.h -- 16 columns as two AVX2 vectors: sums of 16 and of 32 bits. Internal. */
#ifndef OCT_KERNELS_QGEMM_PAIR_AVX2_H
#define OCT_KERNELS_QGEMM_PAIR_AVX2_H

#include "kernels/simd.h"

#include <stdint.h>

typedef struct pair {
    __m256i lo, hi;
} pair;

OCT_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

OCT_INLINE pair load_pair(const void *p)
{
    return (pair){ load(p), load((const uint8_t *)p + 32) };
}

OCT_INLINE void store_pair(void *p, pair v)
{
    _mm256_storeu_si256((__m256i *)p, v.lo);
    _mm256_storeu_si256((__m256i *)(void *)((uint8_t *)p + 32), v.hi);
}

OCT_INLINE pair keep(pair v)
{
    OCT_KEEP(v.lo);
    OCT_KEEP(v.hi);
    return v;
}

OCT_INLINE pair add16(pair v, pair w)
{
    return keep((pair){ _mm256_add_epi16(v.lo, w.lo), _mm256_add_epi16(v.hi, w.hi) });
}

OCT_INLINE pair add32(pair v, pair w)
{
    return keep((pair){ _mm256_add_epi32(v.lo, w.lo), _mm256_add_epi32(v.hi, w.hi) });
}

/* Neighbouring 16-bit sums added in 32 bits. */
OCT_INLINE pair widen(pair v)
{
    const __m256i one = _mm256_set1_epi16(1);
    return (pair){ _mm256_madd_epi16(v.lo, one), _mm256_madd_epi16(v.hi, one) };
}

#endif
