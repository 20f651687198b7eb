/* lib/eval/metrics/summary.h -- statistics for comparisons: intervals of paired differences, quartiles, decibels.
 *
 * Everything is computed with exact operations and with series of our own, so that the results are the same on every
 * CPU to the bit. */
#ifndef OCT_EVAL_SUMMARY_H
#define OCT_EVAL_SUMMARY_H

#include "base/status.h"

/* ---- paired differences ---- */

/* Differences d = other - reference of one score, added sample by sample. {0} is the empty list. */
enum { OCT_PAIRED_KEPT = 1024 };
typedef struct oct_paired {
    uint64_t n;
    uint64_t up, down; /* how many samples have d > 0, and d < 0 */
    double sum;
    double mean, m2, m3;          /* running sums of (d - mean)^2 and (d - mean)^3 */
    double kept[OCT_PAIRED_KEPT]; /* the first differences */
} oct_paired;

void oct_paired_add(oct_paired *p, double reference, double other);

/* A mean and its 95 % interval. lo and hi are NaN if there are too few samples. */
typedef struct oct_interval {
    double mean, lo, hi;
} oct_interval;

/* The mean of d for scores that are 0 or 1, with Tango's score interval for the difference of paired proportions
 * (Statistics in Medicine 17, 1998, 891-908), whose statistic is brought a tenth of a sample nearer to 0. That makes
 * the interval hold the true difference in at least 93 of 100 cases from n = 100 on, while no more than 99 % of the
 * samples differ (enumerated: tests/unit/test_interval.c); Tango's own falls to 92.6 there. Without a sample that
 * differs it is 0 with an interval of about 4 / n on either side. NaN for n = 0. */
oct_interval oct_paired_proportion(const oct_paired *p);
/* The mean of d for any scores. The interval's method depends on n:
 *   2 to 9     Student's t
 *   to 1024    BCa bootstrap (Efron, JASA 82, 1987, 171-185): 10000 resamples by a counter-based generator with a fixed
 * seed, of the differences in ascending order: the same bits on every CPU, and the order of samples does not matter;
 *              its quantiles are widened to those of Student's t (Hesterberg, American Statistician 69, 2015, 371-386)
 *   beyond     ABC (DiCiccio and Efron, Biometrika 79, 1992, 231-245), what BCa comes to for a mean, from the first
 * three moments: memory does not grow with n When all differences are equal it is that value; NaN for n < 2 and where a
 * difference is not finite. Simulated coverage from n = 100 on is at least 92 % for normal, uniform, exponential and
 * Student-t5 differences, and less where single samples dominate (docs/metrics.md lists how much). */
oct_interval oct_paired_mean(const oct_paired *p);
/* The method for the interval of a mean of n: "Student's t", "BCa bootstrap", "ABC". */
const char *oct_paired_mean_method(uint64_t n);

/* Whether the interval contains `value`, so that the samples cannot distinguish it from the mean. If value is 0, the
 * difference is within noise. If value is the limit of a goal, the true value may be on either side of it. False if
 * there is no interval. */
bool oct_interval_holds(const oct_interval *i, double value);
/* Approximately how many samples, similar to the n of the interval, would distinguish the mean from `value`: an
 * interval becomes narrower with the square root of n, and with n where no sample differs. Rounded up to two digits. 0:
 * not OCT_INTERVAL_MOST would, or no number is known. */
enum { OCT_INTERVAL_MOST = 100000 }; /* nobody collects more to learn that */
uint64_t oct_interval_samples(const oct_interval *i, uint64_t n, double value);

/* ---- the normal distribution ---- */

/* P(X <= x), with an error below 1e-15; and the x for which it is p, 0 < p < 1, with an error below 1e-12 for p of 1e-6
 * to 1 - 1e-6. */
double oct_normal_cdf(double x);
double oct_normal_quantile(double p);

/* ---- quantiles and decibels ---- */

/* The quantile of sorted v[n] for a share between 0 and 1, interpolated linearly as in numpy's percentile. n >= 1. */
double oct_quantile_of(const double *v, size_t n, double share);

/* Sorts v[n] ascending. */
void oct_sort_values(double *v, size_t n);
/* Sorts v[n] and returns its quartiles. n >= 1. */
typedef struct oct_quartiles {
    double q1, median, q3;
} oct_quartiles;
oct_quartiles oct_quartiles_of(double *v, size_t n);

/* log10 of x > 0, within 2 units in the last place; -INFINITY for 0, NaN for negative x. */
double oct_log10(double x);
/* 10 log10(signal / noise). INFINITY if there is no noise; -INFINITY if there is noise but no signal; NaN if either is
 * not finite. */
double oct_decibels(double signal, double noise);

#endif
