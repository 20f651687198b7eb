/* Random draws, and the bounds of BCa. */
#include "eval/metrics/bootstrap.h"

#include "eval/metrics/summary.h"

#include <math.h>

static const double Z = 1.9599639845400545; /* 97.5 % quantile of the normal distribution */

/* The output function of SplitMix64. */
uint64_t oct_draw_bits(uint64_t counter)
{
    uint64_t x = (counter + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 97.5 % quantile of Student's t: a table for few degrees of freedom, then the expansion of Abramowitz and
 * Stegun 26.7.5. */
static double student(uint64_t df)
{
    static const double few[] = { 0, 12.7062047361747, 4.30265272974946, 3.18244630528371, 2.77644510519779 };
    if (df < OCT_COUNT(few))
        return few[df];
    const double z = Z, v = (double)df, z2 = z * z;
    double g1 = z * (z2 + 1) / 4;
    double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

double oct_bootstrap_point(uint64_t n)
{
    return student(n - 1) * sqrt((double)n / (double)(n - 1));
}

double oct_bootstrap_acceleration(double m2, double m3)
{
    return m2 > 0 ? m3 / (6 * m2 * sqrt(m2)) : 0;
}

/* The quantile of the resamples that BCa uses for a bound with normal quantile z. */
static double share_of(double bias, double acceleration, double z)
{
    const double w = bias + z, room = 1 - acceleration * w;
    return room > 0 ? oct_normal_cdf(bias + w / room) : z > 0;
}

void oct_bca_bounds(double *v, size_t count, double estimate, double acceleration, uint64_t n, double *lo, double *hi)
{
    double twice_below = 0;
    for (size_t i = 0; i < count; i++)
        twice_below += (v[i] < estimate) + (v[i] <= estimate);
    oct_sort_values(v, count);
    const double least = 0.5 / (double)count, share = twice_below / 2 / (double)count;
    const double bias = oct_normal_quantile(fmin(fmax(share, least), 1 - least)), point = oct_bootstrap_point(n);
    *lo = oct_quantile_of(v, count, share_of(bias, acceleration, -point));
    *hi = oct_quantile_of(v, count, share_of(bias, acceleration, point));
}
