/* lib/kernels/elem/isa/k_qparams.c -- the parameters that fit each of sixteen columns best, and the columns' quantized
 * values; compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define N OCT_QPARAMS_COLUMNS

enum { PART = 8, OFFSETS = 3 }; /* PART columns are added up side by side: more sums than that leave the registers */

/* Parameters that are tried, and the sums over the rows, in order, of e e, e d and d d. */
typedef struct candidate {
    float scale[N];
    int32_t zero[N];
    float ee[N], ed[N], dd[N];
} candidate;

/* The best parameters so far: dd is 0 where there are none. */
typedef struct best {
    float scale[N], ed[N], dd[N];
    int32_t zero[N];
    double error[N];
} best;

/* Of each column: the step between its extremes, extended to include 0, their zero point, and the one farther from 0.
 */
typedef struct range {
    float step[N], far[N];
    int32_t zero[N];
} range;

static void find_range(const float *x, size_t n, int top, range *r)
{
    float lo[N] = { 0 }, hi[N] = { 0 };
    for (size_t i = 0; i < n; i++, x += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++) {
            lo[j] = x[j] < lo[j] ? x[j] : lo[j];
            hi[j] = x[j] > hi[j] ? x[j] : hi[j];
        }
    }
    OCT_EACH
    for (size_t j = 0; j < N; j++) {
        const float step = hi[j] / (float)top - lo[j] / (float)top;
        const bool flat = step < OCT_LEAST_SCALE;
        r->step[j] = step;
        r->zero[j] = oct_round_small(flat ? 0.0f : -lo[j] / step);
        r->far[j] = hi[j] > -lo[j] ? hi[j] : lo[j];
    }
}

static inline void add(float v, float lo, float hi, float *ee, float *ed, float *dd)
{
    float d = v + OCT_ROUND_MAGIC - OCT_ROUND_MAGIC; /* bounds are whole, so it may be rounded before it is clamped */
    d = d > lo ? d : lo;
    d = d < hi ? d : hi;
    const float e = v - d;
    *ee += e * e;
    *ed += e * d;
    *dd += d * d;
}

static void add_up(const float *x, size_t n, int top, candidate *c)
{
    float inverse[N], lo[N], hi[N], ee[N] = { 0 }, ed[N] = { 0 }, dd[N] = { 0 };
    for (size_t j = 0; j < N; j++) {
        inverse[j] = 1.0f / c->scale[j];
        lo[j] = (float)-c->zero[j];
        hi[j] = (float)(top - c->zero[j]);
    }
    for (size_t i = 0; i < n; i++, x += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++)
            add(x[j] * inverse[j], lo[j], hi[j], &ee[j], &ed[j], &dd[j]);
    }
    memcpy(c->ee, ee, sizeof ee);
    memcpy(c->ed, ed, sizeof ed);
    memcpy(c->dd, dd, sizeof dd);
}

/* The same for candidates that differ in their zero points alone. */
static void add_up_offsets(const float *x, size_t n, int top, candidate c[OFFSETS])
{
    for (size_t p = 0; p < N; p += PART) {
        float inverse[PART], lo[OFFSETS][PART], hi[OFFSETS][PART];
        float ee0[PART] = { 0 }, ed0[PART] = { 0 }, dd0[PART] = { 0 }, ee1[PART] = { 0 }, ed1[PART] = { 0 },
              dd1[PART] = { 0 }, ee2[PART] = { 0 }, ed2[PART] = { 0 }, dd2[PART] = { 0 };
        for (size_t j = 0; j < PART; j++)
            inverse[j] = 1.0f / c[0].scale[p + j];
        for (size_t o = 0; o < OFFSETS; o++)
            for (size_t j = 0; j < PART; j++) {
                lo[o][j] = (float)-c[o].zero[p + j];
                hi[o][j] = (float)(top - c[o].zero[p + j]);
            }
        const float *from = x + p;
        for (size_t i = 0; i < n; i++, from += N) {
            OCT_EACH
            for (size_t j = 0; j < PART; j++) {
                const float v = from[j] * inverse[j];
                add(v, lo[0][j], hi[0][j], &ee0[j], &ed0[j], &dd0[j]);
                add(v, lo[1][j], hi[1][j], &ee1[j], &ed1[j], &dd1[j]);
                add(v, lo[2][j], hi[2][j], &ee2[j], &ed2[j], &dd2[j]);
            }
        }
        const float *const ee[] = { ee0, ee1, ee2 }, *const ed[] = { ed0, ed1, ed2 }, *const dd[] = { dd0, dd1, dd2 };
        for (size_t o = 0; o < OFFSETS; o++) {
            memcpy(c[o].ee + p, ee[o], sizeof ee0);
            memcpy(c[o].ed + p, ed[o], sizeof ed0);
            memcpy(c[o].dd + p, dd[o], sizeof dd0);
        }
    }
}

