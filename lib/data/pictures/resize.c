/* lib/data/pictures/resize.c -- separable resampling. The 8-bit antialiased filters work in fixed point with an 8-bit
 * picture between the passes, horizontal first, as Pillow's do, so that results are the same numbers. */
#include "data/pictures/image.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { BITS = 22 }; /* of the fractions: 32, less 8 of the value, less 2 for overshoot */

/* For each output position: first input position, how many, and their weights. */
typedef struct taps {
    int *first, *count;
    int width;      /* weights are stored `width` apart */
    double *real;   /* [out][width] */
    int32_t *fixed; /* [out][width] */
} taps;

static void taps_free(taps *t)
{
    oct_free(t->first);
    oct_free(t->count);
    oct_free(t->real);
    oct_free(t->fixed);
    *t = (taps){ 0 };
}

static bool taps_alloc(taps *t, int out, int width)
{
    *t = (taps){ .width = width };
    t->first = oct_calloc((size_t)out, sizeof *t->first);
    t->count = oct_calloc((size_t)out, sizeof *t->count);
    t->real = oct_calloc((size_t)out * (size_t)width, sizeof *t->real);
    t->fixed = oct_calloc((size_t)out * (size_t)width, sizeof *t->fixed);
    if (t->first && t->count && t->real && t->fixed)
        return true;
    taps_free(t);
    return false;
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

/* Weights of a filter of the given half width, widened when shrinking, normalised over what lies inside. */
static bool antialiased(taps *t, int in, int out, double half, double (*filter)(double))
{
    const double scale = (double)in / out, wide = scale < 1.0 ? 1.0 : scale, support = half * wide, inv = 1.0 / wide;
    if (!taps_alloc(t, out, (int)ceil(support) * 2 + 1))
        return false;
    for (int o = 0; o < out; o++) {
        const double centre = (o + 0.5) * scale;
        int lo = (int)(centre - support + 0.5), hi = (int)(centre + support + 0.5);
        lo = lo < 0 ? 0 : lo;
        hi = hi > in ? in : hi;
        double *w = t->real + (size_t)o * (size_t)t->width, sum = 0;
        for (int i = 0; i < hi - lo; i++)
            sum += w[i] = filter((i + lo - centre + 0.5) * inv);
        for (int i = 0; i < hi - lo; i++) {
            if (sum != 0)
                w[i] /= sum;
            double f = w[i] * (1 << BITS);
            t->fixed[(size_t)o * (size_t)t->width + (size_t)i] = (int32_t)(f < 0 ? f - 0.5 : f + 0.5);
        }
        t->first[o] = lo;
        t->count[o] = hi - lo;
    }
    return true;
}

/* Two neighbours, with 11-bit fractions in `fixed` (OpenCV's INTER_LINEAR). */
static bool two_neighbours(taps *t, int in, int out)
{
    const double scale = (double)in / out;
    if (!taps_alloc(t, out, 2))
        return false;
    for (int o = 0; o < out; o++) {
        float f = (float)((o + 0.5) * scale - 0.5);
        int i = (int)floorf(f);
        f -= (float)i;
        if (i < 0) {
            i = 0;
            f = 0;
        }
        if (i >= in - 1) {
            i = in - 1;
            f = 0;
        }
        t->first[o] = i;
        t->count[o] = i + 1 < in ? 2 : 1;
        t->real[2 * o] = (double)(1.0f - f);
        t->real[2 * o + 1] = (double)f;
        t->fixed[2 * o] = (int32_t)rintf((1.0f - f) * 2048.0f);
        t->fixed[2 * o + 1] = (int32_t)rintf(f * 2048.0f);
    }
    return true;
}

static uint8_t clip(int64_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One output row or pixel run: n values, input positions `step` values apart. */
static void weigh_u8(const uint8_t *src, size_t step, int count, const int32_t *w, uint8_t *dst, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        int64_t sum = 1 << (BITS - 1);
        for (int i = 0; i < count; i++)
            sum += (int64_t)src[(size_t)i * step + k] * w[i];
        dst[k] = clip(sum >> BITS);
    }
}

static void weigh_f32(const float *src, size_t step, int count, const double *w, float *dst, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += (double)src[(size_t)i * step + k] * w[i];
        dst[k] = (float)sum;
    }
}

static void weigh(const oct_image *src, size_t at, size_t step, const taps *t, int o, oct_image *dst, size_t to,
                  size_t n)
{
    const size_t k = (size_t)o * (size_t)t->width;
    if (src->f32)
        weigh_f32((const float *)src->data + at, step, t->count[o], t->real + k, (float *)dst->data + to, n);
    else
        weigh_u8((const uint8_t *)src->data + at, step, t->count[o], t->fixed + k, (uint8_t *)dst->data + to, n);
}

static oct_status across(oct_image *im, int w, const taps *t, oct_err *err)
{
    oct_image to;
    OCT_TRY(oct_image_create(&to, w, im->h, im->c, im->f32, err));
    const size_t c = (size_t)im->c;
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < w; x++)
            weigh(im, ((size_t)y * (size_t)im->w + (size_t)t->first[x]) * c, c, t, x, &to,
                  ((size_t)y * (size_t)w + (size_t)x) * c, c);
    oct_image_free(im);
    *im = to;
    return OCT_OK;
}

static oct_status down(oct_image *im, int h, const taps *t, oct_err *err)
{
    oct_image to;
    OCT_TRY(oct_image_create(&to, im->w, h, im->c, im->f32, err));
    const size_t row = (size_t)im->w * (size_t)im->c;
    for (int y = 0; y < h; y++)
        weigh(im, (size_t)t->first[y] * row, row, t, y, &to, (size_t)y * row, row);
    oct_image_free(im);
    *im = to;
    return OCT_OK;
}

