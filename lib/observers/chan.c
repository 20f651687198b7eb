/* lib/observers/chan.c -- per-channel range and exact moments. */
#include "observers/chan.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

oct_status oct_chan_init(oct_chan_stats *s, size_t channels, unsigned flags, oct_err *err)
{
    *s = (oct_chan_stats){ .channels = channels, .flags = flags };
    s->c = oct_calloc(channels, sizeof *s->c);
    return s->c ? OCT_OK : oct_nomem(err);
}

void oct_chan_free(oct_chan_stats *s)
{
    oct_free(s->c);
    *s = (oct_chan_stats){ 0 };
}

static void add_slow(oct_chan *c, float x, bool squares)
{
    if (isinf(x))
        return;
    if (c->n == 0 || x < c->min)
        c->min = x + 0.0f;
    if (c->n == 0 || x > c->max)
        c->max = x + 0.0f;
    c->n++;
    oct_xsum_add(&c->sum, x);
    if (squares)
        oct_xsum_add(&c->sum2, (double)x * x);
}

/* A sum of doubles in levels: level l takes the multiples of g[l] that remain, so that a block of 8192 values of
 * 39 bits each adds up exactly. What is left after the last level means that the block is not exact. */
#define LEVELS 3
#define BLOCK 8192

typedef struct split {
    double magic[LEVELS]; /* adding and subtracting 1.5 * 2^(52 + k) rounds to multiples of 2^k */
    double sum[LEVELS];
    bool left;
} split;

/* For |x| <= 2^top. */
static void split_begin(split *s, int top)
{
    for (int l = 0; l < LEVELS; l++) {
        s->magic[l] = ldexp(1.5, 52 + top - 39 * (l + 1));
        s->sum[l] = 0;
    }
    s->left = false;
}

static inline void split_add(split *s, double x)
{
    for (int l = 0; l < LEVELS; l++) {
        double q = (x + s->magic[l]) - s->magic[l];
        s->sum[l] += q;
        x -= q;
    }
    s->left |= x != 0;
}

/* A block of one channel: n values, `step` apart, finite; peak: their largest magnitude. */
static void add_block(oct_chan *c, const float *x, size_t n, size_t step, float min, float max, bool squares)
{
    float peak = -min > max ? -min : max;
    int top;
    frexpf(peak, &top);
    split a, b;
    split_begin(&a, top);
    split_begin(&b, 2 * top);
    for (size_t i = 0; i < n; i++)
        split_add(&a, x[i * step]);
    if (squares)
        for (size_t i = 0; i < n; i++)
            split_add(&b, (double)x[i * step] * x[i * step]);
    for (int l = 0; l < LEVELS; l++) {
        if (!a.left)
            oct_xsum_add(&c->sum, a.sum[l]);
        if (squares && !b.left)
            oct_xsum_add(&c->sum2, b.sum[l]);
    }
    for (size_t i = 0; i < n && (a.left || b.left); i++) {
        double v = x[i * step];
        if (a.left)
            oct_xsum_add(&c->sum, v);
        if (b.left)
            oct_xsum_add(&c->sum2, v * v);
    }
    if (c->n == 0 || min < c->min)
        c->min = min + 0.0f;
    if (c->n == 0 || max > c->max)
        c->max = max + 0.0f;
    c->n += n;
}

static void add_run(oct_chan *c, const float *x, size_t n, size_t step, bool squares)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        const float *p = x + at * step;
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        float min = p[0], max = p[0];
        for (size_t i = 1; i < m; i++) {
            float v = p[i * step];
            min = v < min ? v : min;
            max = v > max ? v : max;
        }
        if (m >= 16 && !isinf(min) && !isinf(max)) {
            add_block(c, p, m, step, min, max, squares);
            continue;
        }
        for (size_t i = 0; i < m; i++)
            add_slow(c, p[i * step], squares);
    }
}

oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t inner, oct_err *err)
{
    size_t n;
    if (!oct_mul_size(outer, inner, &n) || !oct_mul_size(n, s->channels, &n))
        return oct_fail(err, OCT_EINTERNAL, "the size of the values overflows");
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
    if (n == 0)
        return OCT_OK;
    bool squares = s->flags & OCT_CHAN_SQUARES;
    for (size_t c = 0; c < s->channels; c++) {
        if (inner == 1) {
            add_run(&s->c[c], x + c, outer, s->channels, squares);
            continue;
        }
        for (size_t o = 0; o < outer; o++)
            add_run(&s->c[c], x + (o * s->channels + c) * inner, inner, 1, squares);
    }
    return OCT_OK;
}

oct_status oct_chan_merge(oct_chan_stats *s, const oct_chan_stats *o, oct_err *err)
{
    if (s->channels != o->channels || s->flags != o->flags)
        return oct_fail(err, OCT_EUSAGE, "%zu channels against %zu, or other moments", s->channels, o->channels);
    for (size_t i = 0; i < s->channels; i++) {
        oct_chan *a = &s->c[i];
        const oct_chan *b = &o->c[i];
        if (b->n && (a->n == 0 || b->min < a->min))
            a->min = b->min;
        if (b->n && (a->n == 0 || b->max > a->max))
            a->max = b->max;
        a->n += b->n;
        oct_xsum_merge(&a->sum, &b->sum);
        oct_xsum_merge(&a->sum2, &b->sum2);
    }
    return OCT_OK;
}

double oct_chan_mean(const oct_chan *c)
{
    return c->n ? oct_xsum_value(&c->sum) / (double)c->n : 0;
}

double oct_chan_variance(const oct_chan *c)
{
    if (c->n == 0)
        return 0;
    double mean = oct_chan_mean(c), v = oct_xsum_value(&c->sum2) / (double)c->n - mean * mean;
    return v > 0 ? v : 0;
}

oct_status oct_channel_ranges(const float *w, size_t outer, size_t channels, size_t inner, float *lo, float *hi,
                              oct_err *err)
{
    size_t n = outer * channels * inner;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(w[i]))
            return oct_fail(err, OCT_ENUMERIC, "weight %zu is %s", i, isnan(w[i]) ? "NaN" : "infinite");
    memset(lo, 0, channels * sizeof *lo);
    memset(hi, 0, channels * sizeof *hi);
    for (size_t o = 0, i = 0; o < outer; o++)
        for (size_t c = 0; c < channels; c++)
            for (size_t k = 0; k < inner; k++, i++) {
                lo[c] = w[i] < lo[c] ? w[i] : lo[c];
                hi[c] = w[i] > hi[c] ? w[i] : hi[c];
            }
    return OCT_OK;
}

oct_status oct_channel_absmax(const float *w, size_t outer, size_t channels, size_t inner, float *absmax,
                              oct_err *err)
{
    size_t n = outer * channels * inner;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(w[i]))
            return oct_fail(err, OCT_ENUMERIC, "weight %zu is %s", i, isnan(w[i]) ? "NaN" : "infinite");
    memset(absmax, 0, channels * sizeof *absmax);
    for (size_t o = 0, i = 0; o < outer; o++)
        for (size_t c = 0; c < channels; c++)
            for (size_t k = 0; k < inner; k++, i++)
                absmax[c] = fabsf(w[i]) > absmax[c] ? fabsf(w[i]) : absmax[c];
    return OCT_OK;
}