/* The scale of least squared error, scale * (1 + ed / dd), is computed of the best alone. Here its size is compared
 * without dividing. */
static void keep_better(const candidate *c, best *b)
{
    const double least = (double)OCT_LEAST_SCALE;
    double error[N];
    OCT_EACH
    for (size_t j = 0; j < N; j++) {
        const double dd = (double)c->dd[j], ed = (double)c->ed[j], scale = (double)c->scale[j];
        const double gain = ed * ed / dd;
        error[j] = scale * scale * ((double)c->ee[j] - gain); /* NaN where dd is 0 */
        error[j] = fabs(scale) >= least ? error[j] : (double)INFINITY;
        error[j] = fabs(scale * (dd + ed)) >= least * dd ? error[j] : (double)INFINITY;
    }
    OCT_EACH
    for (size_t j = 0; j < N; j++) {
        const bool better = error[j] < b->error[j];
        b->scale[j] = better ? c->scale[j] : b->scale[j];
        b->zero[j] = better ? c->zero[j] : b->zero[j];
        b->ed[j] = better ? c->ed[j] : b->ed[j];
        b->dd[j] = better ? c->dd[j] : b->dd[j];
        b->error[j] = better ? error[j] : b->error[j];
    }
}

static void try_offsets(const float *x, size_t n, int top, const range *r, float cut, best *b)
{
    candidate c[OFFSETS];
    for (int o = 0; o < OFFSETS; o++)
        for (size_t j = 0; j < N; j++) {
            const int32_t zero = r->zero[j] + o - 1;
            c[o].zero[j] = zero < 0 ? 0 : zero > top ? top : zero;
            c[o].scale[j] = r->step[j] * cut;
        }
    add_up_offsets(x, n, top, c);
    for (int o = 0; o < OFFSETS; o++)
        keep_better(&c[o], b);
}

/* The zero point in the middle, and the extreme at one of the ends. */
static void try_middle(const float *x, size_t n, int top, const range *r, int end, float cut, best *b)
{
    candidate c;
    for (size_t j = 0; j < N; j++) {
        c.zero[j] = (top + 1) / 2;
        c.scale[j] = r->far[j] / (float)end * cut;
    }
    add_up(x, n, top, &c);
    keep_better(&c, b);
}

/* What all zeros leave: the sum of squares. */
static void sum_squares(const float *x, size_t n, double *sum)
{
    double s[N] = { 0 };
    for (size_t i = 0; i < n; i++, x += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++)
            s[j] += (double)x[j] * (double)x[j];
    }
    memcpy(sum, s, sizeof s);
}

void K(choose_columns)(const float *x, size_t n, int top, bool symmetric, oct_column_qparams *g)
{
    static const float cuts[] = { 1.0f, 0.95f, 0.9f, 0.85f, 0.8f };
    const int middle = (top + 1) / 2;
    range r;
    best b = { .dd = { 0 } };
    for (size_t j = 0; j < N; j++) {
        b.scale[j] = 1.0f;
        b.zero[j] = middle;
    }
    sum_squares(x, n, b.error);
    memcpy(g->signal, b.error, sizeof b.error);
    find_range(x, n, top, &r);
    for (size_t c = 0; c < OCT_COUNT(cuts); c++) {
        if (!symmetric)
            try_offsets(x, n, top, &r, cuts[c], &b);
        try_middle(x, n, top, &r, -middle, cuts[c], &b);
        try_middle(x, n, top, &r, middle - 1, cuts[c], &b);
    }
    for (size_t j = 0; j < N; j++) {
        g->scale[j] = b.scale[j];
        g->zero[j] = b.zero[j];
        g->error[j] = b.error[j];
        g->fit[j] = b.dd[j] > 0 ? (float)((double)b.scale[j] * (1 + (double)b.ed[j] / (double)b.dd[j])) : 1.0f;
    }
}

void K(quantize_columns)(const float *x, size_t n, int top, const oct_column_qparams *g, uint8_t *q)
{
    float inverse[N], lo[N], hi[N];
    int32_t zero[N];
    for (size_t j = 0; j < N; j++) {
        inverse[j] = 1.0f / g->scale[j];
        lo[j] = (float)-g->zero[j];
        hi[j] = (float)(top - g->zero[j]);
        zero[j] = g->zero[j];
    }
    for (size_t i = 0; i < n; i++, x += N, q += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++)
            q[j] = (uint8_t)(round_clamped(x[j] * inverse[j], lo[j], hi[j]) + zero[j]);
    }
}
