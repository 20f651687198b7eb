/* lib/observers/stats_walk.c -- reads the histogram: bins in the order of values, and mask-like values. */
#include "observers/stats.h"

#include <math.h>
#include <string.h>

/* The magnitude whose float32 has these bits; the one after the largest is 2^128. */
static double magnitude_of(uint32_t bits)
{
    if (bits >= 0x7f800000u)
        return 0x1p128;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static oct_bin bin_at(const oct_stats *s, int sign, uint32_t e, uint32_t i)
{
    oct_octave o = s->octave[(sign ? 256 : 0) + e];
    uint32_t bits = (e << 23) + (i << o.shift);
    double lo = magnitude_of(bits), hi = magnitude_of(bits + (1u << o.shift));
    uint64_t c = oct_stats_count(s, o.off + i);
    return sign ? (oct_bin){ -hi, -lo, c } : (oct_bin){ lo, hi, c };
}

/* Bins of one sign lie in increasing order of magnitude, the positive ones first. */
static uint32_t sign_begin(const oct_stats *s, int sign)
{
    return s->octave[sign ? 256 : 0].off;
}

static oct_bin bin_of(const oct_stats *s, uint32_t at)
{
    int sign = at >= sign_begin(s, 1);
    int base = sign ? 256 : 0;
    int lo = 0, hi = 254; /* the last octave that begins at or before `at`; of several that begin there, this is the one
                             in use */
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (s->octave[base + mid].off <= at)
            lo = mid;
        else
            hi = mid - 1;
    }
    return bin_at(s, sign, (uint32_t)lo, at - s->octave[base + lo].off);
}

/* Without bins: the first place from i on where oct_stats_next finds one that is not empty, or n_neg. */
static size_t pass_empty(const oct_stats *s, size_t i, size_t n_neg)
{
    const size_t neg = s->n_bins - n_neg;
    if (i > n_neg) {
        const size_t k = oct_stats_few_from(s, i - n_neg - 1);
        return k < s->n_few && s->few[k].bin < neg ? s->few[k].bin + n_neg + 1 : s->n_bins + 1;
    }
    const size_t k = oct_stats_few_from(s, s->n_bins - i); /* the one before it is sought */
    return i < n_neg && k > 0 && s->few[k - 1].bin >= neg ? s->n_bins - 1 - s->few[k - 1].bin : n_neg;
}

bool oct_stats_next(const oct_stats *s, size_t *at, oct_bin *bin)
{
    const size_t neg = sign_begin(s, 1), n_neg = s->n_bins - neg;
    /* The order: the negative bins backwards, zero, the positive bins. */
    for (; *at < s->n_bins + 1; ++*at) {
        if (!s->bins)
            *at = pass_empty(s, *at, n_neg);
        const size_t i = *at;
        if (i > s->n_bins)
            break;
        if (i == n_neg) {
            if (s->zeros == 0)
                continue;
            *bin = (oct_bin){ 0, 0, s->zeros };
        } else {
            size_t k = i < n_neg ? s->n_bins - 1 - i : i - n_neg - 1;
            if (oct_stats_count(s, k) == 0)
                continue;
            *bin = bin_of(s, (uint32_t)k);
        }
        ++*at;
        return true;
    }
    return false;
}

static uint64_t octave_count(const oct_stats *s, int o)
{
    uint64_t c = 0;
    if (s->used[o])
        for (uint32_t i = 0; i < 1u << (23 - s->octave[o].shift); i++)
            c += oct_stats_count(s, s->octave[o].off + i);
    return c;
}

/* Walks down from the largest exponent as long as everything above could be masks, and cuts at the lowest gap. If
 * exponents differ by 5, values differ at least by a factor of 16. */
double oct_stats_masks(const oct_stats *s, uint64_t *excluded)
{
    const int gap = 5, least_pos = 127 + 24, least_neg = 127 + 12;
    int above = -1, cut = -1;
    bool allowed = true;
    for (int e = 254; e >= 0 && allowed; e--) {
        if (!s->used[e] && !s->used[256 + e])
            continue;
        if (above - e >= gap)
            cut = above;
        allowed = (!s->used[e] || e >= least_pos) && (!s->used[256 + e] || e >= least_neg);
        above = e;
    }
    uint64_t n = 0;
    for (int e = cut; cut >= 0 && e < 255; e++)
        n += octave_count(s, e) + octave_count(s, 256 + e);
    if (excluded)
        *excluded = n;
    return cut < 0 ? INFINITY : ldexp(1.0, cut - 127);
}
