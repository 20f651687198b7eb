/* lib/data/sound/features.c -- frames of a recording to spectra, through filters, to logarithms. */
#include "data/sound/features.h"

#include "base/mem.h"
#include "kernels/fft.h"
#include "kernels/math.h"

#include <math.h>
#include <string.h>

enum { WHISPER_FRAME = 400, WHISPER_SHIFT = 160 };
static const double PI = 3.14159265358979323846, LEAST_LOG10 = 1e-10, LEAST = 0x1p-23, LOG10_E = 0.43429448190325182765;
static const double PREEMPHASIS = 0.97, LIFTER = 22, LOWEST = 20;

/* A triangle over the bins first .. first + n - 1 of the power spectrum. */
typedef struct filter {
    int64_t first, n;
    double *weight; /* [n] */
} filter;

typedef struct plan {
    const oct_steps *steps;
    int64_t length, shift, size; /* of a frame, from one to the next, of its transform; samples */
    int n_filters;
    double *window; /* [length] */
    filter *filters;
    double *cosines; /* [n_features][n_filters], with the lifter; NULL: spectra are wanted */
    oct_fft fft;
    double *frame, *spectrum; /* [size] pairs */
    double *scratch, *energy; /* [n_filters] */
    double loudness;          /* logarithm of the energy of the frame */
} plan;

static bool of_whisper(const oct_steps *s)
{
    return s->features == OCT_FEATURES_LOG_MEL;
}

int oct_features_rate(const oct_steps *s)
{
    return s->rate ? s->rate : OCT_FEATURES_RATE;
}

static int64_t in_samples(const oct_steps *s, int ms)
{
    return (int64_t)oct_features_rate(s) * ms / 1000;
}

static int64_t length_of(const oct_steps *s)
{
    return of_whisper(s) ? WHISPER_FRAME : in_samples(s, s->frame_length ? s->frame_length : OCT_FRAME_LENGTH);
}

static int64_t shift_of(const oct_steps *s)
{
    return of_whisper(s) ? WHISPER_SHIFT : in_samples(s, s->frame_shift ? s->frame_shift : OCT_FRAME_SHIFT);
}

int64_t oct_features_frames(const oct_steps *s, int64_t n)
{
    const int64_t length = length_of(s), shift = shift_of(s);
    if (of_whisper(s))
        return n / shift;
    if (s->mirrored)
        return n > INT64_MAX - shift ? -1 : (n + shift / 2) / shift;
    return n < length ? 0 : 1 + (n - length) / shift;
}

int64_t oct_features_samples(const oct_steps *s, int64_t frames)
{
    const int64_t length = length_of(s), shift = shift_of(s);
    int64_t n;
    if (__builtin_mul_overflow(frames, shift, &n) || n > INT64_MAX - length)
        return -1;
    return of_whisper(s) ? n : s->mirrored ? n - shift / 2 : n - shift + length;
}

/* ---- tables ---- */

static double hertz_to_mel(bool slaney, double f)
{
    if (!slaney)
        return 1127.0 * oct_log(1.0 + f / 700.0);
    return f < 1000 ? f * 3 / 200 : 15 + oct_log(f / 1000) * (27 / oct_log(6.4));
}

static double slaney_to_hertz(double m)
{
    return m < 15 ? m * 200 / 3 : 1000 * oct_exp((m - 15) * (oct_log(6.4) / 27));
}

/* Weight of a place on the scale of the filter's corners. */
static double triangle(double at, double left, double centre, double right)
{
    const double up = (at - left) / (centre - left), down = (right - at) / (right - centre),
                 least = up < down ? up : down;
    return least > 0 ? least : 0;
}

/* A filter of a number of bins, whose places on the scale of its corners are known. weights: scratch, [bins]. */
static oct_status make_filter(filter *f, const double *corner, double scale, const double *place, int64_t bins,
                              double *weights, oct_arena *a, oct_err *err)
{
    int64_t last = -1;
    f->first = 0;
    for (int64_t i = 0; i < bins; i++) {
        weights[i] = scale * triangle(place[i], corner[0], corner[1], corner[2]);
        if (weights[i] > 0) {
            f->first = last < 0 ? i : f->first;
            last = i;
        }
    }
    f->n = last < 0 ? 0 : last + 1 - f->first;
    f->weight = oct_arena_calloc(a, (size_t)f->n + 1, sizeof *f->weight);
    if (!f->weight)
        return oct_nomem(err);
    memcpy(f->weight, weights + f->first, (size_t)f->n * sizeof *f->weight);
    return OCT_OK;
}

