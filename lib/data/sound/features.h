/* lib/data/sound/features.h -- what models of speech take instead of samples: log-mel spectra and cepstra of short
 * overlapping frames. Private to lib/data.
 *
 * log-mel=N, by Whisper's definition: at 16000 Hz, frames of 400 samples every 160, each centred on its place, the
 * recording mirrored at both ends; Hann's periodic window; power spectrum; N triangular filters from 0 to 8000 Hz that
 * are evenly spaced on Slaney's scale and have equal area; log10, not below 1e-10; then with the largest of all
 * values m: (max(y, m - 8) + 4) / 4. n samples make n / 160 frames.
 *
 * fbank=N, by Kaldi's definition (compute-fbank-feats without dither), of samples from -32768 to 32767: frames of
 * frame-length every frame-shift milliseconds, whole ones within the recording (snip-edges=no: centred, with the
 * recording mirrored at both ends); the mean is taken away, then x[i] -= 0.97 x[i - 1]; the window (0.5 - 0.5 cos(2 pi
 * i / (L - 1)))^0.85; power spectrum of the next power of two; N filters, triangular and evenly spaced on the scale
 * 1127 ln(1 + f / 700), from 20 Hz to high-freq (half the rate); natural logarithm, not below that of 2^-23. mfcc=N:
 * the first N terms of the orthonormal cosine transform of num-mel-bins such values, term k times 1 + 11 sin(pi k /
 * 22); term 0 is the logarithm of the frame's energy unless use-energy=no.
 *
 * All is computed in double in a fixed order by functions of our own, so the bits are the same on every CPU. */
#ifndef OCT_DATA_FEATURES_H
#define OCT_DATA_FEATURES_H

#include "base/status.h"
#include "data/pictures/preprocess.h"

#include <stdint.h>

/* The rate at which features are computed: that of rate=, or 16000. */
int oct_features_rate(const oct_steps *s);
/* Frames that n samples make, and the least number of samples that makes as many frames; -1: too many. */
int64_t oct_features_frames(const oct_steps *s, int64_t n);
int64_t oct_features_samples(const oct_steps *s, int64_t frames);
/* out[oct_features_frames(s, n)][s->n_features] of x[n], for steps that oct_steps_check accepts. Whisper's definition
 * and mirrored ends need a sample. OCT_ENOMEM. */
oct_status oct_features_compute(const oct_steps *s, const float *x, int64_t n, float *out, oct_err *err);

#endif
