/* lib/kernels/elem/isa/k_qparams.c -- the parameters that fit each of sixteen columns best, and the columns' quantized
 * values, packed; compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define N OCT_QPARAMS_COLUMNS

/* PART columns are added up side by side: more sums than that leave the registers. */
enum { PART = 8, OFFSETS = 3, MOST_TRIES = 25 };

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

/* WIDTH columns in a register. */
#if defined(__AVX512F__)
#define V(name) _mm512_##name
#define NEAREST(v) _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
typedef __m512 vec;
#elif defined(__AVX2__)
#define V(name) _mm256_##name
#define NEAREST(v) _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
typedef __m256 vec;
#endif
#if defined(__AVX2__)
enum { WIDTH = sizeof(vec) / sizeof(float) };
#endif

/* The extremes of each column and 0. Compilers leave this loop to scalars. */
static void find_extremes(const float *x, size_t n, float lo[N], float hi[N])
{
#if defined(__AVX2__)
    for (size_t p = 0; p < N; p += WIDTH) {
        vec l = V(setzero_ps)(), h = l;
        for (size_t i = 0; i < n; i++) {
            const vec v = V(loadu_ps)(x + i * N + p);
            l = V(min_ps)(v, l);
            h = V(max_ps)(v, h);
        }
        V(storeu_ps)(lo + p, l);
        V(storeu_ps)(hi + p, h);
    }
#else
    memset(lo, 0, N * sizeof *lo);
    memset(hi, 0, N * sizeof *hi);
    for (size_t i = 0; i < n; i++, x += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++) {
            lo[j] = x[j] < lo[j] ? x[j] : lo[j];
            hi[j] = x[j] > hi[j] ? x[j] : hi[j];
        }
    }
#endif
}