/* Whisper's triangles are straight over frequency and of equal area, Kaldi's straight over the mel scale. */
static oct_status make_filters(plan *p, oct_arena *a, oct_err *err)
{
    const bool whisper = of_whisper(p->steps);
    const double rate = oct_features_rate(p->steps), half = rate / 2;
    const double top = p->steps->high_freq > 0 ? p->steps->high_freq : half + p->steps->high_freq;
    const double low = hertz_to_mel(whisper, whisper ? 0 : LOWEST), high = hertz_to_mel(whisper, top);
    const double step = (high - low) / (p->n_filters + 1);
    const int64_t bins = p->size / 2 + whisper;
    double *place = oct_arena_calloc(a, (size_t)bins, sizeof *place),
           *weights = oct_arena_calloc(a, (size_t)bins, sizeof *weights);
    if (!place || !weights)
        return oct_nomem(err);
    for (int64_t i = 0; i < bins; i++) {
        const double hertz = (double)i * rate / (double)p->size;
        place[i] = whisper ? hertz : hertz_to_mel(false, hertz);
    }
    for (int k = 0; k < p->n_filters; k++) {
        double corner[3];
        for (int i = 0; i < 3; i++) {
            const double m = low + (k + i) * step;
            corner[i] = whisper ? slaney_to_hertz(m) : m;
        }
        const double scale = whisper ? 2 / (corner[2] - corner[0]) : 1;
        OCT_TRY(make_filter(&p->filters[k], corner, scale, place, bins, weights, a, err));
    }
    return OCT_OK;
}

static void make_window(plan *p)
{
    const bool whisper = of_whisper(p->steps);
    const double turn = 2 * PI / (double)(whisper ? p->length : p->length - 1);
    for (int64_t i = 0; i < p->length; i++) {
        const double hann = 0.5 - 0.5 * oct_cos(turn * (double)i);
        p->window[i] = whisper ? hann : hann > 0 ? oct_exp(0.85 * oct_log(hann)) : 0;
    }
}

static void make_cosines(plan *p)
{
    const int n = p->n_filters;
    for (int k = 0; k < p->steps->n_features; k++)
        for (int i = 0; i < n; i++)
            p->cosines[k * n + i] = sqrt((k ? 2.0 : 1.0) / n) * oct_cos(PI / n * (i + 0.5) * k) *
                                    (1 + LIFTER / 2 * oct_sin(PI * k / LIFTER));
}

static oct_status prepare(plan *p, oct_arena *a, oct_err *err)
{
    const oct_steps *s = p->steps;
    const bool cepstra = s->features == OCT_FEATURES_MFCC;
    p->length = p->size = length_of(s);
    p->shift = shift_of(s);
    for (p->size = of_whisper(s) ? p->size : 1; p->size < p->length;)
        p->size *= 2;
    p->n_filters = !cepstra ? s->n_features : s->mel_bins ? s->mel_bins : OCT_MEL_BINS;
    OCT_TRY(oct_fft_plan(&p->fft, p->size, a, err));
    p->window = oct_arena_calloc(a, (size_t)p->length, sizeof *p->window);
    p->filters = oct_arena_calloc(a, (size_t)p->n_filters, sizeof *p->filters);
    p->frame = oct_arena_calloc(a, (size_t)p->size, 2 * sizeof *p->frame);
    p->spectrum = oct_arena_calloc(a, (size_t)p->size, 2 * sizeof *p->spectrum);
    p->scratch = oct_arena_calloc(a, oct_fft_scratch(&p->fft) + 1, sizeof *p->scratch);
    p->energy = oct_arena_calloc(a, (size_t)p->n_filters, sizeof *p->energy);
    if (cepstra)
        p->cosines = oct_arena_calloc(a, (size_t)s->n_features * (size_t)p->n_filters, sizeof *p->cosines);
    if (!p->window || !p->filters || !p->frame || !p->spectrum || !p->scratch || !p->energy || (cepstra && !p->cosines))
        return oct_nomem(err);
    make_window(p);
    if (cepstra)
        make_cosines(p);
    return make_filters(p, a, err);
}

/* ---- frames ---- */

