/* lib/kernels/nbits/nbits_f32_ref.c -- one weight at a time: the definition. Panels of any width. */
#include "kernels/nbits/nbits_int.h"

#include <math.h>
#include <string.h>

static float weight(const oct_nbits_form *f, size_t nr, const uint8_t *panel, size_t i, size_t j)
{
    const uint8_t *block = panel + i / f->block * oct_nbits_block_bytes(f, nr), *zeros = block + oct_nbits_at_zero(nr);
    const size_t per = 32 / (size_t)f->bits, at = i % f->block;
    float scale, zero = (float)(1 << (f->bits - 1));
    uint32_t word;
    memcpy(&scale, block + j * sizeof scale, sizeof scale);
    memcpy(&word, block + oct_nbits_at_qvals(f, nr) + (at / per * nr + j) * sizeof word, sizeof word);
    if (f->zero == OCT_NBITS_WHOLE)
        zero = zeros[j];
    else if (f->zero == OCT_NBITS_REAL)
        memcpy(&zero, zeros + j * sizeof zero, sizeof zero);
    const uint32_t qval = word >> at % per * (size_t)f->bits & ((1u << f->bits) - 1);
    return ((float)qval - zero) * scale;
}

void oct_nbits_f32__ref_row(const oct_nbits_form *f, size_t nr, bool two, const float *a, const uint8_t *panel,
                            float *y)
{
    for (size_t j = 0; j < (two ? 2 * nr : nr); j++)
        for (size_t i = 0; i < f->k; i++)
            y[j] = fmaf(a[i], weight(f, nr, panel + j / nr * oct_nbits_panel_bytes(f, nr), i, j % nr), y[j]);
}

void oct_nbits_f32__ref_few(const oct_nbits_form *f, size_t nr, size_t m, const float *a, size_t lda,
                            const uint8_t *panel, float *y)
{
    for (size_t i = 0; i < m; i++)
        oct_nbits_f32__ref_row(f, nr, false, a + i * lda, panel, y + i * nr);
}

void oct_nbits_f32__ref_unpack(const oct_nbits_form *f, size_t nr, const uint8_t *panel, size_t k0, size_t kc,
                               float *to)
{
    for (size_t i = 0; i < kc; i++)
        for (size_t j = 0; j < nr; j++)
            to[i * nr + j] = weight(f, nr, panel, k0 + i, j);
}
