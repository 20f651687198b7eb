/* lib/observers/view.c -- cumulative moments over the histogram, and the cost of quantization parameters. */
#include "observers/view.h"

#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <string.h>

float oct_view_f32(double x)
{
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : (float)x;
}

static double bin_edge(uint32_t e, uint32_t i, uint32_t shift)
{
    uint32_t bits = (e << 23) + (i << shift);
    if (bits >= 0x7f800000u)
        return 0x1p128;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* spread: the variance within the bin, which is its width squared, divided by 12. */
static oct_moments spread_moments(double lo, double hi, double spread, double count)
{
    double mid = (lo + hi) / 2;
    return (oct_moments){ count, count * mid, count * (mid * mid + spread) };
}

static oct_moments bin_moments(double lo, double hi, double count)
{
    double w = hi - lo;
    return spread_moments(lo, hi, w * w / 12, count);
}

static oct_moments plus(oct_moments a, oct_moments b)
{
    return (oct_moments){ a.n + b.n, a.s1 + b.s1, a.s2 + b.s2 };
}

static oct_moments minus(oct_moments a, oct_moments b)
{
    return (oct_moments){ a.n - b.n, a.s1 - b.s1, a.s2 - b.s2 };
}

/* Sets the exact peak of a side, unless a mask-like value hides it. */
static void set_peak(oct_view *v, int sign)
{
    const oct_stats *s = v->stats;
    double p = sign ? -(double)s->min : (double)s->max;
    if (p > 0 && p < v->bound) {
        v->side[sign].peak = p;
        v->side[sign].peak_count = (double)(sign ? s->min_count : s->max_count);
    }
}

/* Adds the bins of an octave: their cumulative moments follow sum[0]. *top: the end of the last bin that is not
 * empty. */
static void add_octave(const oct_view *v, const oct_side *d, uint32_t e, oct_octave o, oct_moments *sum, double *top)
{
    const uint32_t n = 1u << (23 - o.shift);
    const double begin = bin_edge(e, 0, o.shift), w = bin_edge(e, 1, o.shift) - begin, spread = w * w / 12;
    for (uint32_t i = 0; i < n; i++) {
        const double lo = begin + i * w, hi = lo + w; /* exact, because 24 bits suffice */
        double c = lo < v->bound ? (double)oct_stats_count(v->stats, o.off + i) : 0;
        *top = c > 0 ? hi : *top;
        if (d->peak >= lo && d->peak < hi)
            c -= d->peak_count;
        sum[i + 1] = c == 0 ? sum[i] : plus(sum[i], spread_moments(lo, hi, spread, c));
    }
}

static oct_status add_side(oct_view *v, int sign, oct_err *err)
{
    const oct_stats *s = v->stats;
    oct_side *d = &v->side[sign];
    const oct_octave *octave = s->octave + (sign ? 256 : 0);
    const bool *used = s->used + (sign ? 256 : 0);
    d->first = octave[0].off;
    size_t n = octave[255].off - d->first;
    if (!sign)
        n = s->octave[256].off;
    d->sum = oct_alloc((n + 1) * sizeof *d->sum);
    if (!d->sum)
        return oct_nomem(err);
    d->sum[0] = (oct_moments){ 0 };
    set_peak(v, sign);
    double top = 0;
    for (uint32_t e = 0; e < 255; e++)
        if (used[e])
            add_octave(v, d, e, octave[e], d->sum + (octave[e].off - d->first), &top);
    if (d->peak == 0)
        d->peak = top;
    d->all = d->sum[n];
    v->count += d->all.n + d->peak_count;
    return OCT_OK;
}

oct_status oct_view_init(oct_view *v, const oct_stats *s, oct_err *err)
{
    memset(v, 0, sizeof *v);
    if (oct_stats_finite(s) == 0)
        return oct_fail(err, OCT_ENUMERIC, "no finite value was seen");
    v->stats = s;
    v->bound = oct_stats_masks(s, &v->excluded);
    v->excluded += s->inf[0] + s->inf[1];
    v->count = (double)s->zeros;
    for (int sign = 0; sign < 2; sign++) {
        oct_status st = add_side(v, sign, err);
        if (st != OCT_OK) {
            oct_view_free(v);
            return st;
        }
    }
    return OCT_OK;
}

void oct_view_free(oct_view *v)
{
    oct_free(v->side[0].sum);
    oct_free(v->side[1].sum);
    v->side[0].sum = v->side[1].sum = NULL;
}

oct_range oct_view_range(const oct_view *v)
{
    return (oct_range){ v->side[1].peak > 0 ? oct_view_f32(-v->side[1].peak) : 0, oct_view_f32(v->side[0].peak) };
}

oct_moments oct_view_below(const oct_view *v, int side, double x)
{
    const oct_side *d = &v->side[side];
    if (!(x > 0))
        return (oct_moments){ 0 };
    if (x >= 0x1p128)
        return d->all;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023 + 127;
    uint32_t mantissa = (uint32_t)(bits >> 29) & 0x7fffff;
    if (e <= 0) { /* float32's subnormals: evenly spaced by 2^-149 */
        mantissa = (uint32_t)(x * 0x1p149);
        e = 0;
    }
    oct_octave o = v->stats->octave[(side ? 256 : 0) + e];
    uint32_t at = o.off - d->first;
    if (!v->stats->used[(side ? 256 : 0) + e])
        return d->sum[at];
    uint32_t i = mantissa >> o.shift;
    double lo = bin_edge((uint32_t)e, i, o.shift), hi = bin_edge((uint32_t)e, i + 1, o.shift);
    oct_moments part = minus(d->sum[at + i + 1], d->sum[at + i]);
    return plus(d->sum[at + i], bin_moments(lo, x, part.n * ((x - lo) / (hi - lo))));
}

/* The sum of (x - c)^2, from the moments of x. */
static double spread_around(oct_moments m, double c)
{
    double e = m.s2 - 2 * c * m.s1 + c * c * m.n;
    return e > 0 ? e : 0;
}

/* The values in [(k - 1/2) s, (k + 1/2) s) are rounded to k. The last quantized value also takes all values beyond. */
static double side_error(const oct_view *v, int side, double s, int32_t qvals)
{
    const oct_side *d = &v->side[side];
    if (d->peak == 0)
        return 0;
    double sum = 0;
    oct_moments before = { 0 };
    for (int32_t k = 0; k < qvals && (k - 0.5) * s <= d->peak; k++) {
        oct_moments to = oct_view_below(v, side, (k + 0.5) * s);
        if (to.n > before.n)
            sum += spread_around(minus(to, before), k * s);
        before = to;
    }
    sum += d->all.n > before.n ? spread_around(minus(d->all, before), qvals * s) : 0;
    double qval = rint(d->peak / s);
    double off = d->peak - (qval < qvals ? qval : qvals) * s;
    return sum + d->peak_count * (off * off);
}

double oct_view_error(const oct_view *v, oct_qparams q, oct_qrange g)
{
    return side_error(v, 0, q.scale, g.qmax - q.zero) + side_error(v, 1, q.scale, q.zero - g.qmin);
}

double oct_log(double x)
{
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    double f = (m - 1) / (m + 1), f2 = f * f, t = 0;
    for (int k = 23; k >= 3; k -= 2) /* 2 atanh(f); |f| < 0.172 */
        t = (t + 1.0 / k) * f2;
    return e * 0x1.62e42fefa39efp-1 + 2 * (f + f * t);
}
