/* lib/kernels/qgemm/qgemm_u8s8_1x1_ref.c -- one output at a time: the definition of the integer product. */
#include "kernels/qgemm/qgemm_int.h"

void oct_qgemm_u8s8_1x1__ref(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                             const int8_t *b, int32_t *c)
{
    uint32_t sum = 0; /* unsigned: wraps where the depth is extreme */
    for (size_t t = 0; t < taps; t++)
        for (size_t k = 0; k < kc; k++)
            sum += (uint32_t)((a[t][k] ^ flip) * *b++);
    *c = (int32_t)sum;
}
