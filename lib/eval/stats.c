/* Quartiles and decibels. */
#include "eval/stats.h"

#include <math.h>
#include <stdlib.h>

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
