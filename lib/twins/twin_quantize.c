/* Reals to integers of 8 bits, and back. */
#include "twins/twin_ops.h"

#include <math.h>

static oct_status quantize(const oct_twin_call *c, float (*at)(float x, float scale), bool wraps, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool u8 = oct_twin_is(y, OCT_TFL_UINT8);
    if (!oct_twin_is(x, OCT_TFL_FLOAT32) || (!oct_twin_is(y, OCT_TFL_INT8) && !u8) || !(y->scale > 0))
        return oct_twin_cannot(c, err, "it is not from float32 to int8 or uint8");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int64_t i = 0; i < x->count; i++) {
        const float v = at(((const float *)x->data)[i], y->scale);
        const float whole = v > 1e9f ? 1e9f : v > -1e9f ? v : -1e9f;
        const int64_t q = (int64_t)whole + y->zero;
        ((uint8_t *)y->data)[i] = (uint8_t)(wraps ? q : oct_twin_clamp(q, u8 ? 0 : -128, u8 ? 255 : 127));
    }
    return OCT_OK;
}

static float away(float x, float scale)
{
    return roundf(x / scale);
}

static float even(float x, float scale)
{
    return rintf(x * (1.0f / scale));
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
    const bool u8 = oct_twin_is(x, OCT_TFL_UINT8);
    (void)how;
    if ((!oct_twin_is(x, OCT_TFL_INT8) && !u8) || !oct_twin_is(y, OCT_TFL_FLOAT32) || !x->t->quant ||
        x->t->quant->n != 1)
        return oct_twin_cannot(c, err, "it is not from int8 or uint8 with one scale to float32");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int64_t i = 0; i < x->count; i++) {
        const int32_t q = u8 ? ((const uint8_t *)x->data)[i] : ((const int8_t *)x->data)[i];
        ((float *)y->data)[i] = (float)(q - x->zero) * x->scale;
    }
    return OCT_OK;
}
