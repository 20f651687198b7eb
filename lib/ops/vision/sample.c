/* Weighted sums of pixels. */
#include "ops/vision/sample.h"

#include <math.h>
#include <string.h>

void oct_taps_linear(double p, int64_t n, oct_axis_taps *t)
{
    *t = (oct_axis_taps){ .n = 2, .index = { -1, -1 } };
    if (!(p > -1.0 && p < (double)n))
        return;
    const double low = floor(p);
    const int64_t at = (int64_t)low;
    t->index[0] = at >= 0 ? at : -1;
    t->index[1] = at + 1 < n ? at + 1 : -1;
    t->weight[1] = p - low;
    t->weight[0] = 1.0 - t->weight[1];
}

int oct_taps_join(const oct_axis_taps *axis, const int64_t *dims, int n, oct_tap *taps)
{
    int count = 1;
    taps[0] = (oct_tap){ 0, 1.0 };
    for (int a = 0; a < n; a++) {
        oct_tap before[OCT_SAMPLE_TAPS];
        int kept = 0;
        memcpy(before, taps, (size_t)count * sizeof *before);
        for (int i = 0; i < count; i++)
            for (int k = 0; k < axis[a].n; k++)
                if (axis[a].index[k] >= 0)
                    taps[kept++] =
                        (oct_tap){ before[i].pixel * dims[a] + axis[a].index[k], before[i].weight * axis[a].weight[k] };
        count = kept;
    }
    return count;
}

static void blend_f32(const float *x, const oct_tap *taps, int n, int64_t c, float *y)
{
    memset(y, 0, (size_t)c * sizeof *y);
    for (int k = 0; k < n; k++) {
        const float *from = x + taps[k].pixel * c, w = (float)taps[k].weight;
        for (int64_t i = 0; i < c; i++)
            y[i] += w * from[i];
    }
}

void oct_blend(oct_dtype t, const void *x, const oct_tap *taps, int n, int64_t c, void *y)
{
    if (t == OCT_F32) {
        blend_f32(x, taps, n, c, y);
        return;
    }
    for (int64_t first = 0; first < c; first += 1024) {
        const int64_t part = c - first < 1024 ? c - first : 1024;
        oct_chunk raw, sum, wide;
        memset(&sum, 0, (size_t)part * sizeof sum.d[0]);
        for (int k = 0; k < n; k++) {
            const void *v = oct_elem_load(t, x, taps[k].pixel * c + first, 1, part, &raw);
            oct_elem_store(OCT_F64, &wide, 0, 1, part, oct_dom_of(t), v);
            for (int64_t i = 0; i < part; i++)
                sum.d[i] += taps[k].weight * wide.d[i];
        }
        oct_elem_store(t, y, first, 1, part, OCT_DOM_D, &sum);
    }
}
