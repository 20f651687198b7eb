/* lib/kernels/elem/isa/k_half.c -- 16-bit floats of a row to float32 and back, compiled once per instruction set. Where
 * the CPU converts, its instruction does what base/dtype.h defines. */
#include "kernels/elem/isa.h"

#include <string.h>

static void widen_f16(const uint16_t *x, size_t n, float *y)
{
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
#endif
    for (; i < n; i++)
        y[i] = oct_f16_to_f32(x[i]);
}

static void narrow_f16(const float *x, size_t n, uint16_t *y)
{
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    for (; i + 4 <= n; i += 4)
        vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
#endif
    for (; i < n; i++)
        y[i] = oct_f32_to_f16(x[i]);
}

static inline uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void widen_bf16(const uint16_t *x, size_t n, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = float_of((uint32_t)x[i] << 16);
}

/* The upper half of what a float32 becomes, its lower half being anything. */
static inline uint32_t round_bf16(uint32_t u)
{
    return (u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1);
}

static void narrow_bf16(const float *x, size_t n, uint16_t *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = (uint16_t)(round_bf16(bits_of(x[i])) >> 16);
}

void K(widen)(oct_dtype t, const void *x, size_t n, float *y)
{
    if (t == OCT_F16)
        widen_f16(x, n, y);
    else
        widen_bf16(x, n, y);
}

void K(narrow)(oct_dtype t, const float *x, size_t n, void *y)
{
    if (t == OCT_F16)
        narrow_f16(x, n, y);
    else
        narrow_bf16(x, n, y);
}

static void round_f16(const float *x, size_t n, float *y)
{
    enum { SOME = 1024 };
    uint16_t half[SOME];
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < SOME ? n - i : SOME;
        narrow_f16(x + i, some, half);
        widen_f16(half, some, y + i);
    }
}

static void round_to_bf16(const float *x, size_t n, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = float_of(round_bf16(bits_of(x[i])) & 0xffff0000u);
}

void K(round_half)(oct_dtype t, const float *x, size_t n, float *y)
{
    if (t == OCT_F16)
        round_f16(x, n, y);
    else
        round_to_bf16(x, n, y);
}
