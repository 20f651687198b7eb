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

/* vectors: to 16 bits, those of eight round to even, and what is left is divided in float64. */
static oct_status quantize(const oct_twin_call *c, float (*at)(float x, float scale), bool vectors, bool wraps,
                           oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool u8 = oct_twin_is(y, OCT_TFL_UINT8), s16 = oct_twin_is(y, OCT_TFL_INT16);
    if (!oct_twin_is(x, OCT_TFL_FLOAT32) || (!oct_twin_is(y, OCT_TFL_INT8) && !u8 && !s16) || !(y->scale > 0))
        return oct_twin_cannot(c, err, "it is not from float32 to int8, uint8 or int16");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    const int64_t whole = s16 && vectors ? x->count - x->count % 8 : x->count;
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
    return quantize(c, away, false, false, err);
}

oct_status oct_twin_quantize_even(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return quantize(c, even, true, false, err);
}

/* A zero point is added to 32 bits, of which the lower eight are kept. Without one, a single cast saturates. */
oct_status oct_twin_quantize_wrap(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return quantize(c, even, false, c->out[0]->zero != 0, err);
}

oct_status oct_twin_requantize(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_rescaling *by = how;
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const oct_rescale r = by->of(x->scale, 1, y->scale);
    const int32_t least = oct_twin_least(y), most = oct_twin_most(y);
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    const int16_t *from = oct_twin_shorts(c, x, x->zero);
    if (!from)
        return oct_nomem(err);
    for (int64_t i = 0; i < x->count; i++)
        oct_twin_put(y, i, by->to(&r, from[i], y->zero, least, most));
    return OCT_OK;
}

/* A scale for each index of an axis, as constants have it, or one. */
static oct_status scale_step(const oct_twin_call *c, const oct_twin_tensor *x, int64_t *each, oct_err *err)
{
    const oct_quant *q = x->t->quant;
    *each = x->count ? x->count : 1;
    if (!q || q->n < 1)
        return oct_twin_cannot(c, err, "its operand has no scale");
    if (q->n == 1)
        return OCT_OK;
    if (x->t->axis < 0 || x->t->axis >= x->t->rank || q->n != x->t->dims[x->t->axis])
        return oct_twin_unfit(c, "its operand has scales along no axis", err);
    *each = 1;
    for (int i = x->t->axis + 1; i < x->t->rank; i++)
        *each *= x->t->dims[i];
    return OCT_OK;
}

oct_status oct_twin_dequantize(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool u8 = oct_twin_is(x, OCT_TFL_UINT8), s16 = oct_twin_is(x, OCT_TFL_INT16);
    int64_t each;
    (void)how;
    if ((!oct_twin_is(x, OCT_TFL_INT8) && !u8 && !s16) || !oct_twin_is(y, OCT_TFL_FLOAT32))
        return oct_twin_cannot(c, err, "it is not from int8, uint8 or int16 to float32");
    if (x->count != y->count)
        return oct_twin_unfit(c, "its result has another size", err);
    OCT_TRY(scale_step(c, x, &each, err));
    const oct_quant *of = x->t->quant;
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t k = i / each % of->n;
        const int32_t q = u8    ? ((const uint8_t *)x->data)[i]
                          : s16 ? ((const int16_t *)x->data)[i]
                                : ((const int8_t *)x->data)[i];
        ((float *)y->data)[i] = (float)(q - (of->zp ? of->zp[k] : 0)) * of->scale[k];
    }
    return OCT_OK;
}
