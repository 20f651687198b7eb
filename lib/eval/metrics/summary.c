/* The normal distribution, quantiles, decibels. */
#include "eval/metrics/summary.h"

#include <math.h>
#include <stdlib.h>

/* ---- the normal distribution ---- */

/* e^x for -40 < x <= 0, within a few units in the last place: x = k ln 2 + r, |r| <= 0.35, and the series for e^r. */
static double exp_below(double x)
{
    const double k = floor(x / 0.69314718055994531 + 0.5);
    const double r =
        (x - k * 0.69314718036912382) - k * 1.9082149292705877e-10; /* ln 2 in two parts, k times the first exact */
    double sum = 1;
    for (int i = 18; i >= 1; i--)
        sum = 1 + r / i * sum;
    return ldexp(sum, (int)k);
}

/* 1/2 + density (x + x^3/3 + x^5/(3 5) + ...): all terms have one sign. */
double oct_normal_cdf(double x)
{
    if (!(fabs(x) < 8.5))
        return x < 0 ? 0 : x > 0 ? 1 : NAN;
    double term = x, sum = x;
    for (int i = 3; fabs(term) > fabs(sum) * 1e-17; i += 2) {
        term *= x * x / i;
        sum += term;
    }
    return 0.5 + 0.39894228040143268 * exp_below(-x * x / 2) * sum;
}

double oct_normal_quantile(double p)
{
    double lo = -8.5, hi = 8.5;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (oct_normal_cdf(mid) < p)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

/* ---- quantiles ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void oct_sort_values(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
}

double oct_quantile_of(const double *v, size_t n, double share)
{
    double at = share * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

oct_quartiles oct_quartiles_of(double *v, size_t n)
{
    oct_sort_values(v, n);
    return (oct_quartiles){ oct_quantile_of(v, n, 0.25), oct_quantile_of(v, n, 0.5), oct_quantile_of(v, n, 0.75) };
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
