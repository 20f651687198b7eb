/* lib/kernels/dw/qdw_columns_avxvnni.c -- 3x3 depthwise convolution by columns: vpdpbusd and vpdpwssd. */
#define MADD _mm256_dpwssd_avx_epi32
#define QUAD _mm256_dpbusd_avx_epi32

#include "kernels/dw/qdw_columns_ymm.inc"

void oct_qdw_columns__avxvnni(const oct_qdw_lines *l)
{
    units_from(0, l);
}
