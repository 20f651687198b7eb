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

/* Sums of doubles in levels: level l takes the multiples of a power of two that remain, 39 bits each, so that a
 * block of 8192 values adds up exactly. What is left after the last level means that the block is not exact.
 * Two columns at a time: channels, or consecutive values of one. */
#define LEVELS 3
#define BLOCK 8192
#define LANES 2

typedef double v2d __attribute__((vector_size(16)));
typedef int64_t v2i __attribute__((vector_size(16)));

typedef struct split {
    v2d magic[LEVELS]; /* adding and subtracting 1.5 * 2^(52 + k) rounds to multiples of 2^k */
    v2d sum[LEVELS];
    v2i left;
} split;

/* For |x| <= 2^top. */
static void split_begin(split *s, const int top[LANES], int factor)
{
    memset(s, 0, sizeof *s);
    for (int l = 0; l < LEVELS; l++)
        for (int k = 0; k < LANES; k++)
            s->magic[l][k] = ldexp(1.5, 52 + factor * top[k] - 39 * (l + 1));
}

typedef struct columns {
    const float *x;
    size_t rows, step; /* values of a column are `step` apart */
    size_t lanes;      /* 1 or 2 */
    float min[LANES], max[LANES];
} columns;

static void find_extent(columns *c)
{
    const size_t second = c->lanes - 1; /* a single column stands for both */
    float lo0 = c->x[0], hi0 = lo0, lo1 = c->x[second], hi1 = lo1;
    for (size_t i = 1; i < c->rows; i++) {
        float v = c->x[i * c->step], w = c->x[i * c->step + second];
        lo0 = v < lo0 ? v : lo0;
        hi0 = v > hi0 ? v : hi0;
        lo1 = w < lo1 ? w : lo1;
        hi1 = w > hi1 ? w : hi1;
    }
    memcpy(c->min, (float[]){ lo0, lo1 }, sizeof c->min);
    memcpy(c->max, (float[]){ hi0, hi1 }, sizeof c->max);
}

/* Two levels hold values down to 2^-54 of the largest. */
static void sum_values(const columns *c, split *s)
{
    const size_t second = c->lanes - 1;
    const v2d m0 = s->magic[0], m1 = s->magic[1], zero = { 0, 0 };
    v2d s0 = zero, s1 = zero;
    v2i left = { 0, 0 };
    for (size_t i = 0; i < c->rows; i++) {
        v2d x = { c->x[i * c->step], c->x[i * c->step + second] };
        v2d q0 = (x + m0) - m0;
        x -= q0;
        v2d q1 = (x + m1) - m1;
        s0 += q0;
        s1 += q1;
        left |= (v2i)(x != q1);
    }
    s->sum[0] = s0;
    s->sum[1] = s1;
    s->left = left;
}

/* Squares have twice the bits: the third level brings them down to 2^-35. */
static void sum_squares(const columns *c, split *s)
{
    const size_t second = c->lanes - 1;
    const v2d m0 = s->magic[0], m1 = s->magic[1], m2 = s->magic[2], zero = { 0, 0 };
    v2d s0 = zero, s1 = zero, s2 = zero;
    v2i left = { 0, 0 };
    for (size_t i = 0; i < c->rows; i++) {
        v2d x = { c->x[i * c->step], c->x[i * c->step + second] };
        x *= x;
        v2d q0 = (x + m0) - m0;
        x -= q0;
        v2d q1 = (x + m1) - m1;
        x -= q1;
        v2d q2 = (x + m2) - m2;
        s0 += q0;
        s1 += q1;
        s2 += q2;
        left |= (v2i)(x != q2);
    }
    s->sum[0] = s0;
    s->sum[1] = s1;
    s->sum[2] = s2;
    s->left = left;
}

static void take_sums(oct_xsum *to, const split *s, size_t k)
{
    for (int l = 0; l < LEVELS; l++)
        oct_xsum_add(to, s->sum[l][k]);
}

/* One column into its channel. */
static void take_column(oct_chan *to, const columns *c, size_t k, const split *a, const split *b, bool squares)
{
    bool exact = a->left[k] == 0 && b->left[k] == 0;
    if (!exact || isinf(c->min[k]) || isinf(c->max[k])) {
        for (size_t i = 0; i < c->rows; i++)
            add_slow(to, c->x[i * c->step + k], squares);
        return;
    }
    if (to->n == 0 || c->min[k] < to->min)
        to->min = c->min[k] + 0.0f;
    if (to->n == 0 || c->max[k] > to->max)
        to->max = c->max[k] + 0.0f;
    to->n += c->rows;
    take_sums(&to->sum, a, k);
    if (squares)
        take_sums(&to->sum2, b, k);
}

/* At most BLOCK rows. stride: 1 when each column is a channel, 0 when all are the same one. */
static void add_columns(oct_chan *to, size_t stride, columns c, bool squares)
{
    split a, b;
    int top[LANES];
    find_extent(&c);
    for (int k = 0; k < LANES; k++) {
        float peak = -c.min[k] > c.max[k] ? -c.min[k] : c.max[k];
        top[k] = 0;
        if (!isinf(peak))
            frexpf(peak, &top[k]);
    }
    split_begin(&a, top, 1);
    split_begin(&b, top, 2);
    sum_values(&c, &a);
    if (squares)
        sum_squares(&c, &b);
    for (size_t k = 0; k < c.lanes; k++)
        take_column(to + k * stride, &c, k, &a, &b, squares);
}

/* x f32[rows][channels]: as many rows at a time as stay in a cache while all channels are visited. */
static void add_nhwc(oct_chan_stats *s, const float *x, size_t rows, bool squares)
{
    size_t block = 65536 / s->channels;
    block = block < 256 ? 256 : block > BLOCK ? BLOCK : block;
    for (size_t at = 0; at < rows; at += block)
        for (size_t c = 0; c < s->channels; c += LANES) {
            size_t lanes = s->channels - c < LANES ? s->channels - c : LANES;
            size_t n = rows - at < block ? rows - at : block;
            columns col = { .x = x + at * s->channels + c, .rows = n, .step = s->channels, .lanes = lanes };
            add_columns(s->c + c, 1, col, squares);
        }
}

/* x f32[n], all of one channel. */
static void add_run(oct_chan *c, const float *x, size_t n, bool squares)
{
    size_t rows = n / LANES;
    for (size_t at = 0; at < rows; at += BLOCK) {
        columns col = { .x = x + at * LANES, .rows = rows - at < BLOCK ? rows - at : BLOCK, .step = LANES, .lanes = LANES };
        add_columns(c, 0, col, squares);
    }
    for (size_t i = rows * LANES; i < n; i++)
        add_slow(c, x[i], squares);
}

oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t inner, oct_err *err)
{
    size_t n;
    if (!oct_mul_size(outer, inner, &n) || !oct_mul_size(n, s->channels, &n))
        return oct_fail(err, OCT_EINTERNAL, "the size of the values overflows");
    int nan = 0;
    for (size_t i = 0; i < n; i++)
        nan |= x[i] != x[i];
    for (size_t i = 0; nan && i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
    if (n == 0)
        return OCT_OK;
    bool squares = s->flags & OCT_CHAN_SQUARES;
    if (inner == 1) {
        add_nhwc(s, x, outer, squares);
        return OCT_OK;
    }
    for (size_t o = 0; o < outer; o++)
        for (size_t c = 0; c < s->channels; c++)
            add_run(&s->c[c], x + (o * s->channels + c) * inner, inner, squares);
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
