/* Rounding on second moments (ldlq.h), most of it as matrix products: of some inputs at a time. */
#include "quant/ldlq.h"

#include "base/mem.h"
#include "kernels/sgemm/sgemm.h"

#include <math.h>
#include <string.h>

#define DAMPING 0.01
enum { TOGETHER = 64 };

struct oct_ldlq {
    size_t depth, outs, rows;
    float *moments; /* [depth][depth] */
    float *h;       /* [depth][depth], permuted; D on the diagonal, U' below it */
    float *given;   /* [depth][outs]: weights in the order of the inputs */
    float *w, *e;   /* [depth][outs], permuted: weights, and what rounding left of them */
    float *sum;     /* [TOGETHER][outs] */
    int8_t *qvals;  /* [depth][outs] in the order of the inputs */
    size_t *order;  /* [depth] */
    uint8_t *packed, *scratch;
    oct_sgemm gemm;
};

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
    oct_free(k->packed);
    oct_free(k->scratch);
    oct_free(k);
}

static bool allocate(oct_ldlq *k)
{
    const size_t d = k->depth, o = k->outs;
    k->moments = oct_calloc(d * d, sizeof *k->moments);
    k->h = oct_calloc(d * d, sizeof *k->h);
    k->given = oct_calloc(d * o, sizeof *k->given);
    k->w = oct_calloc(d * o, sizeof *k->w);
    k->e = oct_calloc(d * o, sizeof *k->e);
    k->sum = oct_calloc(TOGETHER * o, sizeof *k->sum);
    k->qvals = oct_calloc(d * o, sizeof *k->qvals);
    k->order = oct_calloc(d, sizeof *k->order);
    k->packed = oct_alloc(k->gemm.packed_size);
    k->scratch = oct_alloc(k->gemm.scratch_size);
    return k->moments && k->h && k->given && k->w && k->e && k->sum && k->qvals && k->order && k->packed && k->scratch;
}

oct_ldlq *oct_ldlq_create(size_t depth, size_t outs, size_t rows)
{
    oct_ldlq *k = oct_calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->depth = depth;
    k->outs = outs;
    k->rows = rows;
    if (oct_sgemm_prepare(&k->gemm, depth, rows, 1, NULL) == OCT_OK && allocate(k))
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

/* Largest diagonal first; equal ones by place. A simple sort: it is nothing beside the rest. */
static void find_order(oct_ldlq *k)
{
    const size_t d = k->depth;
    for (size_t i = 0; i < d; i++) {
        size_t at = i;
        const float v = k->moments[i * d + i];
        for (; at > 0 && k->moments[k->order[at - 1] * (d + 1)] < v; at--)
            k->order[at] = k->order[at - 1];
        k->order[at] = i;
    }
}

/* Rows from..end of H become columns of U, times D: each takes from those before it in the block. False: no numbers. */
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
static oct_status multiply(size_t m, size_t n, size_t depth, const float *a, size_t lda, const float *b, size_t ldb, float *c)
{
    oct_sgemm g;
    OCT_TRY(oct_sgemm_prepare(&g, n, depth, 1, NULL));
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

/* What the rows before a block take from it. The moments are not needed any more: their place holds the product. */
static oct_status update_rows(oct_ldlq *k, size_t from, size_t end)
{
    const size_t d = k->depth, n = end - from;
    float *f = oct_calloc(from * n + 1, sizeof *f);
    if (!f)
        return OCT_ENOMEM;
    for (size_t i = 0; i < from; i++)
        for (size_t r = 0; r < n; r++)
            f[i * n + r] = k->h[(from + r) * d + i] / k->h[(from + r) * (d + 1)];
    const oct_status s = from ? multiply(from, from, n, f, n, k->h + from * d, d, k->moments) : OCT_OK;
    oct_free(f);
    for (size_t i = 0; s == OCT_OK && i < from; i++)
        for (size_t j = 0; j <= i; j++)
            k->h[i * d + j] -= k->moments[i * from + j];
    return s;
}

/* H = (U + 1) D (U + 1)' from the last row on, some rows at a time; row k then holds column k of U. *good: these
 * are numbers. */
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
        from = end > TOGETHER ? end - TOGETHER : 0;
        *good = factor_block(k, from, end);
        OCT_TRY(update_rows(k, from, end));
        for (size_t n = from; n < end; n++)
            for (size_t i = 0; i < n; i++)
                k->h[n * d + i] /= k->h[n * d + n];
    }
    return OCT_OK;
}

oct_status oct_ldlq_inputs(oct_ldlq *k, const float *x, bool *good)
{
    oct_sgemm_pack(&k->gemm, x, 1, (ptrdiff_t)k->rows, k->packed);
    oct_sgemm_run(&k->gemm, NULL, k->depth, x, k->rows, k->packed, k->moments, k->depth, NULL, k->scratch);
    find_order(k);
    return factor(k, good);
}

/* sum[n][outs]: what the weights of inputs from..from + n make up for, of those before `from`. */
static oct_status carry_over(oct_ldlq *k, size_t from, size_t n)
{
    memset(k->sum, 0, n * k->outs * sizeof *k->sum);
    return from ? multiply(n, k->outs, from, k->h + from * k->depth, k->depth, k->e, k->outs, k->sum) : OCT_OK;
}

/* Adds to input i's sum what it makes up for, of those from..i. */
static void carry(oct_ldlq *k, size_t from, size_t i)
{
    const float *u = k->h + i * k->depth;
    float *sum = k->sum + (i - from) * k->outs;
    for (size_t j = from; j < i; j++) {
        const float f = u[j], *other = k->e + j * k->outs;
        for (size_t o = 0; o < k->outs; o++)
            sum[o] += f * other[o];
    }
}

static void round_input(oct_ldlq *k, const float *scale, float limit, size_t from, size_t i)
{
    const float *w = k->w + i * k->outs, *sum = k->sum + (i - from) * k->outs;
    float *e = k->e + i * k->outs;
    int8_t *q = k->qvals + k->order[i] * k->outs;
    for (size_t o = 0; o < k->outs; o++) {
        float r = rintf((w[o] + sum[o]) / scale[o]);
        r = r > limit ? limit : r < -limit ? -limit : r;
        q[o] = (int8_t)r;
        e[o] = w[o] - r * scale[o];
    }
}

oct_status oct_ldlq_round(oct_ldlq *k, const float *scale, int limit)
{
    const size_t d = k->depth;
    for (size_t i = 0; i < d; i++)
        memcpy(k->w + i * k->outs, k->given + k->order[i] * k->outs, k->outs * sizeof *k->w);
    for (size_t from = 0; from < d; from += TOGETHER) {
        const size_t n = d - from < TOGETHER ? d - from : TOGETHER;
        OCT_TRY(carry_over(k, from, n));
        for (size_t i = from; i < from + n; i++) {
            carry(k, from, i);
            round_input(k, scale, (float)limit, from, i);
        }
    }
    return OCT_OK;
}
