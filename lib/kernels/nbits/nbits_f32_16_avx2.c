/* lib/kernels/nbits/nbits_f32_16_avx2.c -- panels of 16 columns, vectors of 8. */
#include "kernels/simd.h"

#define W 8
#define VF __m256
#define VI __m256i
#define NAME(f) oct_nbits_f32_16__avx2_##f
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_ADD _mm256_add_ps
#define V_SUB _mm256_sub_ps
#define V_MUL _mm256_mul_ps
#define V_FMA _mm256_fmadd_ps
#define V_WORDS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define V_BITS(u) _mm256_set1_epi32((int)(u))
#define V_SHIFT _mm256_srli_epi32
#define V_SHIFT_BY(v, n) _mm256_srl_epi32(v, _mm_cvtsi32_si128(n))
#define V_BYTES(p) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define V_INSERT(x, mask, m) _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(x, mask), m))

#include "kernels/nbits/nbits_wide.inc"
