/* Reductions of int8 along axes; means of int16, too. */
#include "twins/twin_ops.h"

#include <math.h>

typedef struct sums {
    int64_t *sum, each; /* [of the result]; how many elements each has */
    int32_t *least, *most;
} sums;

oct_status oct_twin_reduced(const oct_twin_call *c, const int64_t **places, int64_t *each, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    int64_t axes[OCT_MAX_RANK], stride[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, step = 1;
    bool gone[OCT_MAX_RANK] = { false };
    int n;
    OCT_TRY(oct_twin_numbers(c, 1, axes, &n, err));
    for (int i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + x->t->rank : axes[i];
        if (axis < 0 || axis >= x->t->rank)
            return oct_twin_unfit(c, "an axis is not there", err);
        gone[axis] = true;
    }
    *each = 1;
    for (int k = x->t->rank - 1; k >= 0; k--) {
        stride[k] = gone[k] ? 0 : step;
        step *= gone[k] ? 1 : x->t->dims[k];
        *each *= gone[k] ? x->t->dims[k] : 1;
    }
    if (step != y->count || *each < 1)
        return oct_twin_unfit(c, "its result has another size", err);
    int64_t *place = oct_twin_scratch(c, (size_t)x->count, sizeof *place);
    if (!place)
        return oct_nomem(err);
    for (int64_t i = 0, to = 0; i < x->count; i++) {
        place[i] = to;
        for (int k = x->t->rank - 1; k >= 0; k--) {
            to += stride[k];
            if (++at[k] < x->t->dims[k])
                break;
            to -= stride[k] * at[k];
            at[k] = 0;
        }
    }
    *places = place;
    return OCT_OK;
}

/* Adds up along the axes of the second operand. */
static oct_status add_up(const oct_twin_call *c, sums *s, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const int64_t *place;
    OCT_TRY(oct_twin_reduced(c, &place, &s->each, err));
    s->sum = oct_twin_scratch(c, (size_t)y->count, sizeof *s->sum);
    s->least = oct_twin_scratch(c, (size_t)y->count, sizeof *s->least);
    s->most = oct_twin_scratch(c, (size_t)y->count, sizeof *s->most);
    if (!s->sum || !s->least || !s->most)
        return oct_nomem(err);
    for (int64_t i = 0; i < y->count; i++) {
        s->least[i] = oct_twin_most(x);
        s->most[i] = oct_twin_least(x);
    }
    const int16_t *from = oct_twin_shorts(c, x, 0);
    if (!from)
        return oct_nomem(err);
    for (int64_t i = 0; i < x->count; i++) {
        const int32_t v = from[i];
        const int64_t to = place[i];
        s->sum[to] += v;
        s->least[to] = v < s->least[to] ? v : s->least[to];
        s->most[to] = v > s->most[to] ? v : s->most[to];
    }
    return OCT_OK;
}

/* The factor of the scales is divided by the number of elements while it has as many bits as fit. */
oct_status oct_twin_mean_fixed(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_rescaling *by = how;
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    sums s;
    OCT_TRY(add_up(c, &s, err));
    oct_rescale r = oct_rescale_fixed((double)x->scale / (double)y->scale);
    int shift = 63 - __builtin_clzll((unsigned long long)s.each);
    shift = shift > 32 ? 32 : shift;
    shift = shift > 31 + r.shift ? 31 + r.shift : shift;
    r.multiplier = (int32_t)(((int64_t)r.multiplier << shift) / s.each);
    r.shift -= shift;
    const int32_t least = oct_twin_least(y), most = oct_twin_most(y);
    for (int64_t i = 0; i < y->count; i++)
        oct_twin_put(y, i, by->to(&r, (int32_t)(s.sum[i] - x->zero * s.each), y->zero, least, most));
    return OCT_OK;
}

/* In float: the sum of the integers times the factor, and what the zero points come to. */
oct_status oct_twin_mean_float(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    sums s;
    (void)how;
    OCT_TRY(add_up(c, &s, err));
    const float scale = x->scale / y->scale / (float)s.each;
    const float base = (float)y->zero - (float)(x->zero * s.each) * scale;
    for (int64_t i = 0; i < y->count; i++) {
        const float v = (float)s.sum[i] * scale + base;
        ((int8_t *)y->data)[i] = (int8_t)rintf(v > 127 ? 127 : v > -128 ? v : -128);
    }
    return OCT_OK;
}

oct_status oct_twin_reduce_extreme(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    sums s;
    (void)how;
    if (x->scale != y->scale || x->zero != y->zero)
        return oct_twin_cannot(c, err, "its result has another scale than its operand");
    OCT_TRY(add_up(c, &s, err));
    for (int64_t i = 0; i < y->count; i++)
        ((int8_t *)y->data)[i] = (int8_t)(c->op->code == OCT_TFL_REDUCE_MAX ? s.most[i] : s.least[i]);
    return OCT_OK;
}
