/* Coordinate descent on the squared error of clamped outputs. */
#include "quant/rounding/learned.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 4, LANES = 16 };

/* The output that is being improved. */
typedef struct fit {
    const oct_learned *l;
    size_t rows; /* those that choose */
    const float *w;
    float scale;
    int8_t *q;    /* [depth] */
    float *want;  /* [rows]: clamped outputs of the float weights */
    float *got;   /* [rows]: outputs with the quantized weights, before the clamp */
    float *error; /* [rows]: the error after the clamp; 0 where the clamp is active, because there a small change has no
                     effect */
    float *inside; /* [rows]: 1, or 0 where the clamp is active */
} fit;

static float clamped(const oct_learned *l, float y)
{
    return y < l->lo ? l->lo : y > l->hi ? l->hi : y;
}

/* Sums lanes, in an order that does not depend on the instruction set. */
static float join(const float *lane)
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}

static float dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = { 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += a[i + (size_t)j] * b[i + (size_t)j];
    for (; i < n; i++)
        lane[i % LANES] += a[i] * b[i];
    return join(lane);
}

/* The sum of squares of a row of inputs, where the output is inside the clamp. */
static float energy(const fit *f, const float *x)
{
    float lane[LANES] = { 0 };
    size_t i = 0;
    for (; i + LANES <= f->rows; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += f->inside[i + (size_t)j] * x[i + (size_t)j] * x[i + (size_t)j];
    for (; i < f->rows; i++)
        lane[i % LANES] += f->inside[i] * x[i] * x[i];
    return join(lane);
}

/* Computes the outputs of all rows, with weights `scale` times q or with float weights. */
static void multiply(const fit *f, const int8_t *q, float bias, float *y)
{
    const size_t rows = f->l->rows;
    for (size_t r = 0; r < rows; r++)
        y[r] = bias;
    for (size_t k = 0; k < f->l->depth; k++) {
        const float *x = f->l->x + k * rows, m = q ? (float)q[k] * f->scale : f->w[k];
        for (size_t r = 0; r < rows; r++)
            y[r] += m * x[r];
    }
}

/* The squared error of rows from..to if outputs change by step * x. */
static double loss(const fit *f, const float *x, float step, size_t from, size_t to)
{
    double sum = 0;
    for (size_t r = from; r < to; r++) {
        const float e = clamped(f->l, f->got[r] + (x ? step * x[r] : 0)) - f->want[r];
        sum += (double)(e * e);
    }
    return sum;
}

static void find_errors(fit *f)
{
    for (size_t r = 0; r < f->rows; r++) {
        const bool in = f->got[r] > f->l->lo && f->got[r] < f->l->hi;
        f->inside[r] = in;
        f->error[r] = in ? f->got[r] - f->want[r] : 0;
    }
}

/* By how many steps weight k should change for the least error, on the assumption that the clamp stays active where it
 * is. */
static int steps_of(const fit *f, size_t k)
{
    const float *x = f->l->x + k * f->l->rows, power = energy(f, x) * f->scale;
    const float d = power > 0 ? rintf(-dot(f->error, x, f->rows) / power) : 0;
    const int64_t p = f->l->pair ? f->l->pair[k] : -1;
    const int other = p >= 0 ? f->q[p] : 0, most = p >= 0 ? f->l->most : f->l->limit;
    const int above = most - (other > 0 ? other : 0), below = most + (other < 0 ? other : 0);
    const float hi = (float)(above < f->l->limit ? above : f->l->limit),
                lo = (float)-(below < f->l->limit ? below : f->l->limit);
    return (int)fminf(fmaxf((float)f->q[k] + d, lo), hi) - f->q[k];
}

/* Tries each weight once. Returns whether any was changed. */
static bool sweep(fit *f, double *least)
{
    bool any = false;
    for (size_t k = 0; k < f->l->depth; k++) {
        const int d = steps_of(f, k);
        const float *x = f->l->x + k * f->l->rows, step = (float)d * f->scale;
        const double now = d ? loss(f, x, step, 0, f->rows) : *least;
        if (!(now < *least))
            continue;
        for (size_t r = 0; r < f->l->rows; r++)
            f->got[r] += step * x[r];
        find_errors(f);
        f->q[k] = (int8_t)(f->q[k] + d);
        *least = now;
        any = true;
    }
    return any;
}

static void learn(fit *f, int8_t *q, float bias)
{
    const size_t rows = f->l->rows;
    multiply(f, NULL, bias, f->want);
    for (size_t r = 0; r < rows; r++)
        f->want[r] = clamped(f->l, f->want[r]);
    multiply(f, q, bias, f->got);
    find_errors(f);
    memcpy(f->q, q, f->l->depth);
    const double judged = loss(f, NULL, 0, f->rows, rows);
    double least = loss(f, NULL, 0, 0, f->rows);
    bool any = false;
    for (int i = 0; i < SWEEPS && sweep(f, &least); i++)
        any = true;
    if (any && (f->rows == rows || loss(f, NULL, 0, f->rows, rows) < judged))
        memcpy(q, f->q, f->l->depth);
}

oct_status oct_learn_rounding(const oct_learned *l, int8_t *q)
{
    float *room = oct_calloc(4 * l->rows + 1, sizeof *room);
    fit f = { .l = l, .rows = l->rows - l->held, .q = oct_calloc(l->depth + 1, 1), .want = room };
    if (room && f.q) {
        f.got = room + l->rows;
        f.error = f.got + l->rows;
        f.inside = f.error + l->rows;
        for (size_t o = 0; o < l->outs; o++) {
            f.w = l->w + o * l->depth;
            f.scale = l->scale[o];
            learn(&f, q + o * l->depth, l->bias ? l->bias[o] : 0);
        }
    }
    const oct_status s = room && f.q ? OCT_OK : OCT_ENOMEM;
    oct_free(room);
    oct_free(f.q);
    return s;
}
