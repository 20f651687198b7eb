/* lib/kernels/dw/qdw_u8s16_avxvnni.c -- depthwise convolution on bytes by vpdpwssd, vpmaddwd and the sum in one. */
#define NAME oct_qdw_u8s16__avxvnni
#define MADD _mm256_dpwssd_avx_epi32

#include "kernels/dw/qdw_u8s16_ymm.inc"
