/* Rounding by second moments (ldlq.h). Most of the work is done as matrix products, for several inputs at a time.
 *
 * With H = (U + 1) D (U + 1)' the error is sum_k D_k (t_k - q_k)^2, where t_k is weight k plus what it compensates.
 * Inputs that are added in pairs follow each other. If a pair would exceed its bound, both weights are reduced so that
 * the error grows least. */
#include "quant/rounding/ldlq_int.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define DAMPING 0.01

void oct_ldlq_destroy(oct_ldlq *k)
{
    if (!k)
        return;
    oct_free(k->moments);
    oct_free(k->h);
    oct_free(k->given);
    oct_free(k->w);
    oct_free(k->e);
    oct_free(k->sum);
    oct_free(k->qvals);
    oct_free(k->order);
    oct_free(k->scratch);
    oct_free(k);
}

static bool allocate(oct_ldlq *k)
{
    const size_t d = k->depth, o = k->outs;
    k->moments = oct_calloc(d * d, sizeof *k->moments);
    k->h = oct_alloc(d * d * sizeof *k->h > k->gemm.packed_size ? d * d * sizeof *k->h : k->gemm.packed_size);
    k->given = oct_calloc(d * o, sizeof *k->given);
    k->w = oct_calloc(d * o, sizeof *k->w);
    k->e = oct_calloc(d * o, sizeof *k->e);
    k->sum = oct_calloc(OCT_LDLQ_TOGETHER * o, sizeof *k->sum);
    k->qvals = oct_calloc(d * o, sizeof *k->qvals);
    k->order = oct_calloc(d, sizeof *k->order);
    k->scratch = oct_alloc(k->gemm.scratch_size);
    return k->moments && k->h && k->given && k->w && k->e && k->sum && k->qvals && k->order && k->scratch;
}

oct_ldlq *oct_ldlq_create(size_t depth, size_t outs, size_t rows)
{
    oct_ldlq *k = oct_calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->depth = depth;
    k->outs = outs;
    k->rows = rows;
    if (oct_sgemm_prepare(&k->gemm, 0, depth, rows, 1, NULL) == OCT_OK && allocate(k))
        return k;
    oct_ldlq_destroy(k);
    return NULL;
}

float *oct_ldlq_weights(oct_ldlq *k)
{
    return k->given;
}

const int8_t *oct_ldlq_qvals(const oct_ldlq *k)
{
    return k->qvals;
}

/* The key by which inputs are ordered: the diagonal element, or the larger one of a pair. Unpaired inputs come after
 * all pairs. */
static float rank_of(const oct_ldlq *k, size_t i)
{
    const float own = k->moments[i * (k->depth + 1)];
    if (!k->pair)
        return own;
    if (k->pair[i] < 0)
        return -1;
    const float other = k->moments[(size_t)k->pair[i] * (k->depth + 1)];
    return own > other ? own : other;
}

/* Orders by decreasing diagonal, and equal ones by position. A simple sort suffices, because the rest takes far
 * longer. */
static void find_order(oct_ldlq *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->depth; i++) {
        const size_t other = k->pair && k->pair[i] >= 0 ? (size_t)k->pair[i] : i;
        const bool second = k->moments[other * (k->depth + 1)] > k->moments[i * (k->depth + 1)];
        const float v = rank_of(k, i);
        const size_t width = other == i ? 1 : 2;
        size_t at = n;
        if (other < i)
            continue; /* it was placed beside its partner */
        for (; at > 0 && rank_of(k, k->order[at - 1]) < v; at--)
            k->order[at - 1 + width] = k->order[at - 1];
        k->order[at + second] = i;
        if (other != i)
            k->order[at + !second] = other;
        n += width;
    }
}

/* Turns rows from..end of H into columns of U times D. Each row subtracts the contributions of the rows before it in
 * the block. False: not finite. */
static bool factor_block(oct_ldlq *k, size_t from, size_t end)
{
    const size_t d = k->depth;
    for (size_t n = end; n-- > from;) {
        const float *row = k->h + n * d;
        if (!(row[n] > 0))
            return false;
        for (size_t i = from; i < n; i++) {
            const float f = row[i] / row[n];
            float *to = k->h + i * d;
            for (size_t j = 0; j <= i; j++)
                to[j] -= f * row[j];
        }
    }
    return true;
}

