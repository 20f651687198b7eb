/* The matrices of an LSTM that a target computes between quantizers: each gate has one scale, which stands in the file
 * for each of its rows. */
#include "kernels/quantize.h"
#include "quant/weights/weights.h"

#include <limits.h>
#include <math.h>

enum { GATES = 4 };
#define LEAST_SCALE 0x1p-120f /* gates with smaller numbers become zeros */

static float largest_of(const float *x, int64_t n)
{
    float largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    return largest;
}

oct_status oct_quantize_gates(oct_arena *a, const oct_tensor *t, oct_quant *quant, oct_err *err)
{
    const int64_t rows = t->dims[1], each = rows / GATES, n = each * t->dims[2];
    oct_tensor *qvals;
    if (rows > INT_MAX)
        return oct_fail(err, OCT_EUNSUPPORTED, "weights of %lld rows", (long long)rows);
    float *scale = oct_arena_calloc(a, (size_t)rows + 1, sizeof *scale);
    const int32_t *zero = oct_arena_calloc(a, (size_t)rows + 1, sizeof *zero);
    if (!scale || !zero)
        return oct_nomem(err);
    OCT_TRY(oct_tensor_new(a, OCT_S8, t->rank, t->dims, &qvals, err));
    for (int64_t k = 0; k < GATES; k++) {
        const float *x = (const float *)t->data + k * n;
        const float step = largest_of(x, n) / 127.0f, s = step >= LEAST_SCALE ? step : 1.0f;
        for (int64_t i = 0; i < each; i++)
            scale[k * each + i] = s;
        oct_quantize_f32(NULL, OCT_S8, x, (size_t)n, s, 0, (uint8_t *)(uintptr_t)qvals->data + k * n);
    }
    *quant = (oct_quant){ .n = (int)rows, .axis = 1, .scale = scale, .zp = zero, .dtype = OCT_S8, .qvals = qvals };
    return OCT_OK;
}
