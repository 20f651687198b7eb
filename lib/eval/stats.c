/* Intervals of paired differences, quartiles, decibels. */
#include "eval/stats.h"

#include <math.h>
#include <stdlib.h>

void oct_paired_add(oct_paired *p, double reference, double other)
{
    double d = other - reference;
    p->n++;
    p->up += d > 0;
    p->down += d < 0;
    p->sum += d;
    p->squares += d * d;
}

/* ---- binomial ---- */

/* P(X <= k) for X ~ Binomial(n, p), 0 < p < 1, k < n. Terms are taken relative to that of k, by their ratios, so that
 * neither powers nor factorials are needed. */
static double binomial_cdf(uint64_t k, uint64_t n, double p)
{
    const double odds = p / (1 - p);
    double below = 0, above = 0, w = 1;
    for (uint64_t i = k;; i--) {
        below += w;
        if (i == 0 || w < below * 1e-18)
            break;
        w *= (double)i / ((double)(n - i + 1) * odds);
        if (w > 1e200) /* then k stands far above the mode: what lies above k is nothing beside it */
            return 1;
    }
    w = 1;
    for (uint64_t i = k; i < n; i++) {
        w *= (double)(n - i) / (double)(i + 1) * odds;
        above += w;
        if (above > 1e200)
            return 0;
        if (w < above * 1e-18)
            break;
    }
    return below / (below + above);
}

/* The p for which P(X <= k) = tail, by bisection: the function falls with p. */
static double binomial_solve(uint64_t k, uint64_t n, double tail)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (binomial_cdf(k, n, mid) > tail)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

oct_interval oct_paired_proportion(const oct_paired *p)
{
    const uint64_t m = p->up + p->down;
    oct_interval r = { p->n ? p->sum / (double)p->n : NAN, NAN, NAN };
    if (p->n == 0)
        return r;
    if (m == 0) {
        r.lo = r.hi = r.mean;
        return r;
    }
    double pl = p->up == 0 ? 0 : binomial_solve(p->up - 1, m, 0.975);
    double pu = p->up == m ? 1 : binomial_solve(p->up, m, 0.025);
    r.lo = (2 * pl - 1) * (double)m / (double)p->n;
    r.hi = (2 * pu - 1) * (double)m / (double)p->n;
    return r;
}

double oct_mcnemar(const oct_paired *p)
{
    uint64_t m = p->up + p->down, least = p->up < p->down ? p->up : p->down;
    if (m == 0)
        return 1;
    double two = least < m ? 2 * binomial_cdf(least, m, 0.5) : 1;
    return two < 1 ? two : 1;
}

/* 97.5 % point of Student's t: a table for few degrees of freedom, then the expansion of Abramowitz and Stegun 26.7.5. */
static double student(uint64_t df)
{
    static const double few[] = { 0, 12.7062047361747, 4.30265272974946, 3.18244630528371, 2.77644510519779 };
    if (df < OCT_COUNT(few))
        return few[df];
    const double z = 1.95996398454005, v = (double)df, z2 = z * z;
    double g1 = z * (z2 + 1) / 4;
    double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

oct_interval oct_paired_mean(const oct_paired *p)
{
    oct_interval r = { p->n ? p->sum / (double)p->n : NAN, NAN, NAN };
    if (p->n < 2)
        return r;
    double n = (double)p->n, var = (p->squares - p->sum * p->sum / n) / (n - 1);
    double half = student(p->n - 1) * sqrt((var > 0 ? var : 0) / n);
    r.lo = r.mean - half;
    r.hi = r.mean + half;
    return r;
}

/* ---- quartiles ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double at_share(const double *v, size_t n, double share)
{
    double at = share * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

oct_quartiles oct_quartiles_of(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return (oct_quartiles){ at_share(v, n, 0.25), at_share(v, n, 0.5), at_share(v, n, 0.75) };
}

/* ---- decibels ---- */

double oct_log10(double x)
{
    if (x == 0)
        return -INFINITY;
    if (!(x > 0) || isinf(x))
        return x > 0 ? INFINITY : NAN;
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    /* ln m = 2 artanh(s), |s| < 0.1716: terms beyond s^23 are below half a unit. */
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int i = 23; i >= 1; i -= 2)
        sum = sum * s2 + 1.0 / i;
    return (double)e * 0.30102999566398120 + 2 * s * sum * 0.43429448190325183;
}

double oct_decibels(double signal, double noise)
{
    if (!isfinite(signal) || !isfinite(noise))
        return NAN;
    if (noise == 0)
        return INFINITY;
    return 10 * oct_log10(signal / noise);
}
