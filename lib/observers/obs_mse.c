/* lib/observers/obs_mse.c -- the range with the least expected squared error, which is that of rounding inside the
 * range and of clipping outside. */
#include "observers/view.h"

#include <math.h>

/* A range as two magnitudes. */
typedef struct limits {
    double pos, neg;
} limits;

/* The squared errors of one side: s^2 / 12 for each value inside, but x^2 for those that round to 0, and the squared
 * distance from the end, times weight, for those outside. Values at the peak cost nothing if the range ends there. */
static double side_cost(const oct_view *v, int side, double end, double s, double weight)
{
    const oct_side *d = &v->side[side];
    if (d->peak == 0)
        return 0;
    double half = s / 2 < end ? s / 2 : end;
    oct_moments near = oct_view_below(v, side, half), in = oct_view_below(v, side, end);
    double n = d->all.n - in.n, s1 = d->all.s1 - in.s1, s2 = d->all.s2 - in.s2;
    double clip = s2 - 2 * end * s1 + end * end * n;
    double off = d->peak - end;
    double point = off > 0 ? off * off : 0;
    return near.s2 + (in.n - near.n) * (s * s / 12) + weight * ((clip > 0 ? clip : 0) + d->peak_count * point);
}

static double cost(const oct_view *v, oct_qrange g, limits r, double weight)
{
    double levels = (double)g.qmax - g.qmin;
    double top = r.pos > r.neg ? r.pos : r.neg;
    double s = (g.symmetric ? 2 * top : r.pos + r.neg) / levels;
    return side_cost(v, 0, g.symmetric ? top : r.pos, s, weight) +
           side_cost(v, 1, g.symmetric ? top : r.neg, s, weight);
}

static limits scaled(limits r, double f, bool pos, bool neg, limits full)
{
    if (pos)
        r.pos = fmin(r.pos * f, full.pos);
    if (neg)
        r.neg = fmin(r.neg * f, full.neg);
    return r;
}

/* Moves one magnitude, or both by the same factor, to the least cost within factors of 1/2 to 2. Ternary search
 * suffices, because the clipping error is convex in the end of the range and the rounding error is quadratic. */
static limits descend(const oct_view *v, oct_qrange g, limits r, bool pos, bool neg, limits full, double w)
{
    double lo = 0.5, hi = 2;
    for (int i = 0; i < 16; i++) {
        double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;
        if (cost(v, g, scaled(r, a, pos, neg, full), w) < cost(v, g, scaled(r, b, pos, neg, full), w))
            hi = b;
        else
            lo = a;
    }
    limits to = scaled(r, (lo + hi) / 2, pos, neg, full);
    return cost(v, g, to, w) < cost(v, g, r, w) ? to : r;
}

static oct_range range_of(limits r)
{
    return (oct_range){ oct_view_f32(0 - r.neg), oct_view_f32(r.pos) };
}

/* Replaces *best by r if that costs less: by the exact cost if there is no weight and there are not too many quantized
 * values. */
static void try(const oct_view *v, oct_qrange g, limits r, double w, oct_range *best, double *least)
{
    oct_range range = range_of(r);
    bool exact = w == 1 && (double)g.qmax - g.qmin <= 1024; /* the exact cost is O(quantized values) */
    double c = exact ? oct_view_error(v, oct_qparams_from_range(range, g), g) : cost(v, g, r, w);
    if (c < *least) {
        *least = c;
        *best = range;
    }
}

static void select_mse(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    limits full = { v->side[0].peak, v->side[1].peak }, at = full;
    double w = param, c = cost(v, g, full, w);
    for (int k = 1; k <= 48; k++) { /* a first guess: both ends by the same factor, down to 2^-12 */
        static const double root[4] = { 1, 0x1.ae89f995ad3adp-1, 0x1.6a09e667f3bcdp-1, 0x1.306fe0a31b715p-1 };
        double f = ldexp(root[k % 4], -(k / 4));
        limits r = { full.pos * f, full.neg * f };
        double t = cost(v, g, r, w);
        if (t < c) {
            c = t;
            at = r;
        }
    }
    for (int round = 0; round < 4; round++) {
        at = descend(v, g, at, true, true, full, w);
        if (full.pos > 0 && full.neg > 0 && !g.symmetric) {
            at = descend(v, g, at, true, false, full, w);
            at = descend(v, g, at, false, true, full, w);
        }
    }
    double least = INFINITY;
    *out = range_of(full);
    try(v, g, full, w, out, &least);
    for (int i = -4; i <= 4; i++)
        for (int j = -2; j <= 2; j++) {
            if ((full.neg == 0 || full.pos == 0 || g.symmetric) && j != 0)
                continue;
            double p = 1 + i / 64.0, n = full.pos == 0 || g.symmetric ? p : 1 + j / 32.0;
            try(v, g, (limits){ fmin(at.pos * p, full.pos), fmin(at.neg * n, full.neg) }, w, out, &least);
        }
}

const oct_observer oct_observer_mse = { .name = "hist-mse",
                                        .summary = "least expected squared error (default)",
                                        .has_param = true,
                                        .param = 1,
                                        .param_min = 1,
                                        .param_max = 1024,
                                        .select = select_mse };