typedef struct filter {
    double half; /* its width without shrinking, halved */
    double (*at)(double);
} filter;

static oct_status antialias_side(oct_image *im, int to, bool vertical, const filter *f, oct_err *err)
{
    taps t;
    if (to == (vertical ? im->h : im->w))
        return OCT_OK;
    if (!antialiased(&t, vertical ? im->h : im->w, to, f->half, f->at))
        return oct_nomem(err);
    oct_status s = vertical ? down(im, to, &t, err) : across(im, to, &t, err);
    taps_free(&t);
    return s;
}

/* The picture between the passes is rounded, so their order shows. Pillow 13 begins with the columns where lines are to
 * go, and more than twice as many as columns; earlier ones did nearly never (found by its results for pictures of 2 to
 * 300 pixels a side). */
static oct_status antialias(oct_image *im, int w, int h, const filter *f, oct_err *err)
{
    const bool down_first = h < im->h && im->h - h > 2 * (im->w - w);
    OCT_TRY(antialias_side(im, down_first ? h : w, down_first, f, err));
    return antialias_side(im, down_first ? w : h, !down_first, f, err);
}

/* A row of `linear` in the horizontal direction: 8-bit values times 2048 as integers, or floats. */
static void linear_row_u8(const oct_image *im, const uint8_t *src, const taps *tx, int w, int32_t *dst)
{
    for (int x = 0; x < w; x++)
        for (int k = 0; k < im->c; k++) {
            const uint8_t *p = src + (size_t)tx->first[x] * (size_t)im->c + k;
            int32_t second = tx->count[x] > 1 ? p[im->c] : 0;
            dst[x * im->c + k] = p[0] * tx->fixed[2 * x] + second * tx->fixed[2 * x + 1];
        }
}

static void linear_u8(const oct_image *im, const taps *tx, const taps *ty, oct_image *to, int32_t *rows)
{
    const size_t n = (size_t)to->w * (size_t)to->c, stride = (size_t)im->w * (size_t)im->c;
    int32_t *a = rows, *b = rows + n;
    const uint8_t *src = im->data;
    for (int y = 0; y < to->h; y++) {
        size_t first = (size_t)ty->first[y], second = first + (ty->count[y] > 1);
        linear_row_u8(im, src + first * stride, tx, to->w, a);
        linear_row_u8(im, src + second * stride, tx, to->w, b);
        uint8_t *dst = (uint8_t *)to->data + (size_t)y * n;
        for (size_t k = 0; k < n; k++)
            dst[k] = clip(
                (((ty->fixed[2 * y] * (a[k] >> 4)) >> 16) + ((ty->fixed[2 * y + 1] * (b[k] >> 4)) >> 16) + 2) >> 2);
    }
}

static oct_status linear(oct_image *im, int w, int h, oct_err *err)
{
    taps tx = { 0 }, ty = { 0 };
    oct_image to = { 0 };
    int32_t *rows = oct_alloc((size_t)w * (size_t)im->c * 2 * sizeof *rows);
    oct_status s = OCT_OK;
    if (!rows || !two_neighbours(&tx, im->w, w) || !two_neighbours(&ty, im->h, h))
        s = oct_nomem(err);
    else if (im->f32) {
        if ((s = across(im, w, &tx, err)) == OCT_OK)
            s = down(im, h, &ty, err);
    } else if ((s = oct_image_create(&to, w, h, im->c, false, err)) == OCT_OK) {
        linear_u8(im, &tx, &ty, &to, rows);
        oct_image_free(im);
        *im = to;
    }
    taps_free(&tx);
    taps_free(&ty);
    oct_free(rows);
    return s;
}

/* The source position of each of n results: the sum of steps begins in the middle of the first, and is rounded as it
 * grows, as Pillow's is. */
static int *nearest_positions(int in, int n)
{
    int *at = oct_alloc((size_t)n * sizeof *at);
    const double step = (double)in / n;
    double x = step * 0.5;
    for (int i = 0; at && i < n; i++, x += step)
        at[i] = x >= in ? in - 1 : (int)x;
    return at;
}

static oct_status nearest(oct_image *im, int w, int h, oct_err *err)
{
    oct_image to = { 0 };
    int *u = nearest_positions(im->w, w), *v = nearest_positions(im->h, h);
    oct_status s = u && v ? oct_image_create(&to, w, h, im->c, im->f32, err) : oct_nomem(err);
    const size_t size = (size_t)im->c * (im->f32 ? 4 : 1);
    for (int y = 0; s == OCT_OK && y < h; y++)
        for (int x = 0; x < w; x++)
            memcpy((char *)to.data + ((size_t)y * (size_t)w + (size_t)x) * size,
                   (const char *)im->data + ((size_t)v[y] * (size_t)im->w + (size_t)u[x]) * size, size);
    oct_free(u);
    oct_free(v);
    if (s != OCT_OK)
        return s;
    oct_image_free(im);
    *im = to;
    return OCT_OK;
}

oct_status oct_image_resize(oct_image *im, int w, int h, oct_interp interp, oct_err *err)
{
    if (w == im->w && h == im->h)
        return OCT_OK;
    switch (interp) {
    case OCT_INTERP_NEAREST: return nearest(im, w, h, err);
    case OCT_INTERP_LINEAR: return linear(im, w, h, err);
    case OCT_INTERP_BICUBIC: return antialias(im, w, h, &(filter){ 2.0, cubic }, err);
    default: return antialias(im, w, h, &(filter){ 1.0, triangle }, err);
    }
}
