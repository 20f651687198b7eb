/* lib/kernels/simd_portable.h -- x86 intrinsics for builds with OCT_SIMDE: those that packaged versions of SIMDe lack
 * (0.7.4 of Debian 12), and those it has otherwise than the instruction. Lane by lane; only what our kernels use.
 * Internal. */
#ifndef OCT_KERNELS_SIMD_PORTABLE_H
#define OCT_KERNELS_SIMD_PORTABLE_H

#if defined(OCT_SIMDE)
#include "kernels/denormals.h"
#include "kernels/simd.h"

/* A call each, as SIMDe's are then: inlined in their hundreds they take minutes to compile. */
#define OCT_PORTABLE static __attribute__((noinline, unused))

#define __mmask16 simde__mmask16
#define __mmask32 simde__mmask32

/* SIMDe rounds the product before it adds. */
OCT_PORTABLE __m256 oct_mm256_fmadd_ps(__m256 a, __m256 b, __m256 c)
{
    float x[8], y[8], z[8];
    _mm256_storeu_ps(x, a);
    _mm256_storeu_ps(y, b);
    _mm256_storeu_ps(z, c);
    for (int i = 0; i < 8; i++)
        z[i] = fmaf(x[i], y[i], z[i]);
    return _mm256_loadu_ps(z);
}

OCT_PORTABLE __m512 oct_mm512_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
    float x[16], y[16], z[16];
    _mm512_storeu_ps(x, a);
    _mm512_storeu_ps(y, b);
    _mm512_storeu_ps(z, c);
    for (int i = 0; i < 16; i++)
        z[i] = fmaf(x[i], y[i], z[i]);
    return _mm512_loadu_ps(z);
}

OCT_PORTABLE __m512i oct_mm512_srai_epi32(__m512i a, unsigned count)
{
    int32_t x[16];
    _mm512_storeu_si512(x, a);
    for (int i = 0; i < 16; i++)
        x[i] >>= count;
    return _mm512_loadu_si512(x);
}

/* SIMDe 0.7.4 says yes where a part is zero, without SSE4.1. */
OCT_PORTABLE int oct_mm256_testz_si256(__m256i a, __m256i b)
{
    uint64_t part[4];
    _mm256_storeu_si256((__m256i *)(void *)part, _mm256_and_si256(a, b));
    return (part[0] | part[1] | part[2] | part[3]) == 0;
}

/* With what it lacks the mode for (bgemm/flushing.h). */
OCT_PORTABLE __m256 oct_flushed_fma256(__m256 a, __m256 b, __m256 c)
{
    float x[8], y[8], z[8];
    _mm256_storeu_ps(x, a);
    _mm256_storeu_ps(y, b);
    _mm256_storeu_ps(z, c);
    for (int i = 0; i < 8; i++)
        z[i] = oct_flushed_fma(x[i], y[i], z[i]);
    return _mm256_loadu_ps(z);
}

OCT_PORTABLE __m256 oct_flushed_add256(__m256 a, __m256 b)
{
    float x[8], y[8];
    _mm256_storeu_ps(x, a);
    _mm256_storeu_ps(y, b);
    for (int i = 0; i < 8; i++)
        x[i] = oct_flushed_add(x[i], y[i]);
    return _mm256_loadu_ps(x);
}

OCT_PORTABLE __m512 oct_flushed_fma512(__m512 a, __m512 b, __m512 c)
{
    float x[16], y[16], z[16];
    _mm512_storeu_ps(x, a);
    _mm512_storeu_ps(y, b);
    _mm512_storeu_ps(z, c);
    for (int i = 0; i < 16; i++)
        z[i] = oct_flushed_fma(x[i], y[i], z[i]);
    return _mm512_loadu_ps(z);
}

OCT_PORTABLE __m512 oct_flushed_add512(__m512 a, __m512 b)
{
    float x[16], y[16];
    _mm512_storeu_ps(x, a);
    _mm512_storeu_ps(y, b);
    for (int i = 0; i < 16; i++)
        x[i] = oct_flushed_add(x[i], y[i]);
    return _mm512_loadu_ps(x);
}

