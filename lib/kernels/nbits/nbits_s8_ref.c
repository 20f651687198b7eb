/* lib/kernels/nbits/nbits_s8_ref.c -- one row and column at a time: the definition. Panels of any width. */
#include "kernels/nbits/nbits_int.h"

#include <math.h>
#include <string.h>

static int32_t dot(const oct_nbits_form *f, size_t nr, const uint8_t *block, size_t j, const int8_t *q)
{
    const size_t per = 32 / (size_t)f->bits;
    int32_t sum = 0;
    for (size_t i = 0; i < f->block; i++) {
        uint32_t word;
        memcpy(&word, block + oct_nbits_at_qvals(f, nr) + (i / per * nr + j) * sizeof word, sizeof word);
        const size_t at = i % 4 * 8 + i % per / 4 * (size_t)f->bits;
        sum += q[i] * (int32_t)(word >> at & ((1u << f->bits) - 1));
    }
    return sum;
}

void oct_nbits_s8__ref(const oct_nbits_form *f, size_t nr, size_t m, const oct_nbits_rows *a, const uint8_t *panel,
                       float *y)
{
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t b = 0; b < blocks; b++, panel += oct_nbits_block_bytes(f, nr))
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < nr; j++) {
                const int32_t zero = f->zero == OCT_NBITS_WHOLE ? panel[oct_nbits_at_zero(nr) + j] : 1 << (f->bits - 1);
                const int32_t sum =
                    dot(f, nr, panel, j, a->q + (i * blocks + b) * f->block) - zero * a->sum[i * blocks + b];
                float scale;
                memcpy(&scale, panel + j * sizeof scale, sizeof scale);
                y[i * nr + j] = fmaf((float)sum, a->scale[i * blocks + b] * scale, y[i * nr + j]);
            }
}
