/* Intervals of paired differences, and conclusions from them. */
#include "eval/metrics/summary.h"

#include "eval/metrics/bootstrap.h"

#include <math.h>
#include <string.h>

static const double Z = 1.9599639845400545; /* 97.5 % quantile of the normal distribution */

void oct_paired_add(oct_paired *p, double reference, double other)
{
    double d = other - reference;
    p->n++;
    p->up += d > 0;
    p->down += d < 0;
    p->sum += d;
    if (p->n <= OCT_PAIRED_KEPT)
        p->kept[p->n - 1] = d;
    /* Moments about the running mean (Pebay 2008), which do not suffer from cancellation if the mean is far from 0. */
    const double n = (double)p->n, shift = (d - p->mean) / n, grown = shift * shift * n * (n - 1);
    p->m3 += grown * shift * (n - 2) - 3 * shift * p->m2;
    p->m2 += grown;
    p->mean += shift;
}

/* ---- proportions ---- */

/* By how many samples the observed count is moved towards the expected one. Counts change in steps, and coverage is
 * smallest where a step at either end leaves the interval. */
static const double NEARER = 0.1;

/* The score statistic of the hypothesis that the rate of rising exceeds the rate of falling by d, for d >= 0: the
 * observed excess beyond it, divided by the standard deviation under it. The hypothesis leaves the rate of falling
 * open. Its likeliest value under the hypothesis is the positive root q of 2n q^2 +
 * ((2n - up + down) d - up - down) q - down d (1 - d) = 0. */
static double score_beyond(double n, double up, double down, double d)
{
    const double b = (2 * n - up + down) * d - up - down, c = down * d * (1 - d);
    const double root = sqrt(b * b + 8 * n * c);
    const double q =
        b > 0 ? 2 * c / (b + root) : (root - b) / (4 * n); /* avoids the difference of nearly equal numbers */
    const double beyond = up - down - n * d, variance = n * (2 * q + d * (1 - d));
    const double nearer = fabs(beyond) > NEARER ? beyond - copysign(NEARER, beyond) : 0;
    return nearer == 0 ? 0 : nearer / sqrt(variance); /* infinite if the hypothesis does not allow what was observed */
}

static double score(double n, double up, double down, double d)
{
    return d >= 0 ? score_beyond(n, up, down, d) : -score_beyond(n, down, up, -d);
}

/* The largest difference that the counts do not reject, by bisection: the statistic falls as d grows. */
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

/* What m2 and m3, sums of squared and cubed deviations, say about a mean of n. */
typedef struct moments {
    double error;        /* standard error of the mean, with n in place of n - 1 */
    double acceleration; /* how fast that changes with the mean: a sixth of the mean's skewness */
} moments;

static moments moments_of(double n, double m2, double m3)
{
    return (moments){ sqrt(m2) / n, oct_bootstrap_acceleration(m2, m3) };
}

static oct_interval by_moments(const oct_paired *p, double mean)
{
    const moments m = moments_of((double)p->n, p->m2, p->m3);
    const double below = m.acceleration - oct_bootstrap_point(p->n), above = m.acceleration + oct_bootstrap_point(p->n);
    const double room_below = 1 - m.acceleration * below, room_above = 1 - m.acceleration * above;
    return (oct_interval){ mean, mean + m.error * below / (room_below * room_below),
                           mean + m.error * above / (room_above * room_above) };
}

static oct_interval by_student(const oct_paired *p, double mean)
{
    const double half = oct_bootstrap_point(p->n) * moments_of((double)p->n, p->m2, p->m3).error;
    return (oct_interval){ mean, mean - half, mean + half };
}

/* ---- BCa ---- */

enum { RESAMPLES = 10000 };

/* The mean of n values drawn from v[n], for resample number `at`. Each 64 bits choose two values. */
static double resampled(const double *v, size_t n, uint64_t at)
{
    double sum = 0;
    for (size_t i = 0; i < n; i += 2) {
        const uint64_t bits = oct_draw_bits(at << 32 | i);
        sum += v[(bits >> 32) * n >> 32];
        if (i + 1 < n)
            sum += v[(bits & 0xffffffffu) * n >> 32];
    }
    return sum / (double)n;
}

/* v: the differences, ascending, not all equal. They are replaced by deviations from the mean. */
static oct_interval by_bootstrap(double *v, size_t n, double mean)
{
    double m2 = 0, m3 = 0, means[RESAMPLES], lo, hi;
    for (size_t i = 0; i < n; i++) {
        v[i] -= mean;
        m2 += v[i] * v[i];
        m3 += v[i] * v[i] * v[i];
    }
    for (size_t i = 0; i < RESAMPLES; i++)
        means[i] = resampled(v, n, i);
    oct_bca_bounds(means, RESAMPLES, 0, oct_bootstrap_acceleration(m2, m3), n, &lo, &hi);
    return (oct_interval){ mean, mean + lo, mean + hi };
}

const char *oct_paired_mean_method(uint64_t n)
{
    return n < OCT_BCA_LEAST ? "Student's t" : n <= OCT_PAIRED_KEPT ? "BCa bootstrap" : "ABC";
}

oct_interval oct_paired_mean(const oct_paired *p)
{
    const oct_interval none = { p->n ? p->sum / (double)p->n : NAN, NAN, NAN };
    if (p->n < 2 || !isfinite(p->m3) || !isfinite(none.mean))
        return none;
    if (p->m2 == 0)
        return (oct_interval){ none.mean, none.mean, none.mean };
    if (p->n < OCT_BCA_LEAST)
        return by_student(p, none.mean);
    if (p->n > OCT_PAIRED_KEPT)
        return by_moments(p, none.mean);
    double v[OCT_PAIRED_KEPT];
    memcpy(v, p->kept, p->n * sizeof *v);
    oct_sort_values(v, p->n);
    return by_bootstrap(v, p->n, none.mean);
}

/* ---- conclusions from an interval ---- */

bool oct_interval_holds(const oct_interval *i, double value)
{
    return i->lo <= value && value <= i->hi;
}

uint64_t oct_interval_samples(const oct_interval *i, uint64_t n, double value)
{
    enum { UNCHANGED = 4 }; /* samples: the square of the normal quantile, 3.84, bounds the interval of no difference */
    const double apart = fabs(value - i->mean), half = value > i->mean ? i->hi - i->mean : i->mean - i->lo;
    const double factor = half / apart, few = i->mean == 0 && half * (double)n <= UNCHANGED ? 1 : factor;
    const double want = (double)n * factor * few;
    if (!(apart > 0) || !(want <= OCT_INTERVAL_MOST)) /* also if it is NaN */
        return 0;
    uint64_t least = (uint64_t)ceil(want), unit = 1;
    while (least / unit > 99)
        unit *= 10;
    return (least + unit - 1) / unit * unit;
}