static void find_range(const float *x, size_t n, int top, range *r)
{
    float lo[N], hi[N];
    find_extremes(x, n, lo, hi);
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

/* Candidates with the zero point of the range and those beside it. */
static void set_offsets(const range *r, int top, float cut, float scale[OFFSETS][N], int32_t zero[OFFSETS][N])
{
    for (int o = 0; o < OFFSETS; o++)
        for (size_t j = 0; j < N; j++) {
            const int32_t z = r->zero[j] + o - 1;
            zero[o][j] = z < 0 ? 0 : z > top ? top : z;
            scale[o][j] = r->step[j] * cut;
        }
}

/* The zero point in the middle, and the extreme at one of the ends. */
static void set_middle(const range *r, int top, int end, float cut, float scale[N], int32_t zero[N])
{
    for (size_t j = 0; j < N; j++) {
        zero[j] = (top + 1) / 2;
        scale[j] = r->far[j] / (float)end * cut;
    }
}

static void try_offsets(const float *x, size_t n, int top, const range *r, float cut, best *b)
{
    candidate c[OFFSETS];
    float scale[OFFSETS][N];
    int32_t zero[OFFSETS][N];
    set_offsets(r, top, cut, scale, zero);
    for (int o = 0; o < OFFSETS; o++) {
        memcpy(c[o].scale, scale[o], sizeof scale[o]);
        memcpy(c[o].zero, zero[o], sizeof zero[o]);
    }
    add_up_offsets(x, n, top, c);
    for (int o = 0; o < OFFSETS; o++)
        keep_better(&c[o], b);
}

static void try_middle(const float *x, size_t n, int top, const range *r, int end, float cut, best *b)
{
    candidate c;
    set_middle(r, top, end, cut, c.scale, c.zero);
    add_up(x, n, top, &c);
    keep_better(&c, b);
}

/* What all zeros leave: the sum of squares. */
static void sum_squares(const float *x, size_t n, double *sum)
{
    for (size_t p = 0; p < N; p += PART) {
        double s[PART] = { 0 };
        const float *from = x + p;
        for (size_t i = 0; i < n; i++, from += N) {
            OCT_EACH
            for (size_t j = 0; j < PART; j++)
                s[j] += (double)from[j] * (double)from[j];
        }
        memcpy(sum + p, s, sizeof s);
    }
}

static const float cuts[] = { 1.0f, 0.95f, 0.9f, 0.85f, 0.8f };

static void try_all(const float *x, size_t n, int top, bool symmetric, const range *r, best *b)
{
    const int middle = (top + 1) / 2;
    for (size_t c = 0; c < OCT_COUNT(cuts); c++) {
        if (!symmetric)
            try_offsets(x, n, top, r, cuts[c], b);
        try_middle(x, n, top, r, -middle, cuts[c], b);
        try_middle(x, n, top, r, middle - 1, cuts[c], b);
    }
}

#if defined(__AVX2__) && defined(__FMA__)
/* ---- the same choice with half of the work ----
 *
 * The best scale for steps d leaves S - G: S is the sum of squares, G is (x d)^2 / (d d). These two sums take half of
 * the work of the three above, but S and G are nearly equal, so that their difference says only roughly what the sums
 * above will say. Therefore all candidates are estimated, with a bound of how far the estimate may be off. Tried are,
 * in each column, those whose error may be the least: mostly one.
 *
 * The bound, with u = 2^-24: all terms of x d have one sign, those of d d are whole. By n fused additions, G is off by
 * (2 n + 4) u of itself, and less than S; S and the difference are off by 2 u S. What is tried is computed from
 * e = v - d where v, off by 2 u, is x / scale. With E, the error before the scale is fitted, sums of e e and e d are
 * off by at most (n + 2) u E each, which make at most (3 n + 8) u E; and v changes the error by 4 u sqrt(E S) <= u (16
 * E + S / 4). */
typedef struct estimates {
    int n;
    float scale[MOST_TRIES][N], error[MOST_TRIES][N], off[MOST_TRIES][N];
    int32_t zero[MOST_TRIES][N];
    float high[N]; /* of the least error */
} estimates;

static inline void sum(vec x, vec d, vec lo, vec hi, vec *xd, vec *dd)
{
    d = V(min_ps)(V(max_ps)(d, lo), hi);
    *xd = V(fmadd_ps)(x, d, *xd);
    *dd = V(fmadd_ps)(d, d, *dd);
}

static inline vec reciprocal(const float *scale)
{
    return V(div_ps)(V(set1_ps)(1), V(loadu_ps)(scale));
}

/* x d and d d of candidates that differ in their zero points alone. */
static void sum_offsets(const float *x, size_t n, int top, const estimates *e, float xd[OFFSETS][N],
                        float dd[OFFSETS][N])
{
    float first[OFFSETS][N]; /* the least d */
    for (int o = 0; o < OFFSETS; o++)
        for (size_t j = 0; j < N; j++)
            first[o][j] = (float)-e->zero[e->n + o][j];
    for (size_t p = 0; p < N; p += WIDTH) {
        const vec inverse = reciprocal(e->scale[e->n] + p);
        vec lo[OFFSETS], hi[OFFSETS], sx[OFFSETS], sd[OFFSETS];
        for (int o = 0; o < OFFSETS; o++) {
            lo[o] = V(loadu_ps)(first[o] + p);
            hi[o] = V(add_ps)(lo[o], V(set1_ps)((float)top));
            sx[o] = sd[o] = V(setzero_ps)();
        }
        for (size_t i = 0; i < n; i++) {
            const vec v = V(loadu_ps)(x + i * N + p), d = NEAREST(V(mul_ps)(v, inverse));
            sum(v, d, lo[0], hi[0], &sx[0], &sd[0]);
            sum(v, d, lo[1], hi[1], &sx[1], &sd[1]);
            sum(v, d, lo[2], hi[2], &sx[2], &sd[2]);
        }
        for (int o = 0; o < OFFSETS; o++) {
            V(storeu_ps)(xd[o] + p, sx[o]);
            V(storeu_ps)(dd[o] + p, sd[o]);
        }
    }
}

/* The same of two candidates with the middle zero point. */
static void sum_middle(const float *x, size_t n, int top, const estimates *e, float xd[2][N], float dd[2][N])
{
    const vec lo = V(set1_ps)((float)(-(top + 1) / 2)), hi = V(set1_ps)((float)(top - (top + 1) / 2));
    for (size_t p = 0; p < N; p += WIDTH) {
        const vec down = reciprocal(e->scale[e->n] + p), up = reciprocal(e->scale[e->n + 1] + p);
        vec sx[2] = { V(setzero_ps)(), V(setzero_ps)() }, sd[2] = { V(setzero_ps)(), V(setzero_ps)() };
        for (size_t i = 0; i < n; i++) {
            const vec v = V(loadu_ps)(x + i * N + p);
            sum(v, NEAREST(V(mul_ps)(v, down)), lo, hi, &sx[0], &sd[0]);
            sum(v, NEAREST(V(mul_ps)(v, up)), lo, hi, &sx[1], &sd[1]);
        }
        for (int k = 0; k < 2; k++) {
            V(storeu_ps)(xd[k] + p, sx[k]);
            V(storeu_ps)(dd[k] + p, sd[k]);
        }
    }
}

/* Estimates `count` candidates from their sums. What is not a number is never the least, as when it is tried. */
static void estimate(estimates *e, int count, size_t n, const float *squares, float (*xd)[N], float (*dd)[N])
{
    const float u = 0x1p-24f, of_all = u * (float)(2 * n + 10), of_error = u * (float)(3 * n + 32);
    for (int k = 0; k < count; k++, e->n++) {
        float *error = e->error[e->n], *off = e->off[e->n];
        const float *scale = e->scale[e->n];
        OCT_EACH
        for (size_t j = 0; j < N; j++) {
            const float before = squares[j] + scale[j] * (scale[j] * dd[k][j] - 2 * xd[k][j]);
            error[j] = squares[j] - xd[k][j] * xd[k][j] / dd[k][j];
            off[j] = of_all * squares[j] + of_error * (before > 0 ? before : 0);
            e->high[j] = error[j] + off[j] < e->high[j] ? error[j] + off[j] : e->high[j];
        }
    }
}

static void estimate_all(const float *x, size_t n, int top, bool symmetric, const range *r, const float *squares,
                         estimates *e)
{
    const int middle = (top + 1) / 2;
    float xd[OFFSETS][N], dd[OFFSETS][N];
    e->n = 0;
    memcpy(e->high, squares, sizeof e->high);
    for (size_t c = 0; c < OCT_COUNT(cuts); c++) {
        if (!symmetric) {
            set_offsets(r, top, cuts[c], &e->scale[e->n], &e->zero[e->n]);
            sum_offsets(x, n, top, e, xd, dd);
            estimate(e, OFFSETS, n, squares, xd, dd);
        }
        set_middle(r, top, -middle, cuts[c], e->scale[e->n], e->zero[e->n]);
        set_middle(r, top, middle - 1, cuts[c], e->scale[e->n + 1], e->zero[e->n + 1]);
        sum_middle(x, n, top, e, xd, dd);
        estimate(e, 2, n, squares, xd, dd);
    }
}

/* Tries in each column what may be the best there, in order. Columns with fewer such candidates than others try their
 * last one again, which changes nothing. */
static void try_estimated(const float *x, size_t n, int top, const estimates *e, best *b)
{
    uint32_t left[N], any = 0;
    for (size_t j = 0; j < N; j++)
        left[j] = 0;
    for (int k = 0; k < e->n; k++) {
        OCT_EACH
        for (size_t j = 0; j < N; j++)
            left[j] |= (uint32_t)(e->error[k][j] - e->off[k][j] < e->high[j]) << k;
    }
    for (size_t j = 0; j < N; j++)
        any |= left[j];
    candidate c;
    int at[N] = { 0 };
    while (any) {
        any = 0;
        for (size_t j = 0; j < N; j++) {
            if (left[j])
                at[j] = __builtin_ctz(left[j]);
            left[j] &= left[j] - 1;
            any |= left[j];
            c.scale[j] = e->scale[at[j]][j];
            c.zero[j] = e->zero[at[j]][j];
        }
        add_up(x, n, top, &c);
        keep_better(&c, b);
    }
}

/* Whether the bounds hold: of many steps the error is too small a part of S, and nothing may overflow or vanish. */
static bool may_estimate(int top, const range *r)
{
    const float least = 0x1p-40f, most = 0x1p40f;
    bool all = top <= 15;
    for (size_t j = 0; j < N; j++) {
        const float far = fabsf(r->far[j]);
        all &= far == 0 || (far >= least && far <= most);
    }
    return all;
}
#endif

static void choose(const float *x, size_t n, int top, bool symmetric, const range *r, best *b)
{
#if defined(__AVX2__) && defined(__FMA__)
    if (may_estimate(top, r)) {
        estimates e;
        float squares[N];
        for (size_t j = 0; j < N; j++)
            squares[j] = (float)b->error[j];
        estimate_all(x, n, top, symmetric, r, squares, &e);
        try_estimated(x, n, top, &e, b);
        return;
    }
#endif
    try_all(x, n, top, symmetric, r, b);
}

void K(choose_columns)(const float *x, size_t n, int top, bool symmetric, oct_column_qparams *g)
{
    range r;
    best b;
    for (size_t j = 0; j < N; j++) {
        b.dd[j] = 0;
        b.ed[j] = 0;
        b.scale[j] = 1.0f;
        b.zero[j] = (top + 1) / 2;
    }
    sum_squares(x, n, b.error);
    memcpy(g->signal, b.error, sizeof b.error);
    find_range(x, n, top, &r);
    choose(x, n, top, symmetric, &r, &b);
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

void K(pack_columns)(const uint8_t *q, size_t n, int bits, size_t columns, uint8_t *to, size_t stride)
{
    enum { SOME = 64 };
    uint8_t pairs[SOME * N];
    if (bits == 8) {
        K(transpose_tile)(q, N, n, columns, to, stride, 1);
        return;
    }
    for (size_t at = 0, some; at < n / 2; at += some, to += some, q += 2 * N * some) {
        some = n / 2 - at < SOME ? n / 2 - at : SOME;
        for (size_t i = 0; i < some; i++) {
            const uint8_t *row = q + 2 * N * i;
            OCT_EACH
            for (size_t j = 0; j < N; j++)
                pairs[i * N + j] = (uint8_t)(row[j] | row[N + j] << 4);
        }
        K(transpose_tile)(pairs, N, some, columns, to, stride, 1);
    }
}
