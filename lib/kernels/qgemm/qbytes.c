/* lib/kernels/qgemm/qbytes.c -- sums of bytes in plain C, and the choice. */
#include "kernels/qgemm/qbytes.h"

static uint32_t sum(const uint8_t *a, size_t n, uint8_t flip)
{
    uint32_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += a[i] ^ flip;
    return s;
}

const oct_qbytes *oct_qbytes_select(oct_isa have)
{
    static const oct_qbytes plain = { sum, NULL };
#if defined(OCT_KERNELS_X86)
    if (have & OCT_ISA_AVX512)
        return &oct_qbytes__avx512;
#endif
    return &plain;
}
