/* Convolution of float64. */
#include "ops/nn/conv_f64.h"

typedef struct job {
    const oct_conv_geom *g;
    const double *x, *w, *bias;
    double *y;
} job;

/* The input place under a tap along one axis, or -1. */
static int64_t source(bool transposed, int64_t out, int64_t tap, int64_t stride, int64_t dilation, int64_t pad,
                      int64_t size)
{
    int64_t at = transposed ? out + pad - tap * dilation : out * stride - pad + tap * dilation;
    if (transposed && (at < 0 || at % stride != 0))
        return -1;
    at = transposed ? at / stride : at;
    return at >= 0 && at < size ? at : -1;
}

/* Adds one tap's channels of a group to the outputs of that group at one pixel. */
static void add_tap(const job *j, const double *x, int64_t group, int64_t tap, double *y)
{
    const oct_conv_geom *g = j->g;
    const int64_t taps = g->kd * g->kh * g->kw, in = g->c / g->groups, out = g->oc / g->groups;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const int64_t at = g->transposed ? (group * in + i) * out + o : (group * out + o) * in + i;
            y[group * out + o] += x[group * in + i] * j->w[at * taps + tap];
        }
}

static void pixels(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const oct_conv_geom *g = j->g;
    const int64_t taps = g->kd * g->kh * g->kw;
    for (size_t item = begin; item < end; item++) {
        const int64_t pixel = (int64_t)item, ox = pixel % g->ow, oy = pixel / g->ow % g->oh,
                      oz = pixel / g->ow / g->oh % g->od;
        const int64_t n = pixel / g->ow / g->oh / g->od;
        double *y = j->y + pixel * g->oc;
        for (int64_t o = 0; o < g->oc; o++)
            y[o] = j->bias ? j->bias[o] : 0.0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t iz = source(g->transposed, oz, t / g->kw / g->kh, g->sd, g->dd, g->pd, g->d);
            const int64_t iy = source(g->transposed, oy, t / g->kw % g->kh, g->sh, g->dh, g->ph, g->h);
            const int64_t ix = source(g->transposed, ox, t % g->kw, g->sw, g->dw, g->pw, g->w);
            if (iz < 0 || iy < 0 || ix < 0)
                continue;
            for (int64_t k = 0; k < g->groups; k++)
                add_tap(j, j->x + (((n * g->d + iz) * g->h + iy) * g->w + ix) * g->c, k, t, y);
        }
    }
}

void oct_conv_f64(const oct_conv_geom *g, oct_pool *pool, const double *x, const double *w, const double *bias,
                  double *y)
{
    job j = { g, x, w, bias, y };
    oct_pool_for(pool, (size_t)(g->n * g->od * g->oh * g->ow), 16, pixels, &j);
}
