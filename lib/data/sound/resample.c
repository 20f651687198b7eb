/* lib/data/sound/resample.c -- the coefficients of the filter, and its sums. */
#include "data/sound/resample.h"

#include "base/mem.h"

#include <math.h>

enum { MOST = 8 << 20 }; /* coefficients */
static const double ZEROS = 64, ROLLOFF = 0.9475937167399596, BETA = 14.769656459379492, PI = 3.14159265358979323846;

/* sin(pi u), |u| < 2^20: reduced exactly to a quarter turn, where the Taylor series ends at 2^-65. */
static double sin_pi(double u)
{
    double r = u - 2 * rint(u / 2); /* -1 .. 1 */
    if (r > 0.5)
        r = 1 - r;
    if (r < -0.5)
        r = -1 - r;
    const double x = PI * r, q = x * x;
    double sum = 0;
    for (int k = 23; k > 1; k -= 2)
        sum = (sum + 1) * -q / (k * (k - 1));
    return x * (sum + 1);
}

/* The modified Bessel function of order zero, from q = (x / 2)^2: the sum of q^k / (k!)^2, whose terms are positive. */
static double bessel(double q)
{
    double sum = 1, term = 1;
    for (int k = 1; term > sum * 1e-17; k++) {
        term *= q / ((double)k * k);
        sum += term;
    }
    return sum;
}

/* window: bessel() at the middle of the window. */
static double coefficient(double b, double d, double window)
{
    const double u = b * d, z = u / ZEROS;
    if (!(fabs(u) < ZEROS))
        return 0;
    const double sinc = u == 0 ? 1 : sin_pi(u) / (PI * u);
    return b * sinc * bessel(BETA * BETA / 4 * (1 - z * z)) / window;
}

static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t c = a % b;
        a = b;
        b = c;
    }
    return a;
}

oct_status oct_resampler_init(oct_resampler *r, int from, int to, oct_err *err)
{
    const int64_t common = divisor(from, to);
    *r = (oct_resampler){ .from = from, .to = to, .down = from / common, .up = to / common };
    const double b = r->up < r->down ? ROLLOFF * (double)r->up / (double)r->down : ROLLOFF;
    if (r->up > OCT_RESAMPLE_MOST * r->down) {
        oct_fail(err, OCT_EUNSUPPORTED, "%d samples a second cannot be made from %d: that is more than %d for each", to,
                 from, OCT_RESAMPLE_MOST);
        oct_hint(err,
                 "the header of the recording may be wrong; 'ffmpeg -i IN -ar %d OUT.wav' resamples it all the same",
                 to);
        return OCT_EUNSUPPORTED;
    }
    if (ZEROS / b > MOST || (r->reach = (int64_t)ceil(ZEROS / b)) > MOST / r->up / 2 - 1) {
        oct_fail(err, OCT_EUNSUPPORTED, "%d samples a second cannot be made from %d: the filter would be too long", to,
                 from);
        oct_hint(err, "resample the recording first, as by 'ffmpeg -i IN -ar %d OUT.wav'", to);
        return OCT_EUNSUPPORTED;
    }
    r->h = oct_alloc((size_t)(r->up * (2 * r->reach + 2)) * sizeof *r->h);
    r->known = oct_calloc((size_t)r->up, sizeof *r->known);
    if (!r->h || !r->known) {
        oct_resampler_free(r);
        return oct_nomem(err);
    }
    return OCT_OK;
}

/* The coefficients of a phase, computed when it is first asked for. */
static const double *phase_of(oct_resampler *r, int64_t phase)
{
    const int64_t taps = 2 * r->reach + 2;
    double *h = r->h + phase * taps;
    if (r->known[phase])
        return h;
    r->known[phase] = true;
    const double b = r->up < r->down ? ROLLOFF * (double)r->up / (double)r->down : ROLLOFF,
                 window = bessel(BETA * BETA / 4);
    for (int64_t k = 0; k < taps; k++)
        h[k] = coefficient(b, (double)(k - r->reach) - (double)phase / (double)r->up, window);
    return h;
}

void oct_resampler_free(oct_resampler *r)
{
    oct_free(r->h);
    oct_free(r->known);
    *r = (oct_resampler){ 0 };
}

int64_t oct_resampled_count(const oct_resampler *r, int64_t n)
{
    int64_t scaled;
    if (__builtin_mul_overflow(n, r->up, &scaled) || scaled > INT64_MAX - r->down)
        return -1;
    return (scaled + r->down - 1) / r->down;
}

/* n is less than the count that has been found to fit: in parts, as n * down may not. */
int64_t oct_resample_at(const oct_resampler *r, int64_t n)
{
    return n / r->up * r->down + n % r->up * r->down / r->up;
}

double oct_resample_one(oct_resampler *r, int64_t n, const double *x)
{
    const int64_t taps = 2 * r->reach + 2;
    const double *h = phase_of(r, n % r->up * r->down % r->up);
    double sum = 0;
    for (int64_t k = 0; k < taps; k++)
        sum += x[k] * h[k];
    return sum;
}
