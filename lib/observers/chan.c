/* lib/observers/chan.c -- per-channel range and exact sums. */
#include "observers/chan.h"

#include "base/mem.h"
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

/* Returns false on NaN. */
static bool add_slow(oct_chan *c, float x)
{
    if (isnan(x))
        return false;
    if (isinf(x))
        return true;
    if (c->n == 0 || x < c->min)
        c->min = x + 0.0f;
    if (c->n == 0 || x > c->max)
        c->max = x + 0.0f;
    c->n++;
    oct_xsum_add(&c->sum, x);
    return true;
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

/* Adds columns from .. OCT_COLUMNS - 1 of at most OCT_COLUMN_ROWS rows. next: 1 if each column is a channel of its own,
 * 0 if all belong to one. False: there is a NaN. */
static bool add_columns(oct_chan *to, size_t next, const float *x, size_t rows, size_t stride, size_t from)
{
    oct_columns c;
    oct_columns_f32(x, rows, stride, &c);
    for (size_t k = from; k < OCT_COLUMNS; k++) {
        if (!c.inexact)
            take_column(to + k * next, &c, k, rows);
        for (size_t i = 0; c.inexact && i < rows; i++)
            if (!add_slow(to + k * next, x[i * stride + k]))
                return false;
    }
    return true;
}

/* Adds x f32[rows][channels], with rows `stride` apart. It takes as many rows at a time as stay in the cache while all
 * channels are visited. */
static bool add_nhwc(oct_chan_stats *s, const float *x, size_t rows, size_t stride)
{
    const size_t n = s->channels;
    size_t block = 65536 / n;
    block = block < 256 ? 256 : block > OCT_COLUMN_ROWS ? OCT_COLUMN_ROWS : block;
    if (n < OCT_COLUMNS) {
        for (size_t i = 0; i < rows * n; i++)
            if (!add_slow(&s->c[i % n], x[i / n * stride + i % n]))
                return false;
        return true;
    }
    for (size_t at = 0; at < rows; at += block)
        for (size_t c = 0; c < n; c += OCT_COLUMNS) {
            /* The last group of columns overlaps with the one before it. */
            const size_t begin = c + OCT_COLUMNS <= n ? c : n - OCT_COLUMNS,
                         some = rows - at < block ? rows - at : block;
            if (!add_columns(s->c + begin, 1, x + at * stride + begin, some, stride, c - begin))
                return false;
        }
    return true;
}

/* Adds x f32[n], which is all of one channel. */
static bool add_run(oct_chan *c, const float *x, size_t n)
{
    const size_t rows = n / OCT_COLUMNS;
    bool ok = true;
    for (size_t at = 0; ok && at < rows; at += OCT_COLUMN_ROWS)
        ok = add_columns(c, 0, x + at * OCT_COLUMNS, rows - at < OCT_COLUMN_ROWS ? rows - at : OCT_COLUMN_ROWS,
                         OCT_COLUMNS, 0);
    for (size_t i = rows * OCT_COLUMNS; ok && i < n; i++)
        ok = add_slow(c, x[i]);
    return ok;
}

oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t step, size_t inner, oct_err *err)
{
    size_t n;
    if (!oct_mul_size(outer, inner, &n) || !oct_mul_size(n, s->channels, &n))
        return oct_fail(err, OCT_EINTERNAL, "the size of the values overflows");
    if (n == 0)
        return OCT_OK;
    bool ok = true;
    if (inner == 1)
        ok = add_nhwc(s, x, (outer + step - 1) / step, step * s->channels);
    for (size_t o = 0; inner > 1 && o < outer; o += step)
        for (size_t c = 0; ok && c < s->channels; c++)
            ok = add_run(&s->c[c], x + (o * s->channels + c) * inner, inner);
    for (size_t i = 0; !ok && i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
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
