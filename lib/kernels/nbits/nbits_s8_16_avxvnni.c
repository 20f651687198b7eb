/* lib/kernels/nbits/nbits_s8_16_avxvnni.c -- panels of 16 columns, vectors of 8, 4 rows. */
#include "kernels/simd.h"

#define W 8
#define MR 4
#define VF __m256
#define VI __m256i
#define NAME oct_nbits_s8_16__avxvnni
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_MUL _mm256_mul_ps
#define V_FMA _mm256_fmadd_ps
#define V_FLOAT _mm256_cvtepi32_ps
#define V_WORDS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define V_ALL(u) _mm256_set1_epi32((int)(u))
#define V_AND _mm256_and_si256
#define V_SHIFT _mm256_srli_epi32
#define V_DOT _mm256_dpbusd_avx_epi32
#define V_TIMES _mm256_madd_epi16
#define V_BYTES(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))

#include "kernels/nbits/nbits_vnni.inc"
