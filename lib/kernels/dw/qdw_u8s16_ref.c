/* lib/kernels/dw/qdw_u8s16_ref.c -- depthwise convolution on 8-bit input: the definition. */
#include "kernels/dw/dw_int.h"

void oct_qdw_u8s16__ref(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w,
                        int32_t *acc)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    for (size_t p = 0; p < px; p++)
        for (size_t i = 0; i < c; i++) {
            uint32_t sum = 0;
            for (size_t t = 0; t < taps; t++)
                sum += (uint32_t)((x[p * taps + t][i] ^ flip) * w[(t / 2 * step + i) * 2 + t % 2]);
            acc[p * step + i] = (int32_t)sum;
        }
}
