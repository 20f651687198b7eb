/* The values of a tensor in the float model, and which quantized values represent them. */
#include "eval/run/eval_int.h"

#include "kernels/quantize.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 4096, MOST_CHANNELS = 1 << 16 };

/* ---- ranges and quantized values ---- */

oct_eval_range ev_range_of(const oct_quant *q)
{
    oct_eval_range r = { .dtype = q && q->n > 0 ? q->dtype : OCT_UNDEFINED, .scale = NAN, .lo = NAN, .hi = NAN };
    int32_t lo, hi;
    if (!q || q->n != 1 || q->block)
        return r;
    oct_quant_limits(q->dtype, &lo, &hi);
    r.scale = q->scale[0];
    r.zero = q->zp[0];
    r.lo = (float)(lo - r.zero) * q->scale[0];
    r.hi = (float)(hi - r.zero) * q->scale[0];
    return r;
}

static bool has_codes(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16;
}

static void count_codes(ev_codes *c, const void *codes, const float *real, size_t n)
{
    int32_t lo, hi;
    const oct_dtype t = c->range.dtype;
    const float half = (float)c->range.scale / 2, least = (float)c->range.lo - half, most = (float)c->range.hi + half;
    oct_quant_limits(t, &lo, &hi);
    for (size_t i = 0; i < n; i++) {
        const int32_t q = t == OCT_U8    ? ((const uint8_t *)codes)[i]
                          : t == OCT_S8  ? ((const int8_t *)codes)[i]
                          : t == OCT_U16 ? ((const uint16_t *)codes)[i]
                                         : ((const int16_t *)codes)[i];
        const bool beyond = real[i] < least || real[i] > most;
        c->clipped += beyond;
        c->saturated += beyond && (q == lo || q == hi);
        if (hi - lo < EV_CODES)
            c->seen[q - lo] = true;
    }
}

void ev_codes_add(ev_codes *c, const float *real, const float *here, size_t n)
{
    uint16_t codes[CHUNK];
    if (!has_codes(c->range.dtype) || isnan(c->range.scale))
        return;
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t some = n - at < CHUNK ? n - at : CHUNK;
        oct_quantize_f32(NULL, c->range.dtype, here + at, some, (float)c->range.scale, c->range.zero, codes);
        count_codes(c, codes, real + at, some);
    }
    c->n += n;
}

double ev_codes_used(const ev_codes *c)
{
    int32_t lo, hi;
    size_t seen = 0;
    if (!c->n)
        return NAN;
    oct_quant_limits(c->range.dtype, &lo, &hi);
    for (int i = 0; i < EV_CODES; i++)
        seen += c->seen[i];
    return hi - lo < EV_CODES ? (double)seen / (hi - lo + 1) : NAN;
}

/* ---- channels ---- */

/* The dimension of the channels: that of pictures if the runtime stores the tensor in that layout, else the last
 * one. */
static int channel_axis(const oct_operand *t)
{
    return t->rank >= 4 || (t->rank == 3 && t->layout == OCT_LAYOUT_CHANNELS_LAST) ? 1 : t->rank - 1;
}

oct_status ev_channels_add(ev_channels *c, oct_arena *a, const oct_operand *t, const float *x, size_t n, oct_err *err)
{
    const int axis = channel_axis(t);
    const int64_t channels = t->rank < 2 ? 0 : t->dims[axis];
    if (!c->lo && channels >= 2 && channels <= MOST_CHANNELS) {
        c->n = channels;
        c->axis = axis;
        if (!(c->lo = oct_arena_alloc(a, (size_t)channels * sizeof *c->lo)) ||
            !(c->hi = oct_arena_alloc(a, (size_t)channels * sizeof *c->hi)))
            return oct_nomem(err);
        for (int64_t i = 0; i < channels; i++) {
            c->lo[i] = INFINITY;
            c->hi[i] = -INFINITY;
        }
    }
    c->unsteady |= channels != c->n;
    if (c->unsteady || !c->lo)
        return OCT_OK;
    const size_t inner = (size_t)oct_product(t->dims + axis + 1, t->rank - axis - 1);
    for (size_t at = 0, ch = 0; inner && at + inner <= n; at += inner, ch = ch + 1 < (size_t)channels ? ch + 1 : 0) {
        float lo = c->lo[ch], hi = c->hi[ch];
        for (size_t i = at; i < at + inner; i++) {
            lo = x[i] < lo ? x[i] : lo;
            hi = x[i] > hi ? x[i] : hi;
        }
        c->lo[ch] = lo;
        c->hi[ch] = hi;
    }
    return OCT_OK;
}

int64_t ev_channels_dead(const ev_channels *real, const ev_channels *here)
{
    int64_t dead = 0;
    for (int64_t i = 0; i < here->n; i++)
        dead += real->lo[i] < real->hi[i] && here->lo[i] == here->hi[i];
    return dead;
}

bool ev_channels_known(const ev_channels *real, const ev_channels *here)
{
    return real->lo && here->lo && !real->unsteady && !here->unsteady && real->n == here->n && real->axis == here->axis;
}

/* ---- histograms ---- */

/* The quantile of a histogram. */
static double quantile(const oct_stats *s, double share)
{
    oct_bin b;
    uint64_t below = 0;
    const double want = share * (double)oct_stats_finite(s);
    for (size_t at = 0; oct_stats_next(s, &at, &b);) {
        below += b.count;
        if ((double)below >= want)
            return (b.lo + b.hi) / 2;
    }
    return s->max;
}

/* The ends of the displayed histogram. It shows all values seen, but at most half the width of the chosen range beyond
 * it, or beyond what all but a thousandth of the values take. */
static void choose_ends(const oct_stats *s, const oct_eval_range *r, oct_eval_histogram *h)
{
    const bool ranged = r->hi > r->lo;
    const double lo = ranged ? r->lo : quantile(s, 0.0005), hi = ranged ? r->hi : quantile(s, 0.9995),
                 more = (hi - lo) / 2;
    h->lo = fmax(h->min, lo - more);
    h->hi = fmin(h->max, hi + more);
    if (!(h->lo < h->hi)) {
        h->lo = h->min;
        h->hi = h->max;
    }
}

void ev_histogram_of(const oct_stats *s, const oct_eval_range *r, oct_eval_histogram *h)
{
    oct_bin b;
    *h = (oct_eval_histogram){ .n = oct_stats_finite(s) };
    if (!h->n)
        return;
    h->min = s->min;
    h->max = s->max;
    choose_ends(s, r, h);
    const double width = (h->hi - h->lo) / OCT_LAYER_BINS;
    for (size_t at = 0; oct_stats_next(s, &at, &b);) {
        const double x = fmin(fmax((b.lo + b.hi) / 2, h->min), h->max);
        const double place = width > 0 ? floor((x - h->lo) / width) : 0;
        if (x < h->lo)
            h->below += b.count;
        else if (x > h->hi)
            h->above += b.count;
        else
            h->bin[place < OCT_LAYER_BINS ? (size_t)place : OCT_LAYER_BINS - 1] += b.count;
    }
}