/* The place within 0 .. n - 1 that a place outside it mirrors; the sample at the end once (Whisper) or twice. */
static int64_t mirror(int64_t at, int64_t n, bool once)
{
    const int64_t period = once ? 2 * (n - 1) : 2 * n;
    if (period == 0)
        return 0;
    at %= period;
    at = at < 0 ? at + period : at;
    return at < n ? at : period - at - !once;
}

static void take(plan *p, const float *x, int64_t n, int64_t k)
{
    const bool whisper = of_whisper(p->steps);
    const int64_t begin = k * p->shift - (whisper              ? p->length / 2
                                          : p->steps->mirrored ? p->length / 2 - p->shift / 2
                                                               : 0);
    const double scale = whisper || p->steps->normalize_samples ? 1 : 32768;
    for (int64_t i = 0; i < p->length; i++) {
        const int64_t at = begin + i;
        p->frame[2 * i] = scale * (double)x[at >= 0 && at < n ? at : mirror(at, n, whisper)];
    }
}

/* NaN stays, here and below, so that it is found. */
static double log_of(double energy)
{
    return oct_log(energy < LEAST ? LEAST : energy);
}

/* Kaldi's steps between samples and window. */
static void emphasize(plan *p)
{
    double sum = 0, energy = 0;
    for (int64_t i = 0; i < p->length; i++)
        sum += p->frame[2 * i];
    const double mean = sum / (double)p->length;
    for (int64_t i = 0; i < p->length; i++) {
        p->frame[2 * i] -= mean;
        energy += p->frame[2 * i] * p->frame[2 * i];
    }
    p->loudness = log_of(energy);
    for (int64_t i = p->length - 1; i >= 0; i--)
        p->frame[2 * i] -= PREEMPHASIS * p->frame[2 * (i > 0 ? i - 1 : 0)];
}

static void pass_filters(plan *p)
{
    for (int64_t i = 0; i < p->length; i++)
        p->frame[2 * i] *= p->window[i];
    oct_fft_run(&p->fft, false, p->frame, p->spectrum, p->scratch);
    for (int k = 0; k < p->n_filters; k++) {
        const filter *f = &p->filters[k];
        double sum = 0;
        for (int64_t i = 0; i < f->n; i++) {
            const double *z = p->spectrum + 2 * (f->first + i);
            sum += f->weight[i] * (z[0] * z[0] + z[1] * z[1]);
        }
        p->energy[k] = sum;
    }
}

static void emit(plan *p, float *out)
{
    const int n = p->n_filters;
    if (of_whisper(p->steps)) {
        for (int k = 0; k < n; k++)
            out[k] = (float)(LOG10_E * oct_log(p->energy[k] < LEAST_LOG10 ? LEAST_LOG10 : p->energy[k]));
        return;
    }
    for (int k = 0; k < n; k++)
        p->energy[k] = log_of(p->energy[k]);
    for (int k = 0; k < p->steps->n_features; k++) {
        double sum = p->energy[k < n ? k : 0];
        if (p->cosines) {
            sum = 0;
            for (int i = 0; i < n; i++)
                sum += p->cosines[k * n + i] * p->energy[i];
        }
        out[k] = (float)sum;
    }
    if (p->cosines && !p->steps->no_energy)
        out[0] = (float)p->loudness;
}

/* What is more than 80 dB below the loudest is that far below it. */
static void limit(float *y, int64_t n)
{
    float most = y[0];
    for (int64_t i = 1; i < n; i++)
        most = y[i] > most ? y[i] : most;
    for (int64_t i = 0; i < n; i++)
        y[i] = ((y[i] < most - 8 ? most - 8 : y[i]) + 4) / 4;
}

oct_status oct_features_compute(const oct_steps *s, const float *x, int64_t n, float *out, oct_err *err)
{
    const int64_t frames = oct_features_frames(s, n);
    oct_arena *a = oct_arena_create();
    if (!a)
        return oct_nomem(err);
    plan p = { .steps = s };
    const oct_status st = prepare(&p, a, err);
    for (int64_t k = 0; st == OCT_OK && k < frames; k++) {
        take(&p, x, n, k);
        if (!of_whisper(s))
            emphasize(&p);
        pass_filters(&p);
        emit(&p, out + k * s->n_features);
    }
    if (st == OCT_OK && of_whisper(s) && frames > 0)
        limit(out, frames * s->n_features);
    oct_arena_destroy(a);
    return st;
}
