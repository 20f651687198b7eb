/* Masks as runs: from polygons and texts, and their overlap. */
#include "eval/sets/mask.h"

#include "base/mem.h"
#include "eval/sets/sample_set.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_POINTS = 1 << 24 }; /* of an outline, in fifths of a pixel */
static const double FAR = 1e6;  /* corners lie within so many pixels of the picture's origin */

void oct_mask_free(oct_mask *m)
{
    oct_free(m->run);
    *m = (oct_mask){ 0 };
}

void oct_mask_begin(oct_mask *m)
{
    m->n = 0;
    m->area = 0;
}

bool oct_mask_turn(oct_mask *m, uint64_t *last, uint64_t pixel)
{
    if (!m->n)
        *last = 0;
    if (!OCT_SET_GROW(m->run, m->n, m->cap))
        return false;
    m->area += m->n % 2 ? pixel - *last : 0;
    m->run[m->n++] = (uint32_t)(pixel - *last);
    *last = pixel;
    return true;
}

double oct_mask_overlap(const oct_mask *a, const oct_mask *b, bool crowd)
{
    uint64_t both = 0, left_a = a->n ? a->run[0] : 0, left_b = b->n ? b->run[0] : 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        const uint64_t step = left_a < left_b ? left_a : left_b;
        both += i % 2 && k % 2 ? step : 0;
        left_a -= step;
        left_b -= step;
        while (!left_a && ++i < a->n)
            left_a = a->run[i];
        while (!left_b && ++k < b->n)
            left_b = b->run[k];
        if (i >= a->n || k >= b->n)
            break;
    }
    if (!both)
        return 0;
    return (double)both / (double)(crowd ? a->area : a->area + b->area - both);
}

bool oct_mask_read_runs(const char *text, uint64_t pixels, uint32_t *run, size_t *n)
{
    uint64_t sum = 0;
    *n = 0;
    for (const char *s = text; *s; ++*n) {
        int64_t x = 0;
        for (int shift = 0;; shift += 5) {
            const int c = *s++ - '0';
            if (c < 0 || c > 63 || shift > 35)
                return false;
            x |= (int64_t)(c & 31) << shift;
            if (c & 32)
                continue;
            x -= c & 16 ? (int64_t)1 << (shift + 5) : 0;
            break;
        }
        x += *n > 2 ? (int64_t)run[*n - 2] : 0; /* later runs are differences from the last one of their kind */
        if (x < 0 || (uint64_t)x > pixels - sum)
            return false;
        run[*n] = (uint32_t)x;
        sum += (uint64_t)x;
    }
    return sum == pixels;
}

/* ---- polygons, by the rule of rleFrPoly in pycocotools ---- */

typedef struct point {
    int x, y;
} point;

typedef struct outline {
    point *at; /* the points along the boundary, in fifths of a pixel */
    size_t n, cap;
    uint32_t *crossing; /* pixels, counted down the columns, at which a column's pixels begin or end to be inside */
    size_t n_crossing, cap_crossing;
} outline;

static int scaled(double v)
{
    return (int)(5 * v + 0.5);
}

static bool add_edge(outline *o, point a, point b)
{
    const int dx = abs(b.x - a.x), dy = abs(b.y - a.y);
    const bool flat = dx >= dy, flip = flat ? a.x > b.x : a.y > b.y;
    const point from = flip ? b : a, to = flip ? a : b;
    const int n = flat ? dx : dy;
    const double slope = n ? (flat ? (double)(to.y - from.y) / dx : (double)(to.x - from.x) / dy) : 0;
    for (int d = 0; d <= n; d++) {
        const int t = flip ? n - d : d;
        if (!OCT_SET_GROW(o->at, o->n, o->cap))
            return false;
        o->at[o->n++] = flat ? (point){ from.x + t, (int)(from.y + slope * t + 0.5) }
                             : (point){ (int)(from.x + slope * t + 0.5), from.y + t };
    }
    return true;
}

