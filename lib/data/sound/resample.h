/* lib/data/sound/resample.h -- recordings at another rate: a windowed sinc, one set of coefficients for each phase.
 *
 * With `down` input samples for `up` output samples (the rates without their common divisor), output n stands at t = n
 * * down / up, in input samples, and is
 *
 *     y[n] = sum over k of x[k] h(k - t)
 *     h(d) = b sinc(b d) I0(beta sqrt(1 - (b d / Z)^2)) / I0(beta)  for |b d| < Z, else 0
 *
 * with sinc(u) = sin(pi u) / (pi u) and b = r min(1, up / down): the ideal low-pass filter at b times half the input's
 * rate, under Kaiser's window. t takes `up` phases. (J. O. Smith, "The Digital Audio Resampling Home Page".) Z = 64, r
 * = 0.9475937167399596 and beta = 14.769656459379492 are the parameters that librosa's resampy calls kaiser_best and
 * torchaudio documents under this name; torchaudio's sinc_interp_kaiser with them gives the same values, but for the
 * rounding of its float32.
 *
 * libsamplerate and soxr do this faster, by instructions that differ from CPU to CPU, and so do their last bits. Here
 * are only sums, products, quotients and square roots of doubles in a fixed order, which are the same everywhere. */
#ifndef OCT_DATA_RESAMPLE_H
#define OCT_DATA_RESAMPLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OCT_RESAMPLE_MOST = 64
}; /* output samples for an input sample: a header that claims one sample a second must not turn 20 kB into gigabytes */

typedef struct oct_resampler {
    int from, to;     /* the rates */
    int64_t down, up; /* the same without their common divisor */
    int64_t reach;    /* output n reads the inputs floor(t) - reach .. floor(t) + reach + 1 at most */
    double *h;        /* [up][2 * reach + 2]; a phase is computed when it is first asked for */
    bool *known;      /* [up] */
} oct_resampler;

/* Allocates the coefficients, up * (2 * reach + 2) of them, and computes none, since a small file may claim any rate:
 * so time depends on the samples that are computed. Released with oct_resampler_free. Rates are 1 or more.
 * OCT_EUNSUPPORTED where rates have so small a common divisor that there would be more than 64 MB of them, or `to` is
 * more than OCT_RESAMPLE_MOST times `from`; OCT_ENOMEM. */
oct_status oct_resampler_init(oct_resampler *r, int from, int to, oct_err *err);
void oct_resampler_free(oct_resampler *r); /* leaves it zeroed */

/* The number of output samples for n input samples, all within the recording. -1: too many. */
int64_t oct_resampled_count(const oct_resampler *r, int64_t n);

/* floor(n * down / up), for n >= 0. */
int64_t oct_resample_at(const oct_resampler *r, int64_t n);

/* Output n, from x[2 * reach + 2], whose first element is input floor(t) - reach. The first output of a phase computes
 * its coefficients, so only one thread at a time may call this. */
double oct_resample_one(oct_resampler *r, int64_t n, const double *x);

#endif
