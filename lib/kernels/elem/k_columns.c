/* lib/kernels/elem/k_columns.c -- columns of a matrix, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define N OCT_COLUMNS

typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
typedef int32_t m8 __attribute__((vector_size(32)));
typedef int64_t l4 __attribute__((vector_size(32)));

/* a where it is less (more) than b, and b where it is not or one of them is NaN. */
#if defined(__AVX2__)
#define LEAST(a, b) ((v8)_mm256_min_ps(a, b))
#define MOST(a, b) ((v8)_mm256_max_ps(a, b))
#else
#define SELECT(mask, a, b) ((v8)(((mask) & (m8)(a)) | (~(mask) & (m8)(b))))
#define LEAST(a, b) SELECT((a) < (b), a, b)
#define MOST(a, b) SELECT((a) > (b), a, b)
#endif

static inline void extent(const float *x, size_t rows, size_t stride, float *min, float *max)
{
    v8 lo, hi, v;
    memcpy(&lo, x, sizeof lo);
    hi = lo;
    for (size_t i = 1; i < rows; i++) {
        memcpy(&v, x + i * stride, sizeof v);
        lo = LEAST(v, lo);
        hi = MOST(v, hi);
    }
    for (int k = 0; k < N; k++) { /* (Copied as bytes they would stay in memory in GCC's loop.) */
        min[k] = lo[k];
        max[k] = hi[k];
    }
}

static inline void load(const float *x, d4 *v)
{
#if defined(__AVX2__) /* (GCC converts halves one by one.) */
    *v = (d4)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    v4 f;
    memcpy(&f, x, sizeof f);
    *v = __builtin_convertvector(f, d4);
#endif
}

/* Sums of the first or (second, a constant once inlined) the second parts; returns whether a value has more than the parts up to it. */
OCT_INLINE bool sum_part(const bool second, const float *x, size_t rows, size_t stride, const double magic[2], double *sum)
{
    const d4 m0 = (d4){ 0 } + magic[0], m = (d4){ 0 } + magic[second];
    d4 a = { 0 }, b = { 0 };
    l4 left = { 0 };
    for (size_t i = 0; i < rows; i++) {
        d4 v, w;
        load(x + i * stride, &v);
        load(x + i * stride + 4, &w);
        if (second) {
            v -= (v + m0) - m0;
            w -= (w + m0) - m0;
        }
        const d4 p = (v + m) - m, q = (w + m) - m;
        a += p;
        b += q;
        left |= (l4)(v - p) | (l4)(w - q);
    }
    memcpy(sum, &a, sizeof a);
    memcpy(sum + 4, &b, sizeof b);
    return ((left[0] | left[1] | left[2] | left[3]) & INT64_MAX) != 0; /* -0 less 0 is -0 */
}

void K(columns)(const float *x, size_t rows, size_t stride, oct_columns *c)
{
    extent(x, rows, stride, c->min, c->max);
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
    memset(c->sum[1], 0, sizeof c->sum[1]);
    /* One part is enough for nine blocks of activations in ten: what reaches 2^-15 of the largest fits. */
    if (sum_part(false, x, rows, stride, magic, c->sum[0]))
        c->inexact = sum_part(true, x, rows, stride, magic, c->sum[1]);
}
