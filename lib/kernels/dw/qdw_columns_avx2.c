/* lib/kernels/dw/qdw_columns_avx2.c -- 3x3 depthwise convolution by columns: vpmaddubsw and vpmaddwd. */
#define MADD(sum, a, w) _mm256_add_epi32(sum, _mm256_madd_epi16(a, w))
#define QUAD(sum, a, w) MADD(sum, _mm256_maddubs_epi16(a, w), _mm256_set1_epi16(1))

#include "kernels/dw/qdw_columns_ymm.inc"

void oct_qdw_columns__avx2(const oct_qdw_lines *l)
{
    units_from(0, l);
}
