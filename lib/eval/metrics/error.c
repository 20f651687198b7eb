/* Sums of squares and products over two tensors. Eight lanes, added up as a tree, are the same on every CPU. */
#include "eval/metrics/metric.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

typedef struct lanes {
    double signal[LANES], noise[LANES], other[LANES], dot[LANES];
} lanes;

static double tree(const double v[LANES])
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

static void add_one(oct_error *e, lanes *s, int lane, float y, float yq)
{
    if (!isfinite(y) || !isfinite(yq)) {
        e->broken += !(y == yq || (isnan(y) && isnan(yq)));
        return;
    }
    double a = y, b = yq, d = a - b;
    s->signal[lane] += a * a;
    s->noise[lane] += d * d;
    s->other[lane] += b * b;
    s->dot[lane] += a * b;
    if (fabs(d) > e->max_abs)
        e->max_abs = fabs(d);
}

enum { BLOCK = 64 * LANES };

/* Whether all n values of both are finite. */
static bool all_finite(const float *y, const float *yq, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t a, b;
        memcpy(&a, &y[i], sizeof a);
        memcpy(&b, &yq[i], sizeof b);
        bad |= (uint32_t)((a & 0x7f800000u) == 0x7f800000u) | (uint32_t)((b & 0x7f800000u) == 0x7f800000u);
    }
    return !bad;
}

/* The same as add_one for each element, for a block of finite values. */
static void add_block(oct_error *e, lanes *s, const float *y, const float *yq)
{
    double most[LANES] = { 0 };
    for (size_t i = 0; i < BLOCK; i += LANES)
        for (int k = 0; k < LANES; k++) {
            double a = y[i + (size_t)k], b = yq[i + (size_t)k], d = a - b, m = d < 0 ? -d : d;
            s->signal[k] += a * a;
            s->noise[k] += d * d;
            s->other[k] += b * b;
            s->dot[k] += a * b;
            most[k] = m > most[k] ? m : most[k];
        }
    for (int k = 0; k < LANES; k++)
        e->max_abs = most[k] > e->max_abs ? most[k] : e->max_abs;
}

void oct_error_add(oct_error *e, const float *y, const float *yq, size_t n)
{
    lanes s = { { 0 }, { 0 }, { 0 }, { 0 } };
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t left = n - at < BLOCK ? n - at : BLOCK;
        if (left == BLOCK && all_finite(y + at, yq + at, left)) {
            add_block(e, &s, y + at, yq + at);
            continue;
        }
        for (size_t i = 0; i < left; i++)
            add_one(e, &s, (int)(i % LANES), y[at + i], yq[at + i]);
    }
    e->signal += tree(s.signal);
    e->noise += tree(s.noise);
    e->other += tree(s.other);
    e->dot += tree(s.dot);
    e->n += n;
}

void oct_error_join(oct_error *e, const oct_error *part)
{
    e->signal += part->signal;
    e->noise += part->noise;
    e->other += part->other;
    e->dot += part->dot;
    e->n += part->n;
    e->broken += part->broken;
    if (part->max_abs > e->max_abs)
        e->max_abs = part->max_abs;
}

double oct_error_sqnr(const oct_error *e)
{
    return e->broken ? NAN : oct_decibels(e->signal, e->noise);
}

double oct_error_cosine(const oct_error *e)
{
    if (e->broken)
        return NAN;
    if (e->signal == 0 || e->other == 0)
        return e->signal == e->other;
    if (e->noise == 0)
        return 1;
    double c = e->dot / (sqrt(e->signal) * sqrt(e->other));
    return c > 1 ? 1 : c < -1 ? -1 : c;
}
