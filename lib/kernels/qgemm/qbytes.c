/* lib/kernels/qgemm/qbytes.c -- the same in plain C, and the choice. */
#include "kernels/qgemm/qbytes.h"

static uint32_t sum(const uint8_t *a, size_t n, uint8_t flip)
{
    uint32_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += a[i] ^ flip;
    return s;
}

static void fold(size_t n, const int32_t *bias, const int32_t *sums, const int32_t *colmul, int32_t za, size_t depth,
                 int32_t *add)
{
    for (size_t j = 0; j < n; j++)
        add[j] = (int32_t)((bias ? (uint32_t)bias[j] : 0) - (uint32_t)za * (uint32_t)sums[j] -
                           (colmul ? (uint32_t)depth * (uint32_t)za * (uint32_t)colmul[j] : 0));
}

const oct_qbytes *oct_qbytes_select(oct_isa have)
{
    static const oct_qbytes plain = { sum, NULL, fold };
#if defined(OCT_KERNELS_X86)
    if (have & OCT_ISA_AVX512)
        return &oct_qbytes__avx512;
#endif
    return &plain;
}
