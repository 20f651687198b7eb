/* lib/observers/stats.c -- tensor statistics: adding values, and merging. */
#include "observers/stats.h"

#include "base/mem.h"
#include "kernels/bins.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void oct_stats_init(oct_stats *s)
{
    memset(s, 0, sizeof *s);
}

void oct_stats_free(oct_stats *s)
{
    oct_free(s->few);
    oct_free(s->bins);
    oct_free(s->large);
    oct_stats_init(s);
}

uint64_t oct_stats_finite(const oct_stats *s)
{
    return s->n - s->inf[0] - s->inf[1];
}

/* Lays out the octaves of one sign, ranked from the largest down, from bin `off` on, and returns the bin after the
 * last. */
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

/* Adds octave f of `from` to octave t of `to`, whose bins are at least as large. */
static void fold_narrow(uint32_t *to, oct_octave t, const uint32_t *from, oct_octave f)
{
    uint32_t n = 1u << (23 - f.shift), down = t.shift - f.shift;
    for (uint32_t i = 0; i < n; i++)
        to[t.off + (i >> down)] += from[f.off + i];
}

static void fold_large(uint64_t *to, oct_octave t, const uint64_t *from, oct_octave f)
{
    uint32_t n = 1u << (23 - f.shift), down = t.shift - f.shift;
    for (uint32_t i = 0; i < n; i++)
        to[t.off + (i >> down)] += from[f.off + i];
}

/* The list of `from` in bins that are laid out as `octave` says: to[from->n_few], which may be from->few; how many
 * there are. Bins of both lie in the order of octaves. */
static uint32_t move_few(oct_filled *to, const oct_octave octave[512], const oct_stats *from)
{
    uint32_t n = 0, at = 0;
    for (int o = 0; o < 512 && at < from->n_few; o++) {
        const oct_octave f = from->octave[o];
        const uint32_t end = f.off + (1u << (23 - f.shift));
        for (; from->used[o] && at < from->n_few && from->few[at].bin < end; at++) {
            const oct_filled x = { octave[o].off + ((from->few[at].bin - f.off) >> (octave[o].shift - f.shift)),
                                   from->few[at].count };
            if (n && to[n - 1].bin == x.bin)
                to[n - 1].count += x.count;
            else
                to[n++] = x;
        }
    }
    return n;
}

/* Adds the octaves of `from` to bins that are laid out as `octave` says. */
static void fold(uint32_t *bins, uint64_t *large, const oct_octave octave[512], const oct_stats *from)
{
    oct_filled few[OCT_STATS_FEW];
    for (uint32_t i = 0, n = from->bins ? 0 : move_few(few, octave, from); i < n; i++)
        bins[few[i].bin] += few[i].count;
    for (int o = 0; o < 512 && from->bins; o++) {
        if (!from->used[o])
            continue;
        fold_narrow(bins, octave[o], from->bins, from->octave[o]);
        if (from->large)
            fold_large(large, octave[o], from->large, from->octave[o]);
    }
}

/* The largest octave of a sign; -1: there is none. */
static int top_octave(const bool *used)
{
    int e = 254;
    while (e >= 0 && !used[e])
        e--;
    return e;
}

/* The smallest octave from which on all octaves up to `top` are used. */
static int run_below(const bool *used, int top)
{
    int e = top;
    while (e > 1 && used[e - 1])
        e--;
    return e;
}

static bool any_below(const bool *used, int e)
{
    for (int i = 0; i < e; i++)
        if (used[i])
            return true;
    return false;
}

/* The power of two 2^(e - 127). */
static float power(int e)
{
    return e < 1 ? 0 : ldexpf(1.0f, e - 127);
}

/* Lays the values of a sign on the grid (kernels/bins.h), from octave `known` on, which has a gap below it. False: the
 * grid does not support them, or most of them could lie below that gap. */
