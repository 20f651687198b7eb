/* lib/kernels/conv/qdw_columns_avx512vnni.c -- 3x3 depthwise convolution by columns: vpdpbusd and vpdpwssd of CPUs that may lack AVX-VNNI,
 * with 32 registers. */
#define NAME oct_qdw_columns__avx512vnni
#define MADD _mm256_dpwssd_epi32
#define QUAD _mm256_dpbusd_epi32

#include "kernels/conv/qdw_columns_ymm.inc"