OCT_PORTABLE __m256i oct_mm256_maskz_loadu_epi8(__mmask32 k, const void *p)
{
    uint8_t x[32];
    for (int i = 0; i < 32; i++)
        x[i] = k >> i & 1 ? ((const uint8_t *)p)[i] : 0;
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

OCT_PORTABLE __m128i oct_mm_maskz_loadu_epi8(__mmask16 k, const void *p)
{
    uint8_t x[16];
    for (int i = 0; i < 16; i++)
        x[i] = k >> i & 1 ? ((const uint8_t *)p)[i] : 0;
    return _mm_loadu_si128((const __m128i *)(const void *)x);
}

OCT_PORTABLE __m512i oct_mm512_maskz_loadu_epi8(uint64_t k, const void *p)
{
    uint8_t x[64];
    for (int i = 0; i < 64; i++)
        x[i] = k >> i & 1 ? ((const uint8_t *)p)[i] : 0;
    return _mm512_loadu_si512(x);
}

OCT_PORTABLE int32_t oct_mm512_reduce_add_epi32(__m512i v)
{
    uint32_t x[16], sum = 0;
    _mm512_storeu_si512(x, v);
    for (int i = 0; i < 16; i++)
        sum += x[i];
    return (int32_t)sum;
}

OCT_PORTABLE void oct_mm256_mask_storeu_epi8(void *p, __mmask32 k, __m256i v)
{
    uint8_t x[32];
    _mm256_storeu_si256((__m256i *)(void *)x, v);
    for (int i = 0; i < 32; i++)
        if (k >> i & 1)
            ((uint8_t *)p)[i] = x[i];
}

OCT_PORTABLE void oct_mm_mask_storeu_epi8(void *p, __mmask16 k, __m128i v)
{
    uint8_t x[16];
    _mm_storeu_si128((__m128i *)(void *)x, v);
    for (int i = 0; i < 16; i++)
        if (k >> i & 1)
            ((uint8_t *)p)[i] = x[i];
}

OCT_PORTABLE __m512i oct_mm512_maskz_loadu_epi32(__mmask16 k, const void *p)
{
    int32_t x[16];
    for (int i = 0; i < 16; i++)
        x[i] = k >> i & 1 ? ((const int32_t *)p)[i] : 0;
    return _mm512_loadu_si512(x);
}

OCT_PORTABLE void oct_mm512_mask_storeu_epi32(void *p, __mmask16 k, __m512i v)
{
    int32_t x[16];
    _mm512_storeu_si512(x, v);
    for (int i = 0; i < 16; i++)
        if (k >> i & 1)
            ((int32_t *)p)[i] = x[i];
}

OCT_PORTABLE __m512 oct_mm512_maskz_loadu_ps(__mmask16 k, const float *p)
{
    return _mm512_castsi512_ps(oct_mm512_maskz_loadu_epi32(k, p));
}

OCT_PORTABLE void oct_mm512_mask_storeu_ps(float *p, __mmask16 k, __m512 v)
{
    oct_mm512_mask_storeu_epi32(p, k, _mm512_castps_si512(v));
}

OCT_PORTABLE __m512i oct_mm512_cvtepu8_epi16(__m256i v)
{
    uint8_t x[32];
    uint16_t y[32];
    _mm256_storeu_si256((__m256i *)(void *)x, v);
    for (int i = 0; i < 32; i++)
        y[i] = x[i];
    return _mm512_loadu_si512(y);
}

OCT_PORTABLE __m512i oct_mm512_cvtepu8_epi32(__m128i v)
{
    uint8_t x[16];
    uint32_t y[16];
    _mm_storeu_si128((__m128i *)(void *)x, v);
    for (int i = 0; i < 16; i++)
        y[i] = x[i];
    return _mm512_loadu_si512(y);
}

OCT_PORTABLE __m128i oct_mm512_cvtepi32_epi8(__m512i v)
{
    uint32_t x[16];
    uint8_t y[16];
    _mm512_storeu_si512(x, v);
    for (int i = 0; i < 16; i++)
        y[i] = (uint8_t)x[i];
    return _mm_loadu_si128((const __m128i *)(const void *)y);
}

OCT_PORTABLE __m512 oct_mm512_cvtepi32_ps(__m512i v)
{
    int32_t x[16];
    float y[16];
    _mm512_storeu_si512(x, v);
    for (int i = 0; i < 16; i++)
        y[i] = (float)x[i];
    return _mm512_loadu_ps(y);
}

/* Rounded half to even; of numbers that fit. */
OCT_PORTABLE __m512i oct_mm512_cvtps_epi32(__m512 v)
{
    float x[16];
    int32_t y[16];
    _mm512_storeu_ps(x, v);
    for (int i = 0; i < 16; i++)
        y[i] = (int32_t)rintf(x[i]);
    return _mm512_loadu_si512(y);
}

/* SIMDe's own names: its short name of the last is another function's. */
#undef _mm256_fmadd_ps
#undef _mm512_fmadd_ps
#undef _mm512_madd_epi16
#define _mm256_fmadd_ps oct_mm256_fmadd_ps
#undef _mm256_testz_si256
#define _mm256_testz_si256 oct_mm256_testz_si256
#define _mm512_fmadd_ps oct_mm512_fmadd_ps
#define _mm512_madd_epi16 simde_mm512_madd_epi16
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32
#define _mm256_dpwssd_avx_epi32 simde_mm256_dpwssd_epi32

/* Newer versions have these. */
#undef _mm256_maskz_loadu_epi8
#undef _mm_maskz_loadu_epi8
#undef _mm_mask_storeu_epi8
#undef _mm256_mask_storeu_epi8
#undef _mm512_maskz_loadu_epi8
#undef _mm512_reduce_add_epi32
#undef _mm512_maskz_loadu_epi32
#undef _mm512_mask_storeu_epi32
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_cvtepu8_epi16
#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#undef _mm512_srai_epi32
#define _mm256_maskz_loadu_epi8 oct_mm256_maskz_loadu_epi8
#define _mm_maskz_loadu_epi8 oct_mm_maskz_loadu_epi8
#define _mm_mask_storeu_epi8 oct_mm_mask_storeu_epi8
#define _mm256_mask_storeu_epi8 oct_mm256_mask_storeu_epi8
#define _mm512_maskz_loadu_epi8 oct_mm512_maskz_loadu_epi8
#define _mm512_reduce_add_epi32 oct_mm512_reduce_add_epi32
#define _mm512_maskz_loadu_epi32 oct_mm512_maskz_loadu_epi32
#define _mm512_mask_storeu_epi32 oct_mm512_mask_storeu_epi32
#define _mm512_maskz_loadu_ps oct_mm512_maskz_loadu_ps
#define _mm512_mask_storeu_ps oct_mm512_mask_storeu_ps
#define _mm512_cvtepu8_epi16 oct_mm512_cvtepu8_epi16
#define _mm512_cvtepu8_epi32 oct_mm512_cvtepu8_epi32
#define _mm512_cvtepi32_epi8 oct_mm512_cvtepi32_epi8
#define _mm512_cvtepi32_ps oct_mm512_cvtepi32_ps
#define _mm512_cvtps_epi32 oct_mm512_cvtps_epi32
#define _mm512_srai_epi32 oct_mm512_srai_epi32
#endif

#endif
