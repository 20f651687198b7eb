/* Correlations. */
#include "eval/metrics/correlation.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

double oct_pearson(const double *x, const double *y, const double *w, size_t n)
{
    double total = 0, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        const double wi = w ? w[i] : 1;
        total += wi;
        mx += wi * x[i];
        my += wi * y[i];
    }
    mx /= total;
    my /= total;
    for (size_t i = 0; i < n; i++) {
        const double wi = w ? w[i] : 1, dx = x[i] - mx, dy = y[i] - my;
        xx += wi * dx * dx;
        yy += wi * dy * dy;
        xy += wi * dx * dy;
    }
    return xx > 0 && yy > 0 ? xy / (sqrt(xx) * sqrt(yy)) : NAN;
}

void oct_ranks(const double *v, const uint32_t *order, const double *w, size_t n, double *rank)
{
    double before = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double same = 0;
        for (end = i; end < n && v[order[end]] == v[order[i]]; end++)
            same += w ? w[order[end]] : 1;
        for (size_t k = i; k < end; k++)
            rank[order[k]] = before + (same + 1) / 2;
        before += same;
    }
}

typedef struct placed {
    double v;
    uint32_t at;
} placed;

static int by_value(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : (x->at > y->at) - (x->at < y->at);
}

oct_status oct_order_of(const double *v, size_t n, uint32_t *order, oct_err *err)
{
    placed *p = oct_calloc(n + 1, sizeof *p);
    if (!p)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        p[i] = (placed){ v[i], (uint32_t)i };
    qsort(p, n, sizeof *p, by_value);
    for (size_t i = 0; i < n; i++)
        order[i] = p[i].at;
    oct_free(p);
    return OCT_OK;
}
