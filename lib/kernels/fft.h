/* lib/kernels/fft.h -- discrete Fourier transform of complex double values, any length. */
#ifndef OCT_KERNELS_FFT_H
#define OCT_KERNELS_FFT_H

#include "base/mem.h"

/* Small prime factors by mixed radix, O(n sum of factors); lengths with a prime factor above 61 as a convolution of a
 * length that is a power of two (Bluestein). */
typedef struct oct_fft {
    int64_t n;
    int n_factors;
    int8_t factor[64];
    const double *root;           /* e^(-2 pi i k / n), k < n, interleaved */
    const struct oct_fft *inner;  /* Bluestein: the transform of the convolution ... */
    const double *chirp, *filter; /* ... e^(-pi i k^2 / n), k < n, and what its conjugate transforms to */
} oct_fft;

/* Tables are made in `a`. n >= 1; OCT_ENOMEM. */
oct_status oct_fft_plan(oct_fft *f, int64_t n, oct_arena *a, oct_err *err);
/* Doubles of scratch that a run needs. */
size_t oct_fft_scratch(const oct_fft *f);
/* y[k] = sum over j of x[j] e^(-2 pi i j k / n), or with the other sign (inverse; not divided by n). x, y: n pairs,
 * must not overlap. */
void oct_fft_run(const oct_fft *f, bool inverse, const double *x, double *y, double *scratch);

#endif