static bool lay_sign(const oct_stats *s, int k, oct_quick *q)
{
    enum {
        LINEAR = OCT_GRID_TOP - 3,
        TOP_AT = 4096 + 2048
    }; /* the number of octaves in the linear part; the bin where the largest one begins */
    const bool *used = s->used + 256 * k;
    const oct_octave *octave = s->octave + 256 * k;
    const int top = top_octave(used), known = run_below(used, top);
    q->grid.least[k] = INT32_MAX;
    if (top < 0)
        return true;
    if (top < OCT_GRID_TOP || top > 240 || (top - known + 1 < LINEAR && any_below(used, known)))
        return false;
    const float tiny = power(known);
    memcpy(&q->grid.least[k], &tiny, sizeof tiny);
    q->tiny = tiny > q->tiny ? tiny : q->tiny;
    /* The fine bins are right only if octave `known` has eight bins. */
    oct_bin_lay(&q->grid, k, top, (int32_t)octave[top].off - TOP_AT, (int32_t)octave[known].off - 8 * known);
    (k ? &q->lo : &q->hi)[0] = k ? -power(top + 1) : power(top + 1);
    return true;
}

static oct_quick quick_of(const oct_stats *s)
{
    oct_quick q = { .grid = { .zero = (int32_t)s->n_bins, .small = (int32_t)s->n_bins + OCT_ZERO_BINS } };
    q.ok = s->bins && lay_sign(s, 0, &q) && lay_sign(s, 1, &q) && (q.hi > 0 || q.lo < 0);
    return q;
}

size_t oct_stats_few_from(const oct_stats *s, size_t i)
{
    size_t lo = 0, hi = s->n_few;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (s->few[mid].bin < i)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void oct_stats_set_count(oct_stats *s, size_t i, uint64_t v)
{
    if (s->large) {
        s->large[i] = v;
    } else if (s->bins) {
        s->bins[i] = (uint32_t)v;
    } else if (v) {
        const size_t at = oct_stats_few_from(s, i);
        assert(s->n_few < s->few_room);
        memmove(s->few + at + 1, s->few + at, (s->n_few++ - at) * sizeof *s->few);
        s->few[at] = (oct_filled){ (uint32_t)i, (uint32_t)v };
    }
}

static oct_status grow_few(oct_stats *s, size_t n, oct_err *err)
{
    uint32_t room = s->few_room ? s->few_room : 8;
    while (room < n)
        room *= 2;
    oct_filled *p = oct_realloc(s->few, s->few_room * sizeof *p, room * sizeof *p);
    if (!p)
        return oct_nomem(err);
    s->few = p;
    s->few_room = room;
    return OCT_OK;
}

oct_status oct_stats_layout(oct_stats *s, const bool used[512], size_t more, oct_err *err)
{
    const bool dense = s->bins || more > OCT_STATS_FEW - s->n_few, same = memcmp(s->used, used, sizeof s->used) == 0;
    if (same && s->bins)
        return OCT_OK;
    if (!dense && s->n_few + more > s->few_room)
        OCT_TRY(grow_few(s, s->n_few + more, err));
    if (!dense && same)
        return OCT_OK;
    oct_octave octave[512] = { 0 };
    uint32_t n = place_sign(octave, used, 0);
    n = place_sign(octave + 256, used + 256, n);
    octave[255].off = octave[511].off = n; /* nothing is counted there */
    octave[255].shift = octave[511].shift = 23;
    if (!dense) {
        s->n_few = move_few(s->few, octave, s);
        s->n_bins = n;
        memcpy(s->octave, octave, sizeof octave);
        memcpy(s->used, used, sizeof s->used);
        return OCT_OK;
    }
    /* After the bins come those of zeros, and one for values that are not on the grid (kernels/bins.h). */
    uint32_t *bins = oct_calloc(n + OCT_ZERO_BINS + 1, sizeof *bins);
    uint64_t *large = s->large ? oct_calloc(n + 1, sizeof *large) : NULL;
    if (!bins || (s->large && !large)) {
        oct_free(bins);
        oct_free(large);
        return oct_nomem(err);
    }
    fold(bins, large, octave, s);
    oct_free(s->few);
    oct_free(s->bins);
    oct_free(s->large);
    s->few = NULL;
    s->n_few = s->few_room = 0;
    s->bins = bins;
    s->large = large;
    s->n_bins = n;
    memcpy(s->octave, octave, sizeof octave);
    memcpy(s->used, used, sizeof s->used);
    s->quick = quick_of(s);
    return OCT_OK;
}

static oct_status widen(oct_stats *s, oct_err *err)
{
    OCT_TRY(oct_stats_layout(s, s->used, OCT_STATS_FEW + 1, err));
    if (!s->large && !(s->large = oct_calloc(s->n_bins + 1, sizeof *s->large)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->n_bins; i++) {
        s->large[i] += s->bins[i];
        s->bins[i] = 0;
    }
    s->narrow = 0;
    return OCT_OK;
}

oct_status oct_stats_room(oct_stats *s, uint64_t n, oct_err *err)
{
    if (n > UINT32_MAX - s->narrow)
        OCT_TRY(widen(s, err));
    s->narrow += n <= UINT32_MAX ? n : 0;
    return OCT_OK;
}

static uint32_t float_bits(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return b;
}

/* How many values are looked at in one go: a block of them is still in the first-level cache when it is read again. */
enum { IN_CACHE = 4096 };

/* Marks which of the 512 combinations of sign and exponent occur. There are two tables, because neighbours often have
 * the same exponent, and a store waits for an earlier one to the same place. Zeros have the same exponent as subnormal
 * numbers, so these are looked for separately. */
static void see(const float *x, size_t n, bool used[512])
{
    uint8_t seen[2][512] = { 0 };
    for (size_t i = 0; i < n; i++)
        seen[i % 2][float_bits(x[i]) >> 23] = 1;
    for (int o = 0; o < 512; o++)
        used[o] |= (seen[0][o] | seen[1][o]) && o % 256 != 255 && o % 256 != 0;
    for (size_t i = 0; i < n && (seen[0][0] | seen[0][256] | seen[1][0] | seen[1][256]); i++) {
        uint32_t b = float_bits(x[i]);
        if ((b & 0x7fffffff) - 1 < 0x7fffff)
            used[b >> 23] = true;
    }
}

/* The same for values other than zero with magnitudes below tiny, of which there are usually few. */
static void see_small(const float *x, size_t n, float tiny, bool used[512])
{
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) < tiny && x[i] != 0)
            used[float_bits(x[i]) >> 23] = true;
}