/* Where the boundary crosses the middle of a column of pixels. */
static bool find_crossings(outline *o, int64_t w, int64_t h)
{
    o->n_crossing = 0;
    for (size_t i = 1; i < o->n; i++) {
        const point a = o->at[i - 1], b = o->at[i];
        if (a.x == b.x)
            continue;
        const double x = ((b.x < a.x ? b.x : b.x - 1) + 0.5) / 5 - 0.5;
        double y = ((b.y < a.y ? b.y : a.y) + 0.5) / 5 - 0.5;
        if (floor(x) != x || x < 0 || x > (double)(w - 1))
            continue;
        y = ceil(y < 0 ? 0 : y > (double)h ? (double)h : y);
        if (!OCT_SET_GROW(o->crossing, o->n_crossing, o->cap_crossing))
            return false;
        o->crossing[o->n_crossing++] = (uint32_t)((uint64_t)x * (uint64_t)h + (uint64_t)y);
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sets the pixels of a polygon: bits[w*h], down the columns. */
static oct_status fill(outline *o, const double *xy, size_t n, double ux, double uy, int64_t w, int64_t h,
                       uint8_t *bits, oct_err *err)
{
    double length = 0;
    o->n = 0;
    for (size_t i = 0; i < n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
        if (!(fabs(a[0] * ux) <= FAR && fabs(a[1] * uy) <= FAR && fabs(b[0] * ux) <= FAR && fabs(b[1] * uy) <= FAR))
            return oct_fail(err, OCT_EMALFORMED, "a corner of an object lies far outside of its picture");
        length += 5 * fmax(fabs(a[0] - b[0]) * ux, fabs(a[1] - b[1]) * uy) + 2;
        if (length > MOST_POINTS)
            return oct_fail(err, OCT_EUNSUPPORTED, "the outline of an object is too long");
        if (!add_edge(o, (point){ scaled(a[0] * ux), scaled(a[1] * uy) },
                      (point){ scaled(b[0] * ux), scaled(b[1] * uy) }))
            return oct_nomem(err);
    }
    if (!find_crossings(o, w, h))
        return oct_nomem(err);
    if (o->n_crossing)
        qsort(o->crossing, o->n_crossing, sizeof *o->crossing, ascending);
    for (size_t i = 0; i < o->n_crossing; i += 2) {
        const uint64_t end = i + 1 < o->n_crossing ? o->crossing[i + 1] : (uint64_t)(w * h);
        for (uint64_t at = o->crossing[i]; at < end; at++)
            bits[at] = 1;
    }
    return OCT_OK;
}

static oct_status of_bits(const uint8_t *bits, uint64_t n, oct_mask *m, oct_err *err)
{
    uint64_t last = 0;
    oct_mask_begin(m);
    for (uint64_t i = 0; i < n; i++)
        if (bits[i] != (m->n & 1) && !oct_mask_turn(m, &last, i))
            return oct_nomem(err);
    return oct_mask_turn(m, &last, n) ? OCT_OK : oct_nomem(err);
}

static oct_status of_polygons(const oct_object_mask *s, double ux, double uy, int64_t w, int64_t h, oct_mask *m,
                              oct_err *err)
{
    outline o = { 0 };
    const double *xy = s->xy;
    uint8_t *bits = oct_calloc((size_t)(w * h) + 1, 1);
    oct_status st = bits ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; i < s->n_polygons && st == OCT_OK; xy += 2 * s->corners[i++])
        st = fill(&o, xy, s->corners[i], ux, uy, w, h, bits, err);
    if (st == OCT_OK)
        st = of_bits(bits, (uint64_t)(w * h), m, err);
    oct_free(bits);
    oct_free(o.at);
    oct_free(o.crossing);
    return st;
}

oct_status oct_mask_of_object(const oct_object_mask *s, double ux, double uy, int64_t w, int64_t h, oct_mask *m,
                              oct_err *err)
{
    uint64_t at = 0, last = 0;
    if (w < 1 || h < 1 || w > OCT_MASK_MOST_PIXELS / h)
        return oct_fail(err, OCT_EUNSUPPORTED, "a picture of %lldx%lld is too large for masks", (long long)w,
                        (long long)h);
    if (!s->n_runs)
        return of_polygons(s, ux, uy, w, h, m, err);
    if (s->w != w || s->h != h)
        return oct_fail(err, OCT_EMALFORMED, "a mask is of %lldx%lld pixels, and its picture has %lldx%lld",
                        (long long)s->w, (long long)s->h, (long long)w, (long long)h);
    oct_mask_begin(m);
    for (size_t i = 0; i < s->n_runs; i++)
        if (!oct_mask_turn(m, &last, at += s->run[i]))
            return oct_nomem(err);
    return OCT_OK;
}
