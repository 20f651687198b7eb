/* lib/observers/stats.c -- tensor statistics: feeding and merging. */
#include "observers/stats.h"

#include "base/mem.h"
#include "observers/stats_scan.h"

#include <math.h>
#include <string.h>

/* Counters behind the bins, which take the zeros in turn: adding to one address over and over would wait
 * for the store each time, and half of what follows a ReLU is zero. */
#define ZERO_SLOTS 4

void oct_stats_init(oct_stats *s)
{
    memset(s, 0, sizeof *s);
}

void oct_stats_free(oct_stats *s)
{
    oct_free(s->bins);
    oct_stats_init(s);
}

uint64_t oct_stats_finite(const oct_stats *s)
{
    return s->n - s->inf[0] - s->inf[1];
}

/* Fills the octaves of one sign, largest first, and returns the bins they take. */
static uint32_t place_sign(oct_octave *octave, const bool *used, uint32_t off)
{
    uint32_t sizes[255] = { 0 };
    int rank = 0;
    for (int e = 254; e >= 0; e--) {
        int bits = 13 - rank;
        bits = bits > OCT_STATS_BITS_MAX ? OCT_STATS_BITS_MAX : bits < OCT_STATS_BITS_MIN ? OCT_STATS_BITS_MIN : bits;
        octave[e].shift = 23 - (uint32_t)bits;
        if (used[e]) {
            sizes[e] = 1u << bits;
            rank++;
        }
    }
    for (int e = 0; e < 255; e++) {
        octave[e].off = off;
        off += sizes[e];
    }
    return off;
}

static void fold_octave(uint64_t *to, oct_octave t, const uint64_t *from, oct_octave f)
{
    uint32_t n = 1u << (23 - f.shift), down = t.shift - f.shift;
    for (uint32_t i = 0; i < n; i++)
        to[t.off + (i >> down)] += from[f.off + i];
}

oct_status oct_stats_layout(oct_stats *s, const bool used[512], oct_err *err)
{
    if (s->bins && memcmp(s->used, used, sizeof s->used) == 0)
        return OCT_OK;
    oct_octave octave[512] = { 0 };
    uint32_t n = place_sign(octave, used, 0);
    n = place_sign(octave + 256, used + 256, n);
    octave[255].off = octave[511].off = n; /* nothing is counted there */
    octave[255].shift = octave[511].shift = 23;
    uint64_t *bins = oct_calloc(n + ZERO_SLOTS, sizeof *bins);
    if (!bins)
        return oct_nomem(err);
    for (int o = 0; o < 512; o++)
        if (s->used[o])
            fold_octave(bins, octave[o], s->bins, s->octave[o]);
    oct_free(s->bins);
    s->bins = bins;
    s->n_bins = n;
    memcpy(s->octave, octave, sizeof octave);
    memcpy(s->used, used, sizeof s->used);
    return OCT_OK;
}

static uint32_t float_bits(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return b;
}

/* Which of the 512 combinations of sign and exponent occur. Two tables: neighbours are often alike, and a store waits for
 * the one before it to the same place. */
static void see(const float *x, size_t n, uint8_t seen[512])
{
    uint8_t other[512] = { 0 };
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        seen[float_bits(x[i]) >> 23] = 1;
        other[float_bits(x[i + 1]) >> 23] = 1;
    }
    if (i < n)
        seen[float_bits(x[i]) >> 23] = 1;
    for (int o = 0; o < 512; o++)
        seen[o] |= other[o];
}

static oct_status check_nan(const float *x, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
    return OCT_OK;
}

/* The octaves after x has been counted. Zeros of either sign share an exponent with the subnormals: whether
 * one of those is there takes a second look. */
static void octaves_of(const float *x, size_t n, const uint8_t seen[512], bool used[512])
{
    for (int o = 0; o < 512; o++)
        if (seen[o] && o % 256 != 255 && o % 256 != 0)
            used[o] = true;
    bool any = (seen[0] || seen[256]) && oct_scan_subnormal(x, n);
    for (size_t i = 0; i < n && any; i++) {
        uint32_t b = float_bits(x[i]);
        if ((b & 0x7fffffff) - 1 < 0x7fffff)
            used[b >> 23] = true;
    }
}

typedef struct extent {
    float min, max;
    uint64_t min_count, max_count; /* values that equal them; 0 where they are 0: zeros are counted apart */
    uint64_t inf[2];
    bool any;
} extent;