/* c[m][n] = a[m][depth] b[depth][n], the rows of b ldb apart. */
oct_status oct_ldlq_multiply(size_t m, size_t n, size_t depth, const float *a, size_t lda, const float *b, size_t ldb,
                             float *c)
{
    oct_sgemm g;
    OCT_TRY(oct_sgemm_prepare(&g, 0, n, depth, 1, NULL));
    uint8_t *packed = oct_alloc(g.packed_size), *scratch = oct_alloc(g.scratch_size);
    const bool there = packed && scratch;
    if (there) {
        oct_sgemm_pack(&g, b, (ptrdiff_t)ldb, 1, packed);
        oct_sgemm_run(&g, NULL, m, a, lda, packed, c, n, NULL, scratch);
    }
    oct_free(packed);
    oct_free(scratch);
    return there ? OCT_OK : OCT_ENOMEM;
}

/* Subtracts the contributions of the rows before a block, several at a time, up to the diagonal. */
static oct_status update_rows(oct_ldlq *k, size_t from, size_t end)
{
    const size_t d = k->depth, n = end - from;
    oct_sgemm g;
    if (from == 0)
        return OCT_OK;
    OCT_TRY(oct_sgemm_prepare(&g, OCT_LDLQ_TOGETHER, from, n, 1, NULL));
    float *f = oct_calloc(OCT_LDLQ_TOGETHER * (from + n), sizeof *f), *product = f + OCT_LDLQ_TOGETHER * n;
    uint8_t *packed = oct_alloc(g.packed_size), *scratch = oct_alloc(g.scratch_size);
    const bool there = f && packed && scratch;
    if (there)
        oct_sgemm_pack(&g, k->h + from * d, (ptrdiff_t)d, 1, packed);
    for (size_t at = 0; there && at < from; at += OCT_LDLQ_TOGETHER) {
        const size_t rows = from - at < OCT_LDLQ_TOGETHER ? from - at : OCT_LDLQ_TOGETHER;
        g.n = at + rows; /* columns */
        for (size_t r = 0; r < n; r++)
            for (size_t i = 0; i < rows; i++)
                f[i * n + r] = k->h[(from + r) * d + at + i] / k->h[(from + r) * (d + 1)];
        oct_sgemm_run(&g, NULL, rows, f, n, packed, product, g.n, NULL, scratch);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j <= at + i; j++)
                k->h[(at + i) * d + j] -= product[i * g.n + j];
    }
    oct_free(f);
    oct_free(packed);
    oct_free(scratch);
    return there ? OCT_OK : OCT_ENOMEM;
}

/* Computes H = (U + 1) D (U + 1)' starting from the last row, several rows at a time. Row k then holds column k of U.
 * *good: the result is finite. */
static oct_status factor(oct_ldlq *k, bool *good)
{
    const size_t d = k->depth;
    double trace = 0;
    for (size_t i = 0; i < d; i++)
        trace += (double)k->moments[i * d + i];
    const double damp = DAMPING * trace / (double)d;
    *good = damp > 0 && isfinite(damp);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j <= i; j++)
            k->h[i * d + j] = k->moments[k->order[i] * d + k->order[j]] + (i == j ? (float)damp : 0);
    for (size_t end = d, from; *good && end > 0; end = from) {
        from = end > OCT_LDLQ_TOGETHER ? end - OCT_LDLQ_TOGETHER : 0;
        *good = factor_block(k, from, end);
        OCT_TRY(update_rows(k, from, end));
        for (size_t n = from; n < end; n++)
            for (size_t i = 0; i < n; i++)
                k->h[n * d + i] /= k->h[n * d + n];
    }
    return OCT_OK;
}

