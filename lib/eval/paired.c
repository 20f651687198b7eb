/* Intervals of paired differences, and what they say. */
#include "eval/stats.h"

#include <math.h>

static const double Z = 1.9599639845400545; /* 97.5 % point of the normal distribution */

void oct_paired_add(oct_paired *p, double reference, double other)
{
    double d = other - reference;
    p->n++;
    p->up += d > 0;
    p->down += d < 0;
    p->sum += d;
    p->squares += d * d;
}

/* ---- proportions ---- */

/* Samples by which the observed count is brought nearer to the expected one. Counts come in steps, and the smallest
 * coverage is where a step at either end leaves the interval at once. */
static const double NEARER = 0.1;

/* The score statistic of the hypothesis that a sample goes up more often than down by `d`, for d >= 0: what was observed beyond
 * it, over the standard deviation under it. The rate of going down, which the hypothesis leaves open, is the likeliest one
 * under it: the positive root q of 2n q^2 + ((2n - up + down) d - up - down) q - down d (1 - d) = 0. */
static double score_beyond(double n, double up, double down, double d)
{
    const double b = (2 * n - up + down) * d - up - down, c = down * d * (1 - d);
    const double root = sqrt(b * b + 8 * n * c);
    const double q = b > 0 ? 2 * c / (b + root) : (root - b) / (4 * n); /* no difference of what is nearly equal */
    const double beyond = up - down - n * d, variance = n * (2 * q + d * (1 - d));
    const double nearer = fabs(beyond) > NEARER ? beyond - copysign(NEARER, beyond) : 0;
    return nearer == 0 ? 0 : nearer / sqrt(variance); /* infinite where the hypothesis leaves no room for what was observed */
}

static double score(double n, double up, double down, double d)
{
    return d >= 0 ? score_beyond(n, up, down, d) : -score_beyond(n, down, up, -d);
}

/* The largest difference that the counts do not refute, by bisection: the statistic falls as d grows. */
static double upper_bound(double n, double up, double down)
{
    double lo = (up - down) / n, hi = 1;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (score(n, up, down, mid) >= -Z)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

oct_interval oct_paired_proportion(const oct_paired *p)
{
    const double n = (double)p->n, up = (double)p->up, down = (double)p->down;
    if (p->n == 0)
        return (oct_interval){ NAN, NAN, NAN };
    return (oct_interval){ (up - down) / n, -upper_bound(n, down, up), upper_bound(n, up, down) };
}

/* ---- means ---- */

/* 97.5 % point of Student's t: a table for few degrees of freedom, then the expansion of Abramowitz and Stegun 26.7.5. */
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

/* ---- what an interval says ---- */

bool oct_interval_holds(const oct_interval *i, double value)
{
    return i->lo <= value && value <= i->hi;
}

uint64_t oct_interval_samples(const oct_interval *i, uint64_t n, double value)
{
    const double apart = fabs(value - i->mean), half = value > i->mean ? i->hi - i->mean : i->mean - i->lo;
    const double want = (double)n * (half / apart) * (half / apart);
    if (!(apart > 0) || !(want <= 1e15)) /* NaN too */
        return 0;
    uint64_t least = (uint64_t)ceil(want), unit = 1;
    while (least / unit > 99)
        unit *= 10;
    return (least + unit - 1) / unit * unit;
}
