/* lib/kernels/dw/qdw_u8s16_avx2.c -- depthwise convolution on bytes by vpmaddwd. */
#define NAME oct_qdw_u8s16__avx2
#define MADD(sum, a, w) _mm256_add_epi32(sum, _mm256_madd_epi16(a, w))

#include "kernels/dw/qdw_u8s16_ymm.inc"