static extent extent_finite(const float *x, size_t n)
{
    extent e = { .any = true };
    oct_scan_extent(x, n, &e.min, &e.max);
    return e;
}

/* How much is looked at in one go: a block is still in the first cache when it is read again. */
enum { IN_CACHE = 4096 };

static extent extent_any(const float *x, size_t n)
{
    extent e = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (isinf(x[i])) {
            e.inf[x[i] < 0]++;
            continue;
        }
        if (!e.any || x[i] < e.min)
            e.min = x[i];
        if (!e.any || x[i] > e.max)
            e.max = x[i];
        e.any = true;
    }
    e.min += 0.0f;
    e.max += 0.0f;
    return e;
}

/* Joins an extreme value and its count into another. */
static void join_extreme(float *v, uint64_t *count, bool any, float o, uint64_t o_count, bool larger)
{
    if (!any || (larger ? o > *v : o < *v)) {
        *v = o;
        *count = o_count;
    } else if (o == *v) {
        *count += o_count;
    }
}

/* Adds a part of a sample to its extent. */
static void extend(extent *e, const float *x, size_t n, extent part)
{
    e->inf[0] += part.inf[0];
    e->inf[1] += part.inf[1];
    if (!part.any)
        return;
    if (!e->any || part.min <= e->min)
        join_extreme(&e->min, &e->min_count, e->any, part.min, part.min == 0 ? 0 : oct_scan_count(x, n, part.min), false);
    if (!e->any || part.max >= e->max)
        join_extreme(&e->max, &e->max_count, e->any, part.max, part.max == 0 ? 0 : oct_scan_count(x, n, part.max), true);
    e->any = true;
}

static void add_extent(oct_stats *s, size_t n, const extent *e)
{
    bool any = oct_stats_finite(s) > 0;
    s->n += n;
    s->inf[0] += e->inf[0];
    s->inf[1] += e->inf[1];
    if (!e->any)
        return;
    join_extreme(&s->min, &s->min_count, any, e->min, e->min_count, false);
    join_extreme(&s->max, &s->max_count, any, e->max, e->max_count, true);
    s->samples++;
    oct_xsum_add(&s->min_sum, e->min);
    oct_xsum_add(&s->max_sum, e->max);
}

/* Where a value is counted; without a branch, since zeros come at random. */
static inline uint32_t slot_of(const oct_octave *octave, uint32_t zero, float x)
{
    uint32_t b = float_bits(x);
    oct_octave o = octave[b >> 23];
    uint32_t at = o.off + ((b & 0x7fffff) >> o.shift);
    uint32_t z = ((b & 0x7fffffff) - 1) >> 31; /* 1 for a zero */
    return (at & (z - 1)) | (zero & (0 - z));
}

static inline void count_one(uint64_t *bins, const oct_octave *octave, float x)
{
    uint32_t b = float_bits(x);
    oct_octave o = octave[b >> 23];
    bins[o.off + ((b & 0x7fffff) >> o.shift)]++;
}

/* Without subnormals the exponent 0 means zero, and can name a zero slot itself; four tables, so that zeros
 * in a row go to different ones. */
typedef struct counter {
    bool plain;
    oct_octave t[ZERO_SLOTS][512];
} counter;

static void counter_begin(counter *c, const oct_stats *s, size_t n)
{
    c->plain = n >= 4096 && !s->used[0] && !s->used[256];
    for (uint32_t i = 0; c->plain && i < ZERO_SLOTS; i++) {
        memcpy(c->t[i], s->octave, sizeof c->t[i]);
        c->t[i][0] = c->t[i][256] = (oct_octave){ (uint32_t)s->n_bins + i, 23 };
    }
}

static void count_plain(oct_stats *s, const counter *c, const float *x, size_t n)
{
    uint64_t *bins = s->bins;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        count_one(bins, c->t[0], x[i]);
        count_one(bins, c->t[1], x[i + 1]);
        count_one(bins, c->t[2], x[i + 2]);
        count_one(bins, c->t[3], x[i + 3]);
    }
    for (; i < n; i++)
        count_one(bins, c->t[0], x[i]);
}