/* Computes the moments below the diagonal, several rows at a time. H is symmetric. */
void oct_ldlq_inputs(oct_ldlq *k, const float *x)
{
    const size_t d = k->depth;
    oct_sgemm part = k->gemm;
    oct_sgemm_pack(&k->gemm, x, 1, (ptrdiff_t)k->rows, k->h);
    for (size_t from = 0; from < d; from = part.n) {
        part.n = d - from < OCT_LDLQ_TOGETHER ? d : from + OCT_LDLQ_TOGETHER; /* columns */
        oct_sgemm_run(&part, NULL, part.n - from, x + from * k->rows, k->rows, k->h, k->moments + from * d, d, NULL,
                      k->scratch);
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++)
            k->moments[j * d + i] = k->moments[i * d + j];
}

oct_status oct_ldlq_begin(oct_ldlq *k, const int64_t *pair, bool *seen)
{
    k->pair = pair;
    find_order(k);
    OCT_TRY(factor(k, seen));
    if (*seen)
        return OCT_OK;
    memset(k->h, 0, k->depth * k->depth * sizeof *k->h);
    for (size_t i = 0; i < k->depth; i++)
        k->h[i * (k->depth + 1)] = 1;
    return OCT_OK;
}

/* sum[n][outs]: what the weights of inputs from..from + n compensate of the errors of inputs before `from`. */
oct_status oct_ldlq_carry_over(oct_ldlq *k, size_t from, size_t n)
{
    memset(k->sum, 0, n * k->outs * sizeof *k->sum);
    return from ? oct_ldlq_multiply(n, k->outs, from, k->h + from * k->depth, k->depth, k->e, k->outs, k->sum) : OCT_OK;
}

/* Adds to the sum of input i what it compensates of the errors of inputs from..end. */
void oct_ldlq_carry(oct_ldlq *k, size_t from, size_t end, size_t i)
{
    const float *u = k->h + i * k->depth;
    float *sum = k->sum + i % OCT_LDLQ_TOGETHER * k->outs;
    for (size_t j = from; j < end; j++) {
        const float f = u[j], *other = k->e + j * k->outs;
        for (size_t o = 0; o < k->outs; o++)
            sum[o] += f * other[o];
    }
}

static inline float nearest(float v, float limit)
{
    const float r = rintf(v);
    return r > limit ? limit : r < -limit ? -limit : r;
}

/* Rounds weight o of input i to q, and adds its error to the noise. */
static void put(oct_ldlq *k, size_t i, size_t o, float q, float scale, double *noise)
{
    const float e = k->w[i * k->outs + o] - q * scale;
    const double t = (double)e + (double)k->sum[i % OCT_LDLQ_TOGETHER * k->outs + o];
    k->qvals[k->order[i] * k->outs + o] = (int8_t)q;
    k->e[i * k->outs + o] = e;
    *noise += t * t * (double)k->h[i * (k->depth + 1)];
}

static void round_input(oct_ldlq *k, const float *scale, float limit, size_t i, double *noise)
{
    const float *w = k->w + i * k->outs, *sum = k->sum + i % OCT_LDLQ_TOGETHER * k->outs;
    for (size_t o = 0; o < k->outs; o++)
        put(k, i, o, nearest((w[o] + sum[o]) / scale[o], limit), scale[o], &noise[o]);
}

/* Two weights, one of each input of a pair, in steps: their targets (of the second one if the first had no error), and
 * the original value of the first. */
typedef struct bound_pair {
    float first, second, own; /* mirrored so that both are positive if they would exceed the bound */
    float u, d[2];            /* u: how much of the first's error the second compensates; d: their elements of D */
} bound_pair;

static float second_of(const bound_pair *p, float first)
{
    return p->second + p->u * (p->own - first);
}

/* The first of two weights with sum `most` that has the least error: the minimum of d0 (first - a)^2 + d1 (second_of(a)
 * - (most - a))^2. */
static float share(const bound_pair *p, float most)
{
    const float v = 1 - p->u, rest = p->second + p->u * p->own - most;
    const float a = rintf((p->d[0] * p->first - p->d[1] * v * rest) / (p->d[0] + p->d[1] * v * v));
    return !(a > 1) ? 1 : a > most - 1 ? most - 1 : a;
}

