/* lib/kernels/fft.c -- discrete Fourier transforms. */
#include "kernels/fft.h"

#include "kernels/math.h"

#include <string.h>

#define TWO_PI 0x1.921fb54442d18p+2

enum { LARGEST = 61 };

/* e^(-2 pi i k / n) for k < count. */
static double *roots(int64_t n, int64_t count, oct_arena *a)
{
    size_t bytes;
    double *w = oct_mul_size((size_t)count, 2 * sizeof *w, &bytes) ? oct_arena_aligned(a, bytes + 1, 64) : NULL;
    for (int64_t k = 0; w != NULL && k < count; k++) {
        const double at = TWO_PI * ((double)k / (double)n);
        w[2 * k] = oct_cos(at);
        w[2 * k + 1] = -oct_sin(at);
    }
    return w;
}

/* Fours first, then primes; false when one is too large. */
static bool factorize(oct_fft *f)
{
    int64_t rest = f->n;
    f->n_factors = 0;
    for (int p = 4; rest > 1 && p <= LARGEST; p = p == 4 ? 2 : p == 2 ? 3 : p + 2)
        for (; rest % p == 0; rest /= p)
            f->factor[f->n_factors++] = (int8_t)p;
    return rest == 1;
}

static oct_status plan_convolution(oct_fft *f, oct_arena *a, oct_err *err)
{
    oct_fft *inner = oct_arena_calloc(a, 1, sizeof *inner);
    int64_t m = 1;
    if (f->n > INT64_MAX / 64)
        return oct_nomem(err);
    while (m < 2 * f->n - 1)
        m *= 2;
    double *table = roots(2 * f->n, 2 * f->n, a), *chirp = oct_arena_calloc(a, (size_t)f->n, 2 * sizeof *chirp);
    double *b = oct_arena_calloc(a, (size_t)m, 2 * sizeof *b),
           *filter = oct_arena_calloc(a, (size_t)m, 2 * sizeof *filter);
    if (inner == NULL || table == NULL || chirp == NULL || b == NULL || filter == NULL)
        return oct_nomem(err);
    OCT_TRY(oct_fft_plan(inner, m, a, err));
    int64_t square = 0; /* k^2 modulo 2 n */
    for (int64_t k = 0; k < f->n; k++) {
        chirp[2 * k] = table[2 * square];
        chirp[2 * k + 1] = table[2 * square + 1];
        square = (square + 2 * k + 1) % (2 * f->n);
        const int64_t mirror = k == 0 ? 0 : m - k;
        b[2 * k] = b[2 * mirror] = chirp[2 * k];
        b[2 * k + 1] = b[2 * mirror + 1] = -chirp[2 * k + 1];
    }
    oct_fft_run(inner, false, b, filter, NULL);
    f->inner = inner;
    f->chirp = chirp;
    f->filter = filter;
    return OCT_OK;
}

oct_status oct_fft_plan(oct_fft *f, int64_t n, oct_arena *a, oct_err *err)
{
    *f = (oct_fft){ .n = n };
    if (!factorize(f))
        return plan_convolution(f, a, err);
    f->root = roots(n, n, a);
    return f->root != NULL ? OCT_OK : oct_nomem(err);
}

size_t oct_fft_scratch(const oct_fft *f)
{
    return f->inner == NULL ? 0 : 4 * (size_t)f->inner->n;
}

/* p values of one butterfly, rotated by their roots. */
static void butterfly(const oct_fft *f, int p, double sign, const double *t, double *y, int64_t step)
{
    if (p == 2) {
        y[0] = t[0] + t[2];
        y[1] = t[1] + t[3];
        y[2 * step] = t[0] - t[2];
        y[2 * step + 1] = t[1] - t[3];
        return;
    }
    if (p == 4) {
        const double sr = t[0] + t[4], si = t[1] + t[5], dr = t[0] - t[4], di = t[1] - t[5];
        const double ur = t[2] + t[6], ui = t[3] + t[7], vr = sign * (t[3] - t[7]), vi = -sign * (t[2] - t[6]);
        y[0] = sr + ur;
        y[1] = si + ui;
        y[2 * step] = dr + vr;
        y[2 * step + 1] = di + vi;
        y[4 * step] = sr - ur;
        y[4 * step + 1] = si - ui;
        y[6 * step] = dr - vr;
        y[6 * step + 1] = di - vi;
        return;
    }
    for (int q = 0; q < p; q++) {
        double re = t[0], im = t[1];
        for (int r = 1; r < p; r++) {
            const double *w = f->root + 2 * (f->n / p * (r * q % p));
            re += t[2 * r] * w[0] - sign * t[2 * r + 1] * w[1];
            im += sign * t[2 * r] * w[1] + t[2 * r + 1] * w[0];
        }
        y[2 * q * step] = re;
        y[2 * q * step + 1] = im;
    }
}

/* The transform of n values of x, `step` pairs apart, of factors from `level` on. */
static void transform(const oct_fft *f, int level, int64_t n, double sign, const double *x, int64_t step, double *y)
{
    if (n == 1) {
        y[0] = x[0];
        y[1] = x[1];
        return;
    }
    const int p = f->factor[level];
    const int64_t m = n / p, stride = f->n / n;
    for (int r = 0; r < p; r++)
        transform(f, level + 1, m, sign, x + 2 * r * step, step * p, y + 2 * r * m);
    for (int64_t k = 0; k < m; k++) {
        double t[2 * LARGEST];
        for (int r = 0; r < p; r++) {
            const double *w = f->root + 2 * (stride * r * k), re = y[2 * (r * m + k)], im = y[2 * (r * m + k) + 1];
            t[2 * r] = re * w[0] - sign * im * w[1];
            t[2 * r + 1] = sign * re * w[1] + im * w[0];
        }
        butterfly(f, p, sign, t, y + 2 * k, m);
    }
}

/* y = a * b, or a times the conjugate of b. */
static void times(double *y, const double *a, const double *b, double sign)
{
    const double re = a[0] * b[0] - sign * a[1] * b[1], im = sign * a[0] * b[1] + a[1] * b[0];
    y[0] = re;
    y[1] = im;
}

/* jk = (j^2 + k^2 - (k - j)^2) / 2: a convolution with a chirp, of a length that is a power of two. The inverse is the
 * transform of the conjugate, conjugated. */
static void convolve(const oct_fft *f, double sign, const double *x, double *y, double *scratch)
{
    const int64_t m = f->inner->n;
    double *a = scratch, *b = scratch + 2 * m;
    memset(a, 0, (size_t)m * 2 * sizeof *a);
    for (int64_t k = 0; k < f->n; k++) {
        const double v[2] = { x[2 * k], sign * x[2 * k + 1] };
        times(a + 2 * k, v, f->chirp + 2 * k, 1.0);
    }
    transform(f->inner, 0, m, 1.0, a, 1, b);
    for (int64_t k = 0; k < m; k++)
        times(b + 2 * k, b + 2 * k, f->filter + 2 * k, 1.0);
    transform(f->inner, 0, m, -1.0, b, 1, a);
    for (int64_t k = 0; k < f->n; k++) {
        times(y + 2 * k, a + 2 * k, f->chirp + 2 * k, 1.0);
        y[2 * k] /= (double)m;
        y[2 * k + 1] *= sign / (double)m;
    }
}

void oct_fft_run(const oct_fft *f, bool inverse, const double *x, double *y, double *scratch)
{
    const double sign = inverse ? -1.0 : 1.0;
    if (f->inner != NULL)
        convolve(f, sign, x, y, scratch);
    else
        transform(f, 0, f->n, sign, x, 1, y);
}
