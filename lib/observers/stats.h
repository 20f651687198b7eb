/* lib/observers/stats.h -- what is kept of the values that one tensor takes over a calibration set.
 *
 * The state is a function of the multiset of values alone (and, for the averages, of where samples begin
 * and end): any order, batching and sharding with oct_stats_merge() gives the same bits.
 *
 * The histogram. An octave is the set of values of one sign and one binary exponent. An octave that holds
 * no value takes no memory. The others are ranked, per sign, from the largest magnitude down, and the
 * octave of rank r is cut into 2^b(r) bins of equal width, b(r) = min(11, max(3, 13 - r)). So every bin is
 * a power of two wide and lies on a grid through zero; a chosen range has at least 8 bins for each 8-bit
 * quantized value while no more than two octaves hold larger values (outliers, masks); and a mask of -10000 or
 * -FLT_MAX takes one octave of its own instead of stretching everybody's bins. Three mantissa bits are
 * kept of every value whatever comes, which is what decides on outliers.
 * Why it is order-free: adding values only adds octaves, so an octave's rank only grows and its bins only
 * fold pairwise, never split; folded counts are what counting at the coarser width would have given. */
#ifndef OCT_OBSERVERS_STATS_H
#define OCT_OBSERVERS_STATS_H

#include "kernels/bins.h"
#include "observers/xsum.h"

/* Bits that select a bin within an octave: for rank 0..2, and for rank 10 and more. */
#define OCT_STATS_BITS_MAX 11
#define OCT_STATS_BITS_MIN 3

typedef struct oct_octave {
    uint32_t off;   /* first bin */
    uint32_t shift; /* bin = off + (mantissa >> shift); 23 - shift is the number of bits kept */
} oct_octave;

/* How values are counted without looking up the octave; computed from the octaves in use. */
typedef struct oct_quick {
    bool ok;
    float lo, hi; /* values are between these, or 0 */
    float tiny;   /* from this magnitude on, every octave that can occur is known */
    oct_bin_grid grid;
} oct_quick;

typedef struct oct_stats {
    uint64_t n;                  /* values seen, infinities included */
    uint64_t zeros;              /* exact zeros of either sign; they are in no bin */
    uint64_t inf[2];             /* +inf, -inf; they are in no bin */
    float min, max;              /* of the finite values, exact, never -0; 0 when there is none */
    uint64_t min_count, max_count; /* how many values equal them (a clamp shows here) */
    uint64_t samples;            /* samples with a finite value */
    oct_xsum min_sum, max_sum;   /* exact sums of the samples' minima and maxima */
    oct_octave octave[512];      /* by the top nine bits of a float32: sign (1: negative), exponent */
    bool used[512];              /* octaves that hold a value */
    uint32_t *bins;              /* owned; NULL before the first value other than zero. Narrow: half the cache misses while counting */
    uint64_t *wide;              /* owned; NULL before narrow counts could overflow: a bin's count is the sum of both */
    uint64_t narrow;             /* at least the sum of bins, below 2^32 */
    oct_quick quick;             /* set by oct_stats_layout */
    size_t n_bins;               /* at most 2 * 8176 + 8 for each further octave */
} oct_stats;

void oct_stats_init(oct_stats *s);
void oct_stats_free(oct_stats *s);

/* Feeds one sample, or a batch of them.
 *   x       f32[samples][n], contiguous, borrowed for the call; n = 0 changes nothing
 * OCT_ENUMERIC on NaN (the message gives the index in x) and OCT_ENOMEM leave the statistics unchanged.
 * Infinities are counted apart. About 1 ns a value; memory changes only when a new exponent appears. */
oct_status oct_stats_update(oct_stats *s, const float *x, size_t n, oct_err *err);
oct_status oct_stats_update_batch(oct_stats *s, const float *x, size_t samples, size_t n, oct_err *err);

/* Adds o's values to s: bit for bit what s would be had it seen both. Unchanged on OCT_ENOMEM. */
oct_status oct_stats_merge(oct_stats *s, const oct_stats *o, oct_err *err);
bool oct_stats_equal(const oct_stats *a, const oct_stats *b);
/* Finite values seen. */
uint64_t oct_stats_finite(const oct_stats *s);

/* The count of bin i. */
static inline uint64_t oct_stats_count(const oct_stats *s, size_t i)
{
    return s->bins[i] + (s->wide ? s->wide[i] : 0);
}
/* Sets that count (then place v anew); oct_stats_room must have been called for all of them. */
static inline void oct_stats_set_count(oct_stats *s, size_t i, uint64_t v)
{
    if (s->wide)
        s->wide[i] = v;
    else
        s->bins[i] = (uint32_t)v;
}
/* Makes room for n more values in narrow bins, or, if n is 2^32 or more, in wide ones. */
oct_status oct_stats_room(oct_stats *s, uint64_t n, oct_err *err);

/* Lays out the bins for the octaves in `used`, which must include s->used, folding bins where needed. */
oct_status oct_stats_layout(oct_stats *s, const bool used[512], oct_err *err);

/* Iterates over the bins that are not empty, in increasing order of value; start with *at = 0. Zeros are a bin with lo == hi == 0. lo and hi are real
 * numbers; the last edge is 2^128. */
typedef struct oct_bin {
    double lo, hi;
    uint64_t count;
} oct_bin;
bool oct_stats_next(const oct_stats *s, size_t *at, oct_bin *bin);

/* Mask-like values: those that are at least 16 times as large as all other values except zero, and at least 4096 in magnitude if they are negative
 * (attention masks add -10000, -65504, -1e9 or -FLT_MAX), or 2^24 if they are positive. This depends only on the octaves. Returns the magnitude from which
 * on values are excluded, a power of two, or +infinity. *excluded (may be NULL): how many finite values these are. */
double oct_stats_masks(const oct_stats *s, uint64_t *excluded);

#endif
