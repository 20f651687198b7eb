/* lib/observers/obs_entropy.c -- the range whose quantized distribution diverges least (Kullback-Leibler) from that of
 * the values: Migacz, "8-bit inference with TensorRT", GTC 2017. Exact zeros are left out, because 0 is always
 * represented exactly. */
#include "observers/view.h"

#include <math.h>
#include <string.h>

#define SIDE_BINS 2048

/* A histogram with bins of equal width, which begin at 0, for the magnitudes of each sign (0: positive). */
typedef struct linear {
    double width;
    int bins[2];
    double count[2][SIDE_BINS];
} linear;

static void fill(const oct_view *v, linear *l)
{
    double top = fmax(v->side[0].peak, v->side[1].peak);
    l->width = top / SIDE_BINS;
    for (int s = 0; s < 2; s++) {
        const oct_side *d = &v->side[s];
        int n = (int)ceil(d->peak / l->width);
        n = n > SIDE_BINS ? SIDE_BINS : n;
        double before = 0;
        for (int i = 0; i < n; i++) {
            double to = i + 1 < n ? oct_view_below(v, s, (i + 1) * l->width).n : d->all.n;
            l->count[s][i] = to > before ? to - before : 0;
            before = to;
        }
        if (n > 0)
            l->count[s][n - 1] += d->peak_count;
        l->bins[s] = n;
    }
}

/* The count of bin i, from the lowest on, of a range of n[1] negative and n[0] positive bins. *beyond: how many clipped
 * values are added to it. */
static double count_at(const linear *l, const int n[2], const double clipped[2], int i, double *beyond)
{
    *beyond = 0;
    if (i == 0 && n[1] > 0)
        *beyond = clipped[1];
    if (i == n[0] + n[1] - 1 && n[0] > 0)
        *beyond = clipped[0];
    return i < n[1] ? l->count[1][n[1] - 1 - i] : l->count[0][i - n[1]];
}

static double x_log_x(double c)
{
    return c > 0 ? c * oct_log(c) : 0;
}

/* The divergence of the values, with those outside clipped onto the ends, from their quantized form, in which each
 * level is spread evenly over its bins that are not empty. +infinity if a level has only clipped values. */
static double divergence(const linear *l, const int n[2], const double clipped[2], int levels, double total)
{
    int bins = n[0] + n[1];
    double inside = 0, sum = 0;
    for (int k = 0, i = 0; k < levels; k++) {
        int end = (int)((int64_t)(k + 1) * bins / levels), filled = 0;
        double q = 0, p = 0;
        for (; i < end; i++) {
            double beyond, c = count_at(l, n, clipped, i, &beyond);
            if (c + beyond > 0)
                filled++;
            q += c;
            p += c + beyond;
            if (beyond > 0) /* the caller added c log c for every bin inside */
                sum += x_log_x(c + beyond) - x_log_x(c);
        }
        inside += q;
        if (p > 0 && q <= 0)
            return INFINITY;
        if (p > 0)
            sum -= p * oct_log(q / filled);
    }
    return inside > 0 ? sum / total - oct_log(total) + oct_log(inside) : INFINITY;
}

static void select_entropy(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    static _Thread_local linear l;
    *out = oct_view_range(v);
    int levels = g.qmax - g.qmin + 1;
    double pos = v->side[0].peak, neg = v->side[1].peak;
    memset(&l, 0, sizeof l);
    if (!(fmax(pos, neg) / SIDE_BINS > 0) || levels > SIDE_BINS / 2)
        return;
    fill(v, &l);
    double total = 0, inside[2] = { 0, 0 }, all[2] = { 0, 0 }, plogp = 0, least = INFINITY;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < l.bins[s]; i++)
            all[s] += l.count[s][i];
    total = all[0] + all[1];
    const int step = 32;
    for (int at = 0, to = step; to <= SIDE_BINS; to += step) {
        for (; at < to; at++)
            for (int s = 0; s < 2; s++)
                if (at < l.bins[s]) {
                    inside[s] += l.count[s][at];
                    plogp += x_log_x(l.count[s][at]);
                }
        int n[2] = { to < l.bins[0] ? to : l.bins[0], to < l.bins[1] ? to : l.bins[1] };
        if (n[0] + n[1] < levels && to < SIDE_BINS)
            continue;
        double clipped[2] = { n[0] < l.bins[0] ? all[0] - inside[0] : 0, n[1] < l.bins[1] ? all[1] - inside[1] : 0 };
        double d = divergence(&l, n, clipped, levels, total) + plogp / total;
        if (d <= least) {
            least = d;
            out->hi = n[0] < l.bins[0] ? oct_view_f32(n[0] * l.width) : oct_view_f32(pos);
            out->lo = n[1] < l.bins[1] ? oct_view_f32(0 - n[1] * l.width) : oct_view_f32(0 - neg);
        }
    }
}

const oct_observer oct_observer_entropy = { .name = "hist-entropy",
                                            .summary = "least Kullback-Leibler divergence",
                                            .select = select_entropy };
