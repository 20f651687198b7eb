/* lib/eval/stats.h -- the little statistics a comparison needs: intervals of paired differences, quartiles, decibels.
 *
 * Everything is computed with exact operations and our own series: the same bits on every CPU. */
#ifndef OCT_EVAL_STATS_H
#define OCT_EVAL_STATS_H

#include "base/status.h"

/* ---- paired differences ---- */

/* Differences d = other - reference of one score over the samples, gathered one by one. {0} is the empty one. */
typedef struct oct_paired {
    uint64_t n;
    uint64_t up, down; /* samples with d > 0, d < 0 */
    double sum, squares;
} oct_paired;

void oct_paired_add(oct_paired *p, double reference, double other);

/* A mean and its 95 % interval; lo and hi are NaN when there are too few samples to tell. */
typedef struct oct_interval {
    double mean, lo, hi;
} oct_interval;

/* The mean of d for scores that are 0 or 1, with Tango's score interval for the difference of paired proportions
 * (Statistics in Medicine 17, 1998, 891-908), whose statistic is brought a tenth of a sample nearer to 0. That makes the
 * interval hold the true difference in at least 93 of 100 cases from n = 100 on, whatever the rates (enumerated:
 * tests/unit/test_interval.c); Tango's own falls to 92.6. Without a sample that differs it is 0 with an interval of about
 * 4 / n on either side. NaN for n = 0. */
oct_interval oct_paired_proportion(const oct_paired *p);
/* The mean of d by the paired t interval. Needs 2 samples. */
oct_interval oct_paired_mean(const oct_paired *p);

/* The verdict: whether `value` cannot be told from the mean, as the interval holds it. With 0 a difference is within
 * noise; with the limit of a goal, the samples do not say on which side of it the truth lies. False without an interval. */
bool oct_interval_holds(const oct_interval *i, double value);
/* About how many samples like the n that gave the interval would tell the mean from `value`: intervals narrow with
 * the square root of n. Rounded up to two digits; 0 when no number would, or none is known. */
uint64_t oct_interval_samples(const oct_interval *i, uint64_t n, double value);

/* ---- quartiles and decibels ---- */

/* Sorts v[n] and gives its quartiles (linear between neighbours, as numpy's percentile). n >= 1. */
typedef struct oct_quartiles {
    double q1, median, q3;
} oct_quartiles;
oct_quartiles oct_quartiles_of(double *v, size_t n);

/* log10 of x > 0, within 2 units in the last place; -INFINITY for 0, NaN below. */
double oct_log10(double x);
/* 10 log10(signal / noise). No noise: INFINITY (equal); no signal but noise: -INFINITY; NaN where either is not finite. */
double oct_decibels(double signal, double noise);

#endif
