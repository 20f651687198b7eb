/* Reals to integers of 8 or 16 bits, and back. */
#include "twins/twin_ops.h"

#include <math.h>

static float away(float x, float scale)
{
    return roundf(x / scale);
}

static float even(float x, float scale)
{
    return rintf(x * (1.0f / scale));
}

static oct_status quantize(const oct_twin_call *c, float (*at)(float x, float scale), bool wraps, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool u8 = oct_twin_is(y, OCT_TFL_UINT8), s16 = oct_twin_is(y, OCT_TFL_INT16);
    if (!oct_twin_is(x, OCT_TFL_FLOAT32) || (!oct_twin_is(y, OCT_TFL_INT8) && !u8 && !s16) || !(y->scale > 0))
        return oct_twin_cannot(c, err, "it is not from float32 to int8, uint8 or int16");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    /* to 16 bits, vectors of eight round to even, and what is left is divided in float64 */
    const int64_t whole = s16 && at == even ? x->count - x->count % 8 : x->count;
    for (int64_t i = 0; i < x->count; i++) {
        const float from = ((const float *)x->data)[i];
        const float v = i < whole ? at(from, y->scale) : (float)round((double)from / (double)y->scale);
        const float bounded = v > 1e9f ? 1e9f : v > -1e9f ? v : -1e9f;
        const int64_t q = (int64_t)bounded + y->zero;
        if (s16)
            ((int16_t *)y->data)[i] = (int16_t)oct_twin_clamp(q, INT16_MIN, INT16_MAX);
        else
            ((uint8_t *)y->data)[i] = (uint8_t)(wraps ? q : oct_twin_clamp(q, u8 ? 0 : -128, u8 ? 255 : 127));
    }
    return OCT_OK;
}

oct_status oct_twin_quantize_away(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return quantize(c, away, false, err);
}

oct_status oct_twin_quantize_even(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return quantize(c, even, false, err);
}

/* A zero point is added to 32 bits, of which the lower eight are kept. Without one, a single cast saturates. */
oct_status oct_twin_quantize_wrap(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return quantize(c, even, c->out[0]->zero != 0, err);
}

oct_status oct_twin_dequantize(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool u8 = oct_twin_is(x, OCT_TFL_UINT8), s16 = oct_twin_is(x, OCT_TFL_INT16);
    (void)how;
    if ((!oct_twin_is(x, OCT_TFL_INT8) && !u8 && !s16) || !oct_twin_is(y, OCT_TFL_FLOAT32) || !x->t->quant ||
        x->t->quant->n != 1)
        return oct_twin_cannot(c, err, "it is not from int8, uint8 or int16 with one scale to float32");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int64_t i = 0; i < x->count; i++) {
        const int32_t q = u8    ? ((const uint8_t *)x->data)[i]
                          : s16 ? ((const int16_t *)x->data)[i]
                                : ((const int8_t *)x->data)[i];
        ((float *)y->data)[i] = (float)(q - x->zero) * x->scale;
    }
    return OCT_OK;
}
