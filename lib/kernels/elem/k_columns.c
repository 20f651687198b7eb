/* lib/kernels/elem/k_columns.c -- columns of a matrix, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define N OCT_COLUMNS

typedef float v4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
typedef int32_t m4 __attribute__((vector_size(16)));
typedef int64_t l4 __attribute__((vector_size(32)));

#define SELECT(mask, a, b) ((v4)(((mask) & (m4)(a)) | (~(mask) & (m4)(b))))

/* Four columns. */
static inline void extent(const float *x, size_t rows, size_t stride, float *min, float *max)
{
    v4 lo, hi, v;
    memcpy(&lo, x, sizeof lo);
    hi = lo;
    for (size_t i = 1; i < rows; i++) {
        memcpy(&v, x + i * stride, sizeof v);
        lo = SELECT(v < lo, v, lo);
        hi = SELECT(v > hi, v, hi);
    }
    memcpy(min, &lo, sizeof lo);
    memcpy(max, &hi, sizeof hi);
}

/* Returns whether something is left over. */
static inline bool sum(const float *x, size_t rows, size_t stride, const double magic[2], double *s0, double *s1)
{
    const d4 zero = { 0 }, m0 = zero + magic[0], m1 = zero + magic[1];
    d4 a = zero, b = zero;
    l4 left = { 0 };
    for (size_t i = 0; i < rows; i++) {
        v4 f;
        memcpy(&f, x + i * stride, sizeof f);
        d4 v = __builtin_convertvector(f, d4);
        const d4 p = (v + m0) - m0;
        v -= p;
        const d4 q = (v + m1) - m1;
        a += p;
        b += q;
        left |= v != q;
    }
    memcpy(s0, &a, sizeof a);
    memcpy(s1, &b, sizeof b);
    return (left[0] | left[1] | left[2] | left[3]) != 0;
}

void K(columns)(const float *x, size_t rows, size_t stride, oct_columns *c)
{
    extent(x, rows, stride, c->min, c->max);
    extent(x + 4, rows, stride, c->min + 4, c->max + 4);
    float peak = 0;
    for (size_t k = 0; k < N; k++) {
        const float lo = oct_absf(c->min[k]), hi = oct_absf(c->max[k]);
        peak = lo > peak ? lo : peak;
        peak = hi > peak ? hi : peak;
    }
    int top;
    c->inexact = isinf(peak);
    if (c->inexact)
        return;
    frexpf(peak, &top);
    const double magic[2] = { ldexp(1.5, 52 + top - 39), ldexp(1.5, 52 + top - 78) };
    const bool first = sum(x, rows, stride, magic, c->sum[0], c->sum[1]);
    c->inexact = sum(x + 4, rows, stride, magic, c->sum[0] + 4, c->sum[1] + 4) | first;
}
