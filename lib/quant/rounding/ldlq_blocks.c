/* Rounds weights in blocks by second moments, and adapts weights to inputs that rounding has already changed. */
#include "quant/rounding/ldlq_int.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- adapting weights ---- */

/* to[i][o], for permuted inputs: x (other - x)' times the weights. */
static oct_status cross(oct_ldlq *k, const float *x, const float *other, float *to)
{
    const size_t d = k->depth, rows = k->rows;
    float *diff = oct_calloc(d * rows, sizeof *diff), *c = oct_calloc(d * d, sizeof *c),
          *made = oct_calloc(d * k->outs, sizeof *made);
    uint8_t *packed = oct_alloc(k->gemm.packed_size);
    oct_status s = diff && c && made && packed ? OCT_OK : OCT_ENOMEM;
    if (s == OCT_OK) {
        for (size_t i = 0; i < d * rows; i++)
            diff[i] = other[i] - x[i];
        oct_sgemm_pack(&k->gemm, diff, 1, (ptrdiff_t)rows, packed);
        oct_sgemm_run(&k->gemm, NULL, d, x, rows, packed, c, d, NULL, k->scratch);
        s = oct_ldlq_multiply(d, k->outs, d, c, d, k->given, k->outs, made);
    }
    for (size_t i = 0; s == OCT_OK && i < d; i++)
        memcpy(to + i * k->outs, made + k->order[i] * k->outs, k->outs * sizeof *to);
    oct_free(diff);
    oct_free(c);
    oct_free(made);
    oct_free(packed);
    return s;
}

/* Row i minus f times row j. */
static void subtract(float *a, size_t outs, size_t i, size_t j, float f)
{
    float *to = a + i * outs;
    const float *from = a + j * outs;
    for (size_t o = 0; o < outs; o++)
        to[o] -= f * from[o];
}

/* Solves (U + 1) a = b in place, from the last row on. The contributions of a block to the rows before it are a matrix
 * product. */
static oct_status solve_upper(oct_ldlq *k, float *a)
{
    const size_t d = k->depth, n = k->outs;
    for (size_t end = d, from; end > 0; end = from) {
        from = end > OCT_LDLQ_TOGETHER ? end - OCT_LDLQ_TOGETHER : 0;
        for (size_t j = end; j-- > from;)
            for (size_t i = from; i < j; i++)
                subtract(a, n, i, j, k->h[j * d + i]);
        float *u = oct_calloc(from * (end - from) + 1, sizeof *u), *sum = oct_calloc(from * n + 1, sizeof *sum);
        oct_status s = u && sum ? OCT_OK : OCT_ENOMEM;
        for (size_t i = 0; s == OCT_OK && i < from; i++)
            for (size_t j = from; j < end; j++)
                u[i * (end - from) + j - from] = k->h[j * d + i];
        if (s == OCT_OK && from)
            s = oct_ldlq_multiply(from, n, end - from, u, end - from, a + from * n, n, sum);
        for (size_t i = 0; s == OCT_OK && i < from * n; i++)
            a[i] -= sum[i];
        oct_free(u);
        oct_free(sum);
        OCT_TRY(s);
    }
    return OCT_OK;
}

/* Solves (U + 1)' a = b in place, from the first row on. */
static oct_status solve_lower(oct_ldlq *k, float *a)
{
    const size_t d = k->depth, n = k->outs;
    for (size_t from = 0; from < d; from += OCT_LDLQ_TOGETHER) {
        const size_t end = d - from < OCT_LDLQ_TOGETHER ? d : from + OCT_LDLQ_TOGETHER;
        if (from)
            OCT_TRY(oct_ldlq_multiply(end - from, n, from, k->h + from * d, d, a, n, k->sum));
        for (size_t i = 0; from && i < (end - from) * n; i++)
            a[from * n + i] -= k->sum[i];
        for (size_t i = from; i < end; i++)
            for (size_t j = from; j < i; j++)
                subtract(a, n, i, j, k->h[i * d + j]);
    }
    return OCT_OK;
}

oct_status oct_ldlq_aim(oct_ldlq *k, const float *x, const float *other)
{
    const size_t d = k->depth, n = k->outs;
    float *a = oct_calloc(d * n, sizeof *a);
    oct_status s = a ? cross(k, x, other, a) : OCT_ENOMEM;
    bool finite = true;
    if (s == OCT_OK)
        s = solve_upper(k, a);
    for (size_t i = 0; s == OCT_OK && i < d; i++)
        for (size_t o = 0; o < n; o++)
            a[i * n + o] /= k->h[i * (d + 1)];
    if (s == OCT_OK)
        s = solve_lower(k, a);
    for (size_t i = 0; s == OCT_OK && i < d * n; i++)
        finite &= isfinite(a[i]) != 0;
    for (size_t i = 0; s == OCT_OK && finite && i < d; i++)
        for (size_t o = 0; o < n; o++)
            k->given[k->order[i] * n + o] += a[i * n + o];
    oct_free(a);
    return s;
}

/* ---- rounding ---- */

/* Copies the scales and zero points of one block from [outs][blocks] to [outs]. */
static void take_block(const oct_ldlq_blocks *b, size_t outs, size_t block, float *scale, float *zero)
{
    for (size_t o = 0; o < outs; o++) {
        scale[o] = b->scale[o * b->blocks + block];
        zero[o] = (float)(b->zero ? b->zero[o * b->blocks + block] : b->middle);
    }
}

static void round_input(oct_ldlq *k, const float *scale, const float *zero, float top, size_t i, double *noise)
{
    const size_t n = k->outs;
    const float *w = k->w + i * n, *sum = k->sum + i % OCT_LDLQ_TOGETHER * n, d = k->h[i * (k->depth + 1)];
    uint8_t *to = (uint8_t *)k->qvals + k->order[i] * n;
    float *left = k->e + i * n;
    for (size_t o = 0; o < n; o++) {
        const float r = rintf((w[o] + sum[o]) / scale[o]) + zero[o];
        const float q = r > 0 ? r < top ? r : top : 0; /* 0 if the scale is 0, because then there is nothing to round */
        left[o] = w[o] - (q - zero[o]) * scale[o];
        const double t = (double)left[o] + (double)sum[o];
        to[o] = (uint8_t)q;
        noise[o] += t * t * (double)d;
    }
}

oct_status oct_ldlq_round_blocks(oct_ldlq *k, const oct_ldlq_blocks *b, double *noise)
{
    const size_t d = k->depth, n = k->outs;
    float *scale = oct_calloc(2 * b->blocks * n, sizeof *scale), *zero = scale ? scale + b->blocks * n : NULL;
    oct_status s = scale ? OCT_OK : OCT_ENOMEM;
    for (size_t i = 0; s == OCT_OK && i < b->blocks; i++)
        take_block(b, n, i, scale + i * n, zero + i * n);
    memset(noise, 0, n * sizeof *noise);
    for (size_t i = 0; i < d; i++)
        memcpy(k->w + i * n, k->given + k->order[i] * n, n * sizeof *k->w);
    for (size_t from = 0; s == OCT_OK && from < d; from += OCT_LDLQ_TOGETHER) {
        const size_t end = d - from < OCT_LDLQ_TOGETHER ? d : from + OCT_LDLQ_TOGETHER;
        s = oct_ldlq_carry_over(k, from, end - from);
        for (size_t i = from; s == OCT_OK && i < end; i++) {
            const size_t at = k->order[i] / b->block * n;
            oct_ldlq_carry(k, from, i, i);
            round_input(k, scale + at, zero + at, (float)b->top, i, noise);
        }
    }
    oct_free(scale);
    return s;
}