static void count_bins(oct_stats *s, const counter *c, const float *x, size_t n)
{
    if (c->plain) {
        count_plain(s, c, x, n);
        return;
    }
    uint32_t zero = (uint32_t)s->n_bins;
    for (size_t i = 0; i < n; i++)
        s->bins[slot_of(s->octave, zero + i % ZERO_SLOTS, x[i])]++;
}

static void count_sample(oct_stats *s, const counter *c, const float *x, size_t n, bool special)
{
    extent e = { 0 };
    for (size_t at = 0; at < n; at += IN_CACHE) {
        size_t part = n - at < IN_CACHE ? n - at : IN_CACHE;
        extend(&e, x + at, part, special ? extent_any(x + at, part) : extent_finite(x + at, part));
        count_bins(s, c, x + at, part);
    }
    add_extent(s, n, &e);
}

/* Infinities fell on the first zero slot (their octave points there); the rest are zeros. */
static void take_zeros(oct_stats *s, uint64_t infinities)
{
    uint64_t c = 0;
    for (int i = 0; i < ZERO_SLOTS; i++) {
        c += s->bins[s->n_bins + i];
        s->bins[s->n_bins + i] = 0;
    }
    s->zeros += c - infinities;
    if (oct_stats_finite(s) > 0) {
        s->min_count = s->min == 0 ? s->zeros : s->min_count;
        s->max_count = s->max == 0 ? s->zeros : s->max_count;
    }
}

oct_status oct_stats_update_batch(oct_stats *s, const float *x, size_t samples, size_t n, oct_err *err)
{
    size_t total;
    if (!oct_mul_size(samples, n, &total))
        return oct_fail(err, OCT_EINTERNAL, "%zu samples of %zu values overflow", samples, n);
    if (total == 0)
        return OCT_OK;
    uint8_t seen[512] = { 0 };
    see(x, total, seen);
    bool special = seen[255] || seen[511];
    if (special)
        OCT_TRY(check_nan(x, total, err));
    bool used[512];
    memcpy(used, s->used, sizeof used);
    octaves_of(x, total, seen, used);
    OCT_TRY(oct_stats_layout(s, used, err));
    uint64_t before = s->inf[0] + s->inf[1];
    counter c;
    counter_begin(&c, s, total);
    for (size_t i = 0; i < samples; i++)
        count_sample(s, &c, x + i * n, n, special);
    take_zeros(s, s->inf[0] + s->inf[1] - before);
    return OCT_OK;
}

oct_status oct_stats_update(oct_stats *s, const float *x, size_t n, oct_err *err)
{
    return oct_stats_update_batch(s, x, 1, n, err);
}

oct_status oct_stats_merge(oct_stats *s, const oct_stats *o, oct_err *err)
{
    bool used[512];
    for (int i = 0; i < 512; i++)
        used[i] = s->used[i] || o->used[i];
    if (o->bins)
        OCT_TRY(oct_stats_layout(s, used, err));
    for (int i = 0; i < 512; i++)
        if (o->used[i])
            fold_octave(s->bins, s->octave[i], o->bins, o->octave[i]);
    if (oct_stats_finite(o) > 0) {
        bool any = oct_stats_finite(s) > 0;
        join_extreme(&s->min, &s->min_count, any, o->min, o->min_count, false);
        join_extreme(&s->max, &s->max_count, any, o->max, o->max_count, true);
    }
    s->n += o->n;
    s->zeros += o->zeros;
    s->inf[0] += o->inf[0];
    s->inf[1] += o->inf[1];
    s->samples += o->samples;
    oct_xsum_merge(&s->min_sum, &o->min_sum);
    oct_xsum_merge(&s->max_sum, &o->max_sum);
    return OCT_OK;
}

bool oct_stats_equal(const oct_stats *a, const oct_stats *b)
{
    return a->n == b->n && a->zeros == b->zeros && memcmp(a->inf, b->inf, sizeof a->inf) == 0 && a->min == b->min &&
           a->max == b->max && a->min_count == b->min_count && a->max_count == b->max_count &&
           a->samples == b->samples && memcmp(&a->min_sum, &b->min_sum, sizeof a->min_sum) == 0 &&
           memcmp(&a->max_sum, &b->max_sum, sizeof a->max_sum) == 0 && memcmp(a->used, b->used, sizeof a->used) == 0 &&
           a->n_bins == b->n_bins &&
           (a->n_bins == 0 || memcmp(a->bins, b->bins, a->n_bins * sizeof *a->bins) == 0);
}
