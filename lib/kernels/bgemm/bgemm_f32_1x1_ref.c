/* lib/kernels/bgemm/bgemm_f32_1x1_ref.c -- one output at a time: the definition of the bf16 product. */
#include "kernels/bgemm/bgemm_int.h"
#include "kernels/denormals.h"

void oct_bgemm_f32_1x1__ref(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                            size_t ldc, bool first, bool last, const oct_sout *out)
{
    float v = first ? oct_sout_start(out, 0) : *c;
    for (size_t t = 0; t < taps; t++)
        for (size_t from = 0; from < kc; from += OCT_BGEMM_BLOCK) {
            const size_t end = kc - from < OCT_BGEMM_BLOCK ? kc : from + OCT_BGEMM_BLOCK;
            float chain[2] = { 0, 0 };
            for (size_t k = from; k < end; k++)
                chain[k % 2] = oct_flushed_fma(a[t][k], *b++, chain[k % 2]);
            v = oct_flushed_add(v, oct_flushed_add(chain[0], chain[1]));
        }
    *c = last ? oct_sout_apply(v, out, out->residual, 0) : v;
}
