/* lib/eval/stats.h -- the little statistics a comparison needs: intervals of paired differences, quartiles, decibels.
 *
 * Everything is computed with exact operations and our own series: the same bits on every CPU. */
#ifndef OCT_EVAL_STATS_H
#define OCT_EVAL_STATS_H

#include "base/status.h"

/* Paired differences d = other - reference of one score over the samples, gathered one by one. O(1) memory. */
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

/* The mean of d for scores that are 0 or 1. The interval follows from the exact binomial (Clopper-Pearson) interval of
 * up among up + down, given how many samples differ at all: it contains 0 exactly when McNemar's exact two-sided test
 * has p > 0.05. n >= 1. */
oct_interval oct_paired_proportion(const oct_paired *p);
/* The mean of d by the paired t interval. Needs 2 samples. */
oct_interval oct_paired_mean(const oct_paired *p);
/* McNemar's exact two-sided p of "equally often right"; 1 when nothing differs. */
double oct_mcnemar(const oct_paired *p);

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