/* What is known about a sample before its values are counted. */
typedef struct extent {
    float min, max;
    uint64_t min_count,
        max_count; /* how many values equal them; 0 for an extreme of 0, because zeros are counted separately */
    uint64_t inf[2];
    bool any;
} extent;

static bool covers(const oct_quick *q, const oct_scan *s)
{
    return q->ok && (s->min >= 0 || s->min > q->lo) && (s->max <= 0 || s->max < q->hi);
}

/* Finds the octaves that n values use, their extremes, and whether there is a NaN. */
static void first_look(const oct_stats *s, const float *x, size_t n, oct_scan *all, bool used[512])
{
    const oct_quick *q = &s->quick;
    *all = (oct_scan){ .min = INFINITY, .max = -INFINITY };
    for (size_t at = 0; at < n; at += IN_CACHE) {
        size_t part = n - at < IN_CACHE ? n - at : IN_CACHE;
        all->small = false;
        oct_scan_f32(x + at, part, q->tiny, all);
        if (q->ok && all->small)
            see_small(x + at, part, q->tiny, used);
    }
    if (!covers(q, all))
        see(x, n, used);
}

static oct_status check_nan(const float *x, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return oct_fail(err, OCT_ENUMERIC, "value %zu is NaN", i);
    return OCT_OK;
}

static uint64_t count_equal(const float *x, size_t n, float v)
{
    uint64_t c = 0;
    for (size_t at = 0; at < n; at += IN_CACHE)
        c += oct_count_equal_f32(x + at, n - at < IN_CACHE ? n - at : IN_CACHE, v);
    return c;
}

/* The extremes of the finite values. -0 becomes 0, because the result must not depend on which of the two came
 * first. */
