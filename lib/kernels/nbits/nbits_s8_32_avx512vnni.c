/* lib/kernels/nbits/nbits_s8_32_avx512vnni.c -- panels of 32 columns, vectors of 16, 4 rows. */
#include "kernels/simd.h"

#define W 16
#define MR 4
#define VF __m512
#define VI __m512i
#define NAME oct_nbits_s8_32__avx512vnni
#define V_SET _mm512_set1_ps
#define V_LOAD _mm512_loadu_ps
#define V_STORE _mm512_storeu_ps
#define V_MUL _mm512_mul_ps
#define V_FMA _mm512_fmadd_ps
#define V_FLOAT _mm512_cvtepi32_ps
#define V_WORDS(p) _mm512_loadu_si512((const void *)(p))
#define V_ALL(u) _mm512_set1_epi32((int)(u))
#define V_AND _mm512_and_si512
#define V_SHIFT(v, n) _mm512_srli_epi32(v, (unsigned)(n))
#define V_DOT _mm512_dpbusd_epi32
#define V_TIMES _mm512_madd_epi16
#define V_BYTES(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))

#include "kernels/nbits/nbits_vnni.inc"
