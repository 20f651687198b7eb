/* Pools of int8 and int16, and the window of all pools. */
#include "twins/twin_ops.h"

typedef struct pool {
    oct_twin_window win;
    int64_t channels, batches;
    int32_t lo, hi;
} pool;

oct_status oct_twin_pool_window(const oct_twin_call *c, oct_twin_window *w, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    if (x->t->rank != 4 || y->t->rank != 4 || x->t->dims[0] != y->t->dims[0] || x->t->dims[3] != y->t->dims[3])
        return oct_twin_unfit(c, "its operand is no picture", err);
    for (int k = 0; k < 2; k++) {
        w->in[k] = x->t->dims[1 + k];
        w->out[k] = y->t->dims[1 + k];
        w->kernel[k] = oct_tfl_option(c->op, OCT_TFL_POOL_FILTER_W + 1 - k, 0);
        w->stride[k] = oct_tfl_option(c->op, OCT_TFL_POOL_STRIDE_W + 1 - k, 0);
        w->dilation[k] = 1;
    }
    return oct_twin_window_place(w, oct_tfl_option(c->op, OCT_TFL_POOL_PADDING, OCT_TFL_SAME))
               ? OCT_OK
               : oct_twin_unfit(c, "its window does not fit its result", err);
}

static oct_status read_pool(const oct_twin_call *c, const oct_rescaling *by, pool *p, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    OCT_TRY(oct_twin_pool_window(c, &p->win, err));
    p->channels = x->t->dims[3];
    p->batches = x->t->dims[0];
    if (x->scale != y->scale || x->zero != y->zero)
        return oct_twin_cannot(c, err, "its result has another scale than its operand");
    p->lo = oct_twin_least(y);
    p->hi = oct_twin_most(y);
    return by ? oct_twin_activation(c, OCT_TFL_POOL_ACTIVATION, by, &p->lo, &p->hi, err) : OCT_OK;
}

/* What a window holds of a channel. */
typedef struct held {
    int32_t sum, n, most;
} held;

static held hold(const int16_t *x, const pool *p, int64_t i, int64_t k, int64_t channel)
{
    const oct_twin_window *w = &p->win;
    held h = { 0, 0, INT16_MIN };
    for (int64_t ky = 0; ky < w->kernel[0]; ky++)
        for (int64_t kx = 0; kx < w->kernel[1]; kx++) {
            const int64_t y = i * w->stride[0] - w->before[0] + ky, xx = k * w->stride[1] - w->before[1] + kx;
            if (y < 0 || y >= w->in[0] || xx < 0 || xx >= w->in[1])
                continue;
            const int32_t v = x[(y * w->in[1] + xx) * p->channels + channel];
            h.sum += v;
            h.n++;
            h.most = v > h.most ? v : h.most;
        }
    return h;
}

static int32_t average(const held *h)
{
    return h->n == 0 ? 0 : (h->sum + (h->sum > 0 ? h->n / 2 : -(h->n / 2))) / h->n;
}

static int32_t largest(const held *h)
{
    return h->most;
}

static oct_status compute(const oct_twin_call *c, const oct_rescaling *by, int32_t (*of)(const held *), oct_err *err)
{
    pool p;
    OCT_TRY(read_pool(c, by, &p, err));
    const int16_t *x = oct_twin_shorts(c, c->in[0], 0);
    int64_t at = 0;
    if (!x)
        return oct_nomem(err);
    for (int64_t b = 0; b < p.batches; b++, x += p.win.in[0] * p.win.in[1] * p.channels)
        for (int64_t i = 0; i < p.win.out[0]; i++)
            for (int64_t k = 0; k < p.win.out[1]; k++)
                for (int64_t channel = 0; channel < p.channels; channel++) {
                    const held h = hold(x, &p, i, k, channel);
                    oct_twin_put(c->out[0], at++, oct_twin_clamp(of(&h), p.lo, p.hi));
                }
    return OCT_OK;
}

oct_status oct_twin_average_pool(const oct_twin_call *c, const void *how, oct_err *err)
{
    return compute(c, how, average, err);
}

/* The sum times 2^n / count with as many bits as fit, rounded half up. */
static int32_t average_factor(const held *h)
{
    if (h->n == 0)
        return 0;
    const int k = h->n > 1 ? 32 - __builtin_clz((unsigned)h->n - 1) : 0, shift = 30 + k;
    const int64_t factor = (int64_t)((((UINT64_C(1) << 30) + 1) << k) / (uint64_t)h->n);
    return (int32_t)((h->sum * factor + (INT64_C(1) << (shift - 1))) >> shift);
}

oct_status oct_twin_average_pool_tosa(const oct_twin_call *c, const void *how, oct_err *err)
{
    return compute(c, how, average_factor, err);
}

oct_status oct_twin_max_pool(const oct_twin_call *c, const void *how, oct_err *err)
{
    return compute(c, how, largest, err);
}
