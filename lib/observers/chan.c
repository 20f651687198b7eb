/* lib/observers/chan.c -- per-channel range and exact sums. */
#include "observers/chan.h"

#include "base/mem.h"
#include "kernels/bins.h"
#include "kernels/columns.h"

#include <math.h>
#include <string.h>

oct_status oct_chan_init(oct_chan_stats *s, size_t channels, oct_err *err)
{
    *s = (oct_chan_stats){ .channels = channels };
    s->c = oct_calloc(channels, sizeof *s->c);
    return s->c ? OCT_OK : oct_nomem(err);
}

void oct_chan_free(oct_chan_stats *s)
{
    oct_free(s->c);
    *s = (oct_chan_stats){ 0 };
}

static void add_slow(oct_chan *c, float x)
{
    if (isinf(x))
        return;
    if (c->n == 0 || x < c->min)
        c->min = x + 0.0f;
    if (c->n == 0 || x > c->max)
        c->max = x + 0.0f;
    c->n++;
    oct_xsum_add(&c->sum, x);
}

static void take_column(oct_chan *to, const oct_columns *c, size_t k, size_t rows)
{
    if (to->n == 0 || c->min[k] < to->min)
        to->min = c->min[k] + 0.0f;
    if (to->n == 0 || c->max[k] > to->max)
        to->max = c->max[k] + 0.0f;
    to->n += rows;
    oct_xsum_add(&to->sum, c->sum[0][k]);
    oct_xsum_add(&to->sum, c->sum[1][k]);
}

/* Columns from .. OCT_COLUMNS - 1 of at most OCT_COLUMN_ROWS rows; `step`: 1 when each is a channel, 0 when all are the same. */
static void add_columns(oct_chan *to, size_t step, const float *x, size_t rows, size_t stride, size_t from)
{
    oct_columns c;
    oct_columns_f32(x, rows, stride, &c);
    for (size_t k = from; k < OCT_COLUMNS; k++) {
        if (!c.inexact) {
            take_column(to + k * step, &c, k, rows);
            continue;
        }
        for (size_t i = 0; i < rows; i++)
            add_slow(to + k * step, x[i * stride + k]);
    }
}

/* x f32[rows][channels]: as many rows at a time as stay in a cache while all channels are visited. */
static void add_nhwc(oct_chan_stats *s, const float *x, size_t rows)
{
    const size_t n = s->channels;
    size_t block = 65536 / n;
    block = block < 256 ? 256 : block > OCT_COLUMN_ROWS ? OCT_COLUMN_ROWS : block;
    for (size_t i = 0; n < OCT_COLUMNS && i < rows * n; i++)
        add_slow(&s->c[i % n], x[i]);
    if (n < OCT_COLUMNS)
        return;
    for (size_t at = 0; at < rows; at += block)
        for (size_t c = 0; c < n; c += OCT_COLUMNS) {
            /* The last columns overlap with those before. */
            const size_t begin = c + OCT_COLUMNS <= n ? c : n - OCT_COLUMNS;
            add_columns(s->c + begin, 1, x + at * n + begin, rows - at < block ? rows - at : block, n, c - begin);
        }
}

/* x f32[n], all of one channel. */
static void add_run(oct_chan *c, const float *x, size_t n)
{
    const size_t rows = n / OCT_COLUMNS;
    for (size_t at = 0; at < rows; at += OCT_COLUMN_ROWS)
        add_columns(c, 0, x + at * OCT_COLUMNS, rows - at < OCT_COLUMN_ROWS ? rows - at : OCT_COLUMN_ROWS, OCT_COLUMNS, 0);
    for (size_t i = rows * OCT_COLUMNS; i < n; i++)
        add_slow(c, x[i]);
}

oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t inner, oct_err *err)
{
    size_t n;
    if (!oct_mul_size(outer, inner, &n) || !oct_mul_size(n, s->channels, &n))
        return oct_fail(err, OCT_EINTERNAL, "the size of the values overflows");
    oct_scan seen = { 0 };
    oct_scan_f32(x, n, 0, &seen);
    for (size_t i = 0; seen.nan && i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
    if (n == 0)
        return OCT_OK;
    if (inner == 1) {
        add_nhwc(s, x, outer);
        return OCT_OK;
    }
    for (size_t o = 0; o < outer; o++)
        for (size_t c = 0; c < s->channels; c++)
            add_run(&s->c[c], x + (o * s->channels + c) * inner, inner);
    return OCT_OK;
}

oct_status oct_chan_merge(oct_chan_stats *s, const oct_chan_stats *o, oct_err *err)
{
    if (s->channels != o->channels)
        return oct_fail(err, OCT_EUSAGE, "%zu channels against %zu", s->channels, o->channels);
    for (size_t i = 0; i < s->channels; i++) {
        oct_chan *a = &s->c[i];
        const oct_chan *b = &o->c[i];
        if (b->n && (a->n == 0 || b->min < a->min))
            a->min = b->min;
        if (b->n && (a->n == 0 || b->max > a->max))
            a->max = b->max;
        a->n += b->n;
        oct_xsum_merge(&a->sum, &b->sum);
    }
    return OCT_OK;
}

double oct_chan_mean(const oct_chan *c)
{
    return c->n ? oct_xsum_value(&c->sum) / (double)c->n : 0;
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
