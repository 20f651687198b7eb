/* lib/kernels/dw/sdw_f32_ref.c -- depthwise convolution in float: the definition. */
#include "kernels/dw/dw_int.h"
#include "kernels/sgemm/sout.h"

#include <math.h>

void oct_sdw_f32__ref(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y, size_t ldy,
                      const oct_sout *out)
{
    const size_t step = oct_round_up(c, OCT_DW_CHANNELS);
    for (size_t p = 0; p < px; p++)
        for (size_t i = 0; i < c; i++) {
            float v = oct_sout_start(out, i);
            for (size_t t = 0; t < taps; t++)
                v = fmaf(x[p * taps + t][i], w[t * step + i], v);
            y[p * ldy + i] = oct_sout_apply(v, out, out->residual ? out->residual + p * out->ldr : NULL, i);
        }
}