static extent extent_of(const float *x, size_t n, oct_scan s)
{
    extent e = { 0 };
    if (isinf(s.min) || isinf(s.max)) {
        for (size_t i = 0; i < n; i++)
            if (isinf(x[i]))
                e.inf[x[i] < 0]++;
        s = (oct_scan){ .min = INFINITY, .max = -INFINITY };
        for (size_t i = 0; i < n; i++) {
            s.min = !isinf(x[i]) && x[i] < s.min ? x[i] : s.min;
            s.max = !isinf(x[i]) && x[i] > s.max ? x[i] : s.max;
        }
    }
    e.any = e.inf[0] + e.inf[1] < n;
    e.min = s.min + 0.0f;
    e.max = s.max + 0.0f;
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

/* Adds a sample's extremes. How often they occur matters only if nothing more extreme was seen before. */
static void add_extent(oct_stats *s, const float *x, size_t n, const oct_scan *seen)
{
    extent e = extent_of(x, n, *seen);
    bool any = oct_stats_finite(s) > 0;
    s->n += n;
    s->inf[0] += e.inf[0];
    s->inf[1] += e.inf[1];
    if (!e.any)
        return;
    if (e.min != 0 && (!any || e.min <= s->min))
        e.min_count = count_equal(x, n, e.min);
    if (e.max != 0 && (!any || e.max >= s->max))
        e.max_count = count_equal(x, n, e.max);
    join_extreme(&s->min, &s->min_count, any, e.min, e.min_count, false);
    join_extreme(&s->max, &s->max_count, any, e.max, e.max_count, true);
    s->samples++;
    oct_xsum_add(&s->min_sum, e.min);
    oct_xsum_add(&s->max_sum, e.max);
}

/* The bin of any value; `zero` for zeros. There is no branch, because zeros come at random. */
static inline uint32_t bin_of(const oct_stats *s, uint32_t zero, float x)
{
    uint32_t b = float_bits(x);
    oct_octave o = s->octave[b >> 23];
    uint32_t at = o.off + ((b & 0x7fffff) >> o.shift);
    uint32_t z = ((b & 0x7fffffff) - 1) >> 31; /* 1 for a zero */
    return (at & (z - 1)) | (zero & (0 - z));
}

static void count_any(oct_stats *s, const float *x, size_t n)
{
    uint32_t zero = (uint32_t)s->n_bins;
    for (size_t i = 0; i < n; i++)
        s->bins[bin_of(s, zero + i % OCT_ZERO_BINS, x[i])]++;
}

static int compare_bins(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Joins m entries in order, of which s->few has room, to the list. */
static void join_few(oct_stats *s, const oct_filled *add, uint32_t m)
{
    uint32_t n = s->n_few, both = 0;
    for (uint32_t i = 0, k = 0; i < n && k < m;) {
        const uint32_t a = s->few[i].bin, b = add[k].bin;
        both += a == b;
        i += a <= b;
        k += b <= a;
    }
    uint32_t to = s->n_few = n + m - both;
    while (m > 0) { /* from the end, so that nothing is overwritten */
        if (n > 0 && s->few[n - 1].bin > add[m - 1].bin) {
            s->few[--to] = s->few[--n];
            continue;
        }
        oct_filled x = add[--m];
        if (n > 0 && s->few[n - 1].bin == x.bin)
            x.count += s->few[--n].count;
        s->few[--to] = x;
    }
}

static void count_few(oct_stats *s, const float *x, size_t n)
{
    uint32_t bin[OCT_STATS_FEW], m = 0, k = 0;
    oct_filled few[OCT_STATS_FEW];
    for (size_t i = 0; i < n; i++) {
        bin[m] = bin_of(s, (uint32_t)s->n_bins, x[i]);
        m += bin[m] < s->n_bins;
    }
    s->zeros += n - m;
    qsort(bin, m, sizeof *bin, compare_bins);
    for (uint32_t i = 0; i < m; i++) {
        if (k == 0 || few[k - 1].bin != bin[i])
            few[k++] = (oct_filled){ bin[i], 0 };
        few[k - 1].count++;
    }
    join_few(s, few, k);
}

enum { PART = 1024 };

/* Counts a part by the grid, and its few small values one by one. */
static void count_quick(oct_stats *s, const oct_bin_grid *g, const float *x, size_t n)
{
    int32_t bin[PART];
    uint32_t *bins = s->bins;
    size_t small;
    const size_t n_bin = oct_bin_index_f32(x, n, g, bin, &small);
    size_t counted = 0;
    for (; counted + 4 <= n_bin; counted += 4) {
        bins[bin[counted]]++;
        bins[bin[counted + 1]]++;
        bins[bin[counted + 2]]++;
        bins[bin[counted + 3]]++;
    }
    for (; counted < n_bin; counted++)
        bins[bin[counted]]++;
    for (size_t i = 0; small > 0; i++)
        if (x[i] != 0 && (int32_t)(float_bits(x[i]) & 0x7fffffff) < g->least[signbit(x[i]) != 0]) {
            bins[bin_of(s, 0, x[i])]++;
            small--;
        }
    bins[g->small] = 0;
    s->zeros += n - n_bin;
}

/* Empties the bins of zeros and returns their sum. It includes infinities, whose octaves point to the first of these
 * bins. */
static uint64_t take_zeros(oct_stats *s)
{
    uint64_t c = 0;
    for (int i = 0; i < OCT_ZERO_BINS; i++) {
        c += s->bins[s->n_bins + i];
        s->bins[s->n_bins + i] = 0;
    }
    return c;
}

enum { MOST_AT_ONCE = 1 << 30 }; /* narrow bins can count that many */

/* Counts n values, for which oct_stats_room was called. */
static oct_status count(oct_stats *s, const float *x, size_t n, const oct_scan *seen, uint64_t infinities, oct_err *err)
{
    const bool fast = covers(&s->quick, seen);
    if (!s->bins)
        count_few(s, x, n);
    for (size_t begin = 0; s->bins && begin < n; begin += MOST_AT_ONCE) {
        const size_t end = n - begin < MOST_AT_ONCE ? n : begin + MOST_AT_ONCE;
        if (n > UINT32_MAX)
            OCT_TRY(oct_stats_room(s, end - begin, err)); /* cannot fail, because there are large bins */
        for (size_t at = begin; fast && at < end; at += PART)
            count_quick(s, &s->quick.grid, x + at, end - at < PART ? end - at : PART);
        if (!fast)
            count_any(s, x + begin, end - begin);
        s->zeros += take_zeros(s);
    }
    s->zeros -= infinities;
    if (oct_stats_finite(s) > 0) {
        s->min_count = s->min == 0 ? s->zeros : s->min_count;
        s->max_count = s->max == 0 ? s->zeros : s->max_count;
    }
    return OCT_OK;
}

oct_status oct_stats_update_batch(oct_stats *s, const float *x, size_t samples, size_t n, oct_err *err)
{
    size_t total;
    if (!oct_mul_size(samples, n, &total))
        return oct_fail(err, OCT_EINTERNAL, "%zu samples of %zu values overflow", samples, n);
    if (total == 0)
        return OCT_OK;
    oct_scan seen;
    bool used[512];
    memcpy(used, s->used, sizeof used);
    first_look(s, x, total, &seen, used);
    if (seen.nan)
        OCT_TRY(check_nan(x, total, err));
    OCT_TRY(oct_stats_room(s, total, err));
    OCT_TRY(oct_stats_layout(s, used, total, err));
    uint64_t before = s->inf[0] + s->inf[1];
    for (size_t i = 0; i < samples; i++) {
        oct_scan one = { .min = INFINITY, .max = -INFINITY };
        if (samples > 1)
            oct_scan_f32(x + i * n, n, 0, &one);
        add_extent(s, x + i * n, n, samples > 1 ? &one : &seen);
    }
    return count(s, x, total, &seen, s->inf[0] + s->inf[1] - before, err);
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
    if (o->bins || o->n_few) {
        if (o->large && !s->large)
            OCT_TRY(widen(s, err));
        OCT_TRY(oct_stats_room(s, o->narrow, err));
        OCT_TRY(oct_stats_layout(s, used, o->bins ? OCT_STATS_FEW + 1 : o->n_few, err));
        if (s->bins) {
            fold(s->bins, s->large, s->octave, o);
        } else {
            oct_filled few[OCT_STATS_FEW];
            const uint32_t n = move_few(few, s->octave, o);
            join_few(s, few, n);
        }
    }
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

static bool same_counts(const oct_stats *a, const oct_stats *b)
{
    for (size_t i = 0; i < a->n_bins; i++)
        if (oct_stats_count(a, i) != oct_stats_count(b, i))
            return false;
    return true;
}

bool oct_stats_equal(const oct_stats *a, const oct_stats *b)
{
    return a->n == b->n && a->zeros == b->zeros && memcmp(a->inf, b->inf, sizeof a->inf) == 0 && a->min == b->min &&
           a->max == b->max && a->min_count == b->min_count && a->max_count == b->max_count &&
           a->samples == b->samples && memcmp(&a->min_sum, &b->min_sum, sizeof a->min_sum) == 0 &&
           memcmp(&a->max_sum, &b->max_sum, sizeof a->max_sum) == 0 && memcmp(a->used, b->used, sizeof a->used) == 0 &&
           a->n_bins == b->n_bins && same_counts(a, b);
}
