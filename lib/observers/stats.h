/* lib/observers/stats.h -- statistics of the values that one tensor takes over a calibration set.
 *
 * The state depends only on the multiset of values (and, for the averages, on where samples begin and end): any order,
 * batching and sharding with oct_stats_merge() gives the same bits.
 *
 * The histogram. An octave is the set of values of one sign and one binary exponent. An octave without values takes no
 * memory. The others are ranked, for each sign, from the largest magnitude down, and the octave of rank r is divided
 * into 2^b(r) bins of equal width, b(r) = min(11, max(3, 13 - r)). So the width of every bin is a power of two, and its
 * ends are multiples of it. A chosen range has at least 8 bins for each 8-bit quantized value if no more than two
 * octaves have larger values (outliers, masks). A mask of -10000 or -FLT_MAX takes one octave of its own, instead of
 * stretching the bins of all values. At least three bits of each mantissa are kept in any case, which suffices to judge
 * outliers. Why the order does not matter: adding values only adds octaves, so the rank of an octave only grows, and
 * its bins are only joined in pairs, never split. The joined counts are the same as if values had been counted in the
 * wider bins from the start. */
#ifndef OCT_OBSERVERS_STATS_H
#define OCT_OBSERVERS_STATS_H

#include "kernels/bins.h"
#include "observers/xsum.h"

/* Bits that select a bin within an octave: for rank 0..2, and for rank 10 and more. */
#define OCT_STATS_BITS_MAX 11
#define OCT_STATS_BITS_MIN 3
#define OCT_STATS_FEW 1024

typedef struct oct_octave {
    uint32_t off;   /* its first bin */
    uint32_t shift; /* bin = off + (mantissa >> shift); 23 - shift is the number of bits kept */
} oct_octave;

/* For counting values without looking up their octaves; computed from the octaves in use. */
typedef struct oct_quick {
    bool ok;
    float lo, hi; /* values are between these, or 0 */
    float tiny;   /* from this magnitude on, every octave that can occur is known */
    oct_bin_grid grid;
} oct_quick;

/* A bin that is not empty. */
typedef struct oct_filled {
    uint32_t bin, count;
} oct_filled;

typedef struct oct_stats {
    uint64_t n;                    /* values seen, infinities included */
    uint64_t zeros;                /* exact zeros of either sign; they are in no bin */
    uint64_t inf[2];               /* +inf, -inf; they are in no bin */
    float min, max;                /* of the finite values, exact, never -0; 0 when there is none */
    uint64_t min_count, max_count; /* how many values equal them: many if there is a clamp */
    uint64_t samples;              /* samples with a finite value */
    oct_xsum min_sum, max_sum;     /* exact sums of the samples' minima and maxima */
    oct_octave octave[512];        /* by the top nine bits of a float32: sign (1: negative), exponent */
    bool used[512];                /* octaves that hold a value */
    /* Tensors of few values, of which a model may have many thousands, have a list of the bins that are not empty. The
     * bins take up to 66 kB, and are made where the list could have more than OCT_STATS_FEW. */
    oct_filled *few; /* [few_room], owned, n_few of them, by bin; only without bins */
    uint32_t n_few, few_room;
    uint32_t *bins;  /* owned; NULL: there is the list. Narrow counts halve the cache misses */
    uint64_t *large; /* owned; NULL until narrow counts could overflow. The count of a bin is the sum of both */
    uint64_t narrow; /* at least the sum of bins; below 2^32 */
    oct_quick quick; /* set by oct_stats_layout */
    size_t n_bins;   /* at most 2 * 8176 + 8 for each further octave */
} oct_stats;

void oct_stats_init(oct_stats *s);
void oct_stats_free(oct_stats *s);

/* Adds one sample, or a batch of them.
 *   x       f32[samples][n], contiguous, borrowed for the call; n = 0 changes nothing
 * OCT_ENUMERIC: there is a NaN (the message has its index in x). After this and after OCT_ENOMEM, the statistics are
 * unchanged. Infinities are counted separately. Takes about 1 ns for each value. Memory changes only when a new
 * exponent appears. */
oct_status oct_stats_update(oct_stats *s, const float *x, size_t n, oct_err *err);
oct_status oct_stats_update_batch(oct_stats *s, const float *x, size_t samples, size_t n, oct_err *err);

/* Adds o's values to s. The result is, bit for bit, as if s had got the values of both. After OCT_ENOMEM, s is
 * unchanged. */
oct_status oct_stats_merge(oct_stats *s, const oct_stats *o, oct_err *err);
bool oct_stats_equal(const oct_stats *a, const oct_stats *b);
/* How many finite values were seen. */
uint64_t oct_stats_finite(const oct_stats *s);

/* The first entry of the list from bin i on, or n_few. */
size_t oct_stats_few_from(const oct_stats *s, size_t i);
/* The count of bin i. */
static inline uint64_t oct_stats_count(const oct_stats *s, size_t i)
{
    if (s->bins)
        return s->bins[i] + (s->large ? s->large[i] : 0);
    const size_t k = oct_stats_few_from(s, i);
    return k < s->n_few && s->few[k].bin == i ? s->few[k].count : 0;
}
/* Sets that count, which is 0 so far, in bins that were just laid out. oct_stats_room must have been called for the sum
 * of all counts. */
void oct_stats_set_count(oct_stats *s, size_t i, uint64_t v);
/* Makes room for n more values in narrow bins, or, if n is 2^32 or more, in large ones. */
oct_status oct_stats_room(oct_stats *s, uint64_t n, oct_err *err);

/* Lays out the bins for the octaves in `used`, which must include s->used. Bins are joined where necessary. There is
 * room for `more` further bins that are not empty. After OCT_ENOMEM, s is unchanged. */
oct_status oct_stats_layout(oct_stats *s, const bool used[512], size_t more, oct_err *err);

/* Iterates over the bins that are not empty, in increasing order of value; start with *at = 0. Zeros are a bin with lo
 * == hi == 0. lo and hi are real numbers; the last edge is 2^128. */
typedef struct oct_bin {
    double lo, hi;
    uint64_t count;
} oct_bin;
bool oct_stats_next(const oct_stats *s, size_t *at, oct_bin *bin);

/* Mask-like values: those that are at least 16 times as large as all other values except zero, and at least 4096 in
 * magnitude if they are negative (attention masks add -10000, -65504, -1e9 or -FLT_MAX), or 2^24 if they are positive.
 * This depends only on the octaves. Returns the magnitude from which on values are excluded, a power of two, or
 * +infinity. *excluded (may be NULL): how many finite values these are. */
double oct_stats_masks(const oct_stats *s, uint64_t *excluded);

#endif
