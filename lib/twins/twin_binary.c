/* Operators of two quantized operands. */
#include "twins/twin_broadcast.h"
#include "twins/twin_ops.h"

#include <math.h>

typedef struct pair {
    const int16_t *a, *b;
    const int64_t *at_a, *at_b;
    int32_t zero_a, zero_b, lo, hi;
    float scale_a, scale_b;
    const oct_twin_tensor *to;
} pair;

static oct_status read_pair(const oct_twin_call *c, const oct_rescaling *by, pair *p, oct_err *err)
{
    const oct_twin_tensor *a = c->in[0], *b = c->n_in > 1 ? c->in[1] : NULL;
    const oct_twin_tensor *y = c->out[0];
    if (!oct_twin_is_whole(a) || !oct_twin_is_whole(b) || !oct_twin_is(b, a->t->type) || !oct_twin_is(y, a->t->type))
        return oct_twin_cannot(c, err, "its operands are not int8, or int16, with one scale");
    *p = (pair){ .zero_a = a->zero, .zero_b = b->zero, .scale_a = a->scale, .scale_b = b->scale, .to = y };
    p->lo = oct_twin_least(y);
    p->hi = oct_twin_most(y);
    p->a = oct_twin_shorts(c, a, 0);
    p->b = oct_twin_shorts(c, b, 0);
    if (!p->a || !p->b)
        return oct_nomem(err);
    OCT_TRY(oct_twin_repeat(c, a, &p->at_a, err));
    OCT_TRY(oct_twin_repeat(c, b, &p->at_b, err));
    return by ? oct_twin_activation(c, OCT_TFL_BINARY_ACTIVATION, by, &p->lo, &p->hi, err) : OCT_OK;
}

static int32_t times(const oct_rescaling *by, const oct_rescale *r, int32_t x)
{
    return by->to(r, x, 0, INT32_MIN, INT32_MAX);
}

/* Both operands are shifted left by 20 bits (by 15, those of 16 bits), brought to twice the larger scale by one way of
 * rounding, added, and brought to that of the result. The last elements from `first` on have but the second way. */
static oct_status add(const oct_twin_call *c, const oct_rescaling *inner, const oct_rescaling *by, int64_t first,
                      oct_err *err)
{
    pair p;
    OCT_TRY(read_pair(c, by, &p, err));
    const int left = oct_twin_is(p.to, OCT_TFL_INT16) ? 15 : 20;
    const double twice = 2 * (double)fmaxf(p.scale_a, p.scale_b);
    const oct_rescale a = oct_rescale_fixed((double)p.scale_a / twice),
                      b = oct_rescale_fixed((double)p.scale_b / twice),
                      y = oct_rescale_fixed(twice / ((double)(1 << left) * (double)p.to->scale));
    const int32_t sign = c->op->code == OCT_TFL_SUB ? -1 : 1;
    for (int64_t i = 0; i < p.to->count; i++) {
        const oct_rescaling *own = i < first ? inner : by;
        const int32_t u = times(own, &a, (p.a[p.at_a[i]] - p.zero_a) * (1 << left));
        const int32_t v = times(own, &b, (p.b[p.at_b[i]] - p.zero_b) * (1 << left));
        oct_twin_put(p.to, i, by->to(&y, u + sign * v, p.to->zero, p.lo, p.hi));
    }
    return OCT_OK;
}

oct_status oct_twin_add_fixed(const oct_twin_call *c, const void *how, oct_err *err)
{
    return add(c, how, how, 0, err);
}

/* By vectors of 16 elements where nothing is repeated, which round operands once. */
oct_status oct_twin_add_sixteen(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *a = c->in[0], *b = c->n_in > 1 ? c->in[1] : NULL;
    const bool alike = b && a->count == c->out[0]->count && b->count == a->count;
    return add(c, &oct_rescaling_single, how, alike ? a->count - a->count % 16 : 0, err);
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
        oct_twin_put(p.to, i,
                     by->to(&y, (p.a[p.at_a[i]] - p.zero_a) * (p.b[p.at_b[i]] - p.zero_b), p.to->zero, p.lo, p.hi));
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
        const int16_t u = p.a[p.at_a[i]], v = p.b[p.at_b[i]];
        oct_twin_put(p.to, i, (u > v) == most ? u : v);
    }
    return OCT_OK;
}
