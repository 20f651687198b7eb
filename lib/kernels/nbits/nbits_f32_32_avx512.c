/* lib/kernels/nbits/nbits_f32_32_avx512.c -- panels of 32 columns, vectors of 16. */
#include "kernels/simd.h"

#define W 16
#define VF __m512
#define VI __m512i
#define NAME(f) oct_nbits_f32_32__avx512_##f
#define V_SET _mm512_set1_ps
#define V_LOAD _mm512_loadu_ps
#define V_STORE _mm512_storeu_ps
#define V_ADD _mm512_add_ps
#define V_SUB _mm512_sub_ps
#define V_MUL _mm512_mul_ps
#define V_FMA _mm512_fmadd_ps
#define V_WORDS(p) _mm512_loadu_si512((const void *)(p))
#define V_BITS(u) _mm512_set1_epi32((int)(u))
#define V_SHIFT _mm512_srli_epi32
#define V_SHIFT_BY(v, n) _mm512_srl_epi32(v, _mm_cvtsi32_si128(n))
#define V_BYTES(p) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))))
/* 0xea is the truth table of (x & mask) | m. */
#define V_INSERT(x, mask, m) _mm512_castsi512_ps(_mm512_ternarylogic_epi32(x, mask, m, 0xea))

#include "kernels/nbits/nbits_wide.inc"
