/* lib/kernels/sgemm/sgemm_f32_1x1_ref.c -- one output at a time: the definition of the float product. */
#include "kernels/sgemm/kernels.h"

#include <math.h>

void oct_sgemm_f32_1x1__ref(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                            size_t ldc, bool first, const oct_sout *out)
{
    float v = first ? 0.0f : *c;
    for (size_t t = 0; t < taps; t++)
        for (size_t k = 0; k < kc; k++)
            v = fmaf(a[t][k], *b++, v);
    *c = out ? oct_sout_apply(v, out, out->residual, 0) : v;
}
