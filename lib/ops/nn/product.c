/* Integer products: bias, multipliers, the last step. */
#include "ops/nn/product.h"

#include <math.h>
#include <string.h>

static bool byte_type(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8;
}

static const oct_operand *bias_of(const oct_step *s, int bias)
{
    return bias >= 0 && bias < s->n_in ? s->in[bias] : NULL;
}

/* How many times s_x * s_w of a channel the scale of a quantized bias is. */
static double bias_steps(const oct_step *s, const oct_operand *b, int64_t channel)
{
    const oct_quant *x = s->in[0]->q, *w = s->in[1]->q;
    return (double)b->q->scale[b->q->n > 1 ? channel : 0] / (double)(x->scale[0] * w->scale[w->n > 1 ? channel : 0]);
}

/* Whether a bias of s8 is, in every channel, a whole number of steps of s_x * s_w, which int32 can hold. */
static bool bytes_fit(const oct_step *s, const oct_operand *b, int64_t channels)
{
    const double most = 0x1p24;
    for (int64_t i = 0; i < channels; i++) {
        const double steps = bias_steps(s, b, i);
        if (b->q->zp[b->q->n > 1 ? i : 0] != 0 || !(steps >= 1 && steps <= most) || steps != rint(steps))
            return false;
    }
    return true;
}

static bool bias_fits(const oct_step *s, const oct_operand *b, int64_t channels)
{
    if (!b->constant || b->count != channels)
        return false;
    if (b->dtype == OCT_F32)
        return true;
    if (b->dtype == OCT_S8 && b->q && (b->q->n == 1 || b->q->n == channels))
        return bytes_fit(s, b, channels);
    if (b->dtype != OCT_S32 || !b->q || (b->q->n != 1 && b->q->n != channels))
        return false;
    const oct_quant *x = s->in[0]->q, *w = s->in[1]->q;
    for (int64_t i = 0; i < channels; i++) {
        float want = x->scale[0] * w->scale[w->n > 1 ? i : 0], have = b->q->scale[b->q->n > 1 ? i : 0];
        if (b->q->zp[b->q->n > 1 ? i : 0] != 0 || fabsf(have - want) > 0.01f * want)
            return false;
    }
    return true;
}

bool oct_product_fits(const oct_step *s, int64_t channels, int axis, int bias)
{
    const oct_operand *x = s->in[0], *w = s->n_in > 1 ? s->in[1] : NULL, *y = s->out[0];
    if (!x || !w || !y || !x->q || !w->q || x->q->n != 1 || !byte_type(x->dtype) || !byte_type(w->dtype))
        return false;
    if (w->q->n != 1 && (w->q->n != channels || w->q->axis != axis))
        return false;
    if (y->q ? y->q->n != 1 || !byte_type(y->dtype) : y->dtype != OCT_F32)
        return false;
    const oct_operand *b = bias_of(s, bias);
    return !b || bias_fits(s, b, channels);
}

oct_status oct_product_bias(const oct_step *s, const oct_prep *p, int64_t channels, int bias, int32_t **out,
                            oct_err *err)
{
    const oct_operand *b = bias_of(s, bias);
    *out = NULL;
    if (!b || !s->out[0]->q)
        return OCT_OK;
    int32_t *v = oct_arena_aligned(p->arena, (size_t)channels * sizeof *v, 64);
    if (!v)
        return oct_nomem(err);
    const oct_quant *x = s->in[0]->q, *w = s->in[1]->q;
    for (int64_t i = 0; i < channels; i++) {
        if (b->dtype == OCT_S32) {
            v[i] = ((const int32_t *)b->data)[i];
            continue;
        }
        if (b->dtype == OCT_S8) {
            v[i] = ((const int8_t *)b->data)[i] * (int32_t)bias_steps(s, b, i);
            continue;
        }
        double q = rint((double)((const float *)b->data)[i] / (double)(x->scale[0] * w->scale[w->n > 1 ? i : 0]));
        v[i] = q >= 2147483647.0 ? INT32_MAX : q <= -2147483648.0 ? INT32_MIN : (int32_t)q;
    }
    *out = v;
    return OCT_OK;
}

static oct_status real_bias(const oct_step *s, const oct_prep *p, const oct_operand *b, int64_t channels, oct_qout *out,
                            oct_err *err)
{
    float *v = oct_arena_aligned(p->arena, (size_t)channels * sizeof *v, 64);
    if (!v)
        return oct_nomem(err);
    for (int64_t i = 0; i < channels; i++) {
        const int32_t q = b->dtype == OCT_S32  ? ((const int32_t *)b->data)[i]
                          : b->dtype == OCT_S8 ? ((const int8_t *)b->data)[i]
                                               : 0;
        v[i] = b->dtype == OCT_F32 ? ((const float *)b->data)[i] : (float)q * b->q->scale[b->q->n > 1 ? i : 0];
    }
    out->bias = v;
    return OCT_OK;
}

oct_status oct_product_out(const oct_step *s, const oct_prep *p, int64_t channels, int bias, float factor,
                           oct_qout *out, oct_err *err)
{
    const oct_quant *x = s->in[0]->q, *w = s->in[1]->q, *y = s->out[0]->q;
    *out = (oct_qout){ .kind = OCT_QOUT_F32 };
    float *mult = oct_arena_aligned(p->arena, (size_t)channels * sizeof *mult, 64);
    if (!mult)
        return oct_nomem(err);
    for (int64_t i = 0; i < channels; i++) {
        mult[i] = factor == 1.0f ? x->scale[0] * w->scale[w->n > 1 ? i : 0]
                                 : factor * x->scale[0] * w->scale[w->n > 1 ? i : 0];
        if (y)
            mult[i] = mult[i] / y->scale[0];
    }
    out->mult = mult;
    if (y) {
        oct_qout_range(out, s->out[0]->dtype == OCT_U8 ? OCT_QOUT_U8 : OCT_QOUT_S8, y->zp[0]);
        if (s->epilogue.clamp)
            oct_qout_narrow(out, y->scale[0], s->epilogue.lo, s->epilogue.hi);
        return OCT_OK;
    }
    out->clamp = s->epilogue.clamp;
    out->lo = s->epilogue.lo;
    out->hi = s->epilogue.hi;
    const oct_operand *b = bias_of(s, bias);
    return b ? real_bias(s, p, b, channels, out, err) : OCT_OK;
}

const int32_t *oct_product_zero(const oct_quant *q, size_t *step)
{
    *step = q->n > 1;
    for (int i = 0; i < q->n; i++)
        if (q->zp[i])
            return q->zp;
    return NULL;
}
