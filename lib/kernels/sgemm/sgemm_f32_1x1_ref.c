/* lib/kernels/sgemm/sgemm_f32_1x1_ref.c -- one output at a time: the definition of the float product. */
#include "kernels/sgemm/sgemm_int.h"

#include <math.h>

void oct_sgemm_f32_1x1__ref(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                            size_t ldc, bool first, bool last, const oct_sout *out)
{
    float v = first ? oct_sout_start(out, 0) : *c;
    for (size_t t = 0; t < taps; t++)
        for (size_t k = 0; k < kc; k++)
            v = fmaf(a[t][k], *b++, v);
    *c = last ? oct_sout_apply(v, out, out->residual, 0) : v;
}
