/* Operators of two quantized operands. */
#include "twins/twin_broadcast.h"
#include "twins/twin_ops.h"

#include <math.h>

typedef struct pair {
    const int8_t *a, *b;
    const int64_t *at_a, *at_b;
    int32_t zero_a, zero_b, lo, hi;
    float scale_a, scale_b;
    const oct_twin_tensor *to;
} pair;

static oct_status read_pair(const oct_twin_call *c, const oct_rescaling *by, pair *p, oct_err *err)
{
    const oct_twin_tensor *a = c->in[0], *b = c->n_in > 1 ? c->in[1] : NULL;
    if (!oct_twin_is_int8(a) || !oct_twin_is_int8(b))
        return oct_twin_cannot(c, err, "its operands are not int8 with one scale");
    *p = (pair){ a->data, b->data, NULL, NULL, a->zero, b->zero, -128, 127, a->scale, b->scale, c->out[0] };
    OCT_TRY(oct_twin_repeat(c, a, &p->at_a, err));
    OCT_TRY(oct_twin_repeat(c, b, &p->at_b, err));
    return by ? oct_twin_activation(c, OCT_TFL_BINARY_ACTIVATION, by, &p->lo, &p->hi, err) : OCT_OK;
}

static int32_t times(const oct_rescaling *by, const oct_rescale *r, int32_t x)
{
    return by->to(r, x, 0, INT32_MIN, INT32_MAX);
}

/* Both operands are shifted left by 20 bits, brought to twice the larger scale, added, and brought to that of the
 * result. */
oct_status oct_twin_add_fixed(const oct_twin_call *c, const void *how, oct_err *err)
{
    enum { LEFT = 20 };
    const oct_rescaling *by = how;
    pair p;
    OCT_TRY(read_pair(c, by, &p, err));
    const double twice = 2 * (double)fmaxf(p.scale_a, p.scale_b);
    const oct_rescale a = oct_rescale_fixed((double)p.scale_a / twice),
                      b = oct_rescale_fixed((double)p.scale_b / twice),
                      y = oct_rescale_fixed(twice / ((double)(1 << LEFT) * (double)p.to->scale));
    const int32_t sign = c->op->code == OCT_TFL_SUB ? -1 : 1;
    for (int64_t i = 0; i < p.to->count; i++) {
        const int32_t u = times(by, &a, (p.a[p.at_a[i]] - p.zero_a) * (1 << LEFT));
        const int32_t v = times(by, &b, (p.b[p.at_b[i]] - p.zero_b) * (1 << LEFT));
        ((int8_t *)p.to->data)[i] = (int8_t)by->to(&y, u + sign * v, p.to->zero, p.lo, p.hi);
    }
    return OCT_OK;
}

/* The larger of both factors has 21 bits, and the sum is rounded half up. */
oct_status oct_twin_add_shift(const oct_twin_call *c, const void *how, oct_err *err)
{
    pair p;
    int exponent;
    OCT_TRY(read_pair(c, how, &p, err));
    const float a = p.scale_a / p.to->scale, b = p.scale_b / p.to->scale;
    frexpf(fmaxf(a, b), &exponent);
    const int shift = 20 - (exponent - 1);
    if (shift < 13 || shift > 30)
        return oct_twin_cannot(c, err, "its scales are too far apart");
    const int64_t u = (int64_t)rintf(ldexpf(a, shift)),
                  v = (int64_t)rintf(ldexpf(b, shift)) * (c->op->code == OCT_TFL_SUB ? -1 : 1);
    for (int64_t i = 0; i < p.to->count; i++) {
        const int64_t sum =
            (p.a[p.at_a[i]] - p.zero_a) * u + (p.b[p.at_b[i]] - p.zero_b) * v + (INT64_C(1) << (shift - 1));
        ((int8_t *)p.to->data)[i] = (int8_t)oct_twin_clamp((sum >> shift) + p.to->zero, p.lo, p.hi);
    }
    return OCT_OK;
}

oct_status oct_twin_mul(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_rescaling *by = how;
    pair p;
    OCT_TRY(read_pair(c, by, &p, err));
    const oct_rescale y = by->of(p.scale_a, p.scale_b, p.to->scale);
    for (int64_t i = 0; i < p.to->count; i++)
        ((int8_t *)p.to->data)[i] =
            (int8_t)by->to(&y, (p.a[p.at_a[i]] - p.zero_a) * (p.b[p.at_b[i]] - p.zero_b), p.to->zero, p.lo, p.hi);
    return OCT_OK;
}

/* The operand, and where it is negative its product with the slope, each by a multiplier of its own. */
oct_status oct_twin_prelu(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_rescaling *by = how;
    pair p;
    OCT_TRY(read_pair(c, NULL, &p, err));
    const oct_rescale whole = by->of(p.scale_a, 1, p.to->scale), sloped = by->of(p.scale_a, p.scale_b, p.to->scale);
    for (int64_t i = 0; i < p.to->count; i++) {
        const int32_t x = p.a[p.at_a[i]] - p.zero_a, slope = p.b[p.at_b[i]] - p.zero_b;
        ((int8_t *)p.to->data)[i] =
            (int8_t)by->to(x < 0 ? &sloped : &whole, x < 0 ? x * slope : x, p.to->zero, p.lo, p.hi);
    }
    return OCT_OK;
}

oct_status oct_twin_extreme(const oct_twin_call *c, const void *how, oct_err *err)
{
    pair p;
    (void)how;
    OCT_TRY(read_pair(c, NULL, &p, err));
    if (p.scale_a != p.to->scale || p.scale_b != p.to->scale || p.zero_a != p.to->zero || p.zero_b != p.to->zero)
        return oct_twin_cannot(c, err, "its scales differ");
    const bool most = c->op->code == OCT_TFL_MAXIMUM;
    for (int64_t i = 0; i < p.to->count; i++) {
        const int8_t u = p.a[p.at_a[i]], v = p.b[p.at_b[i]];
        ((int8_t *)p.to->data)[i] = (u > v) == most ? u : v;
    }
    return OCT_OK;
}