/* Rounds inputs i and i + 1 so that weights of the same sign sum to at most `most`. */
static void round_pair(oct_ldlq *k, const float *scale, float limit, float most, size_t i, double *noise)
{
    const size_t n = k->outs, at = i % OCT_LDLQ_TOGETHER * n;
    const float *w = k->w + i * n;
    bound_pair p = { .u = k->h[(i + 1) * k->depth + i],
                     .d = { k->h[i * (k->depth + 1)], k->h[(i + 1) * (k->depth + 1)] } };
    for (size_t o = 0; o < n; o++) {
        p.first = (w[o] + k->sum[at + o]) / scale[o];
        p.second = (w[n + o] + k->sum[at + n + o]) / scale[o];
        p.own = w[o] / scale[o];
        float a = nearest(p.first, limit), b = nearest(second_of(&p, a), limit);
        if (a * b > 0 && fabsf(a + b) > most) {
            const float sign = a > 0 ? 1 : -1;
            p.first *= sign;
            p.second *= sign;
            p.own *= sign;
            a = share(&p, most);
            b = nearest(second_of(&p, a), limit);
            b = sign * (b > most - a ? most - a : b);
            a *= sign;
        }
        put(k, i, o, a, scale[o], &noise[o]);
        k->sum[at + n + o] += p.u * k->e[i * n + o];
        put(k, i + 1, o, b, scale[o], &noise[o]);
    }
}

/* Rounds the inputs from..end. With pairs, `from` is even, so that only an unpaired input stands alone. */
static void round_block(oct_ldlq *k, const float *scale, float limit, float most, size_t from, size_t end,
                        double *noise)
{
    for (size_t i = from; i < end; i++) {
        oct_ldlq_carry(k, from, i, i);
        if (k->pair && k->pair[k->order[i]] >= 0) {
            oct_ldlq_carry(k, from, i, i + 1);
            round_pair(k, scale, limit, most, i++, noise);
        } else {
            round_input(k, scale, limit, i, noise);
        }
    }
}

oct_status oct_ldlq_round(oct_ldlq *k, const float *scale, int limit, int most, double *noise)
{
    const size_t d = k->depth;
    memset(noise, 0, k->outs * sizeof *noise);
    for (size_t i = 0; i < d; i++)
        memcpy(k->w + i * k->outs, k->given + k->order[i] * k->outs, k->outs * sizeof *k->w);
    for (size_t from = 0; from < d; from += OCT_LDLQ_TOGETHER) {
        const size_t n = d - from < OCT_LDLQ_TOGETHER ? d - from : OCT_LDLQ_TOGETHER;
        OCT_TRY(oct_ldlq_carry_over(k, from, n));
        round_block(k, scale, (float)limit, (float)most, from, from + n, noise);
    }
    return OCT_OK;
}

void oct_ldlq_expect(const oct_ldlq *k, const float *scale, size_t n, const float *factor, int most, double *cost)
{
    const size_t d = k->depth;
    double even = 0;
    for (size_t i = 0; i < d; i++)
        even += (double)k->h[i * (d + 1)] / 12; /* rounding errors are uniformly distributed over a step */
    for (size_t f = 0; f < n; f++)
        for (size_t o = 0; o < k->outs; o++)
            cost[f * k->outs + o] = even * (double)scale[o] * (double)scale[o] * (double)factor[f] * (double)factor[f];
    for (size_t i = 0; k->pair && i + 1 < d && k->pair[k->order[i]] >= 0; i += 2) {
        const double a = (double)k->h[i * (d + 1)], b = (double)k->h[(i + 1) * (d + 1)],
                     v = 1 - (double)k->h[(i + 1) * d + i];
        const float *first = k->given + k->order[i] * k->outs, *second = k->given + k->order[i + 1] * k->outs;
        for (size_t o = 0; o < k->outs; o++) {
            const float sum = first[o] * second[o] > 0 ? fabsf(first[o] + second[o]) : 0;
            for (size_t f = 0; f < n; f++) {
                const float over = sum - (float)most * factor[f] * scale[o];
                if (!(over > 0))
                    break;
                cost[f * k->outs + o] +=
                    (double)over * (double)over * a * b / (a + b * v * v); /* the minimum of what share() minimizes */
            }
        }
    }
}
