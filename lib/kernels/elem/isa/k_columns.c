/* lib/kernels/elem/isa/k_columns.c -- columns of a matrix, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define N OCT_COLUMNS

typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
typedef int32_t m8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef int64_t l4 __attribute__((vector_size(32)));

/* a where it is less (more) than b, and b where it is not or one of them is NaN. */
#if defined(__AVX2__)
#define LEAST(a, b) ((v8)_mm256_min_ps(a, b))
#define MOST(a, b) ((v8)_mm256_max_ps(a, b))
#define LESS(a, b) ((u8)_mm256_min_epu32((__m256i)(a), (__m256i)(b)))
#define STORE(p, v) _mm256_storeu_ps(p, (__m256)(v)) /* (Copied as bytes v would stay in memory in GCC's loop.) */
#else
#define SELECT(mask, a, b) ((v8)(((mask) & (m8)(a)) | (~(mask) & (m8)(b))))
#define LEAST(a, b) SELECT((a) < (b), a, b)
#define MOST(a, b) SELECT((a) > (b), a, b)
#define LESS(a, b) ((u8)SELECT((u8)(a) < (b), a, b))
#define STORE(p, v) memcpy(p, &(v), sizeof(v))
#endif

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

/* What one look at all values finds; the sums are right where every value is a multiple of what a first part is one
 * of. */
typedef struct look {
    v8 min, max;
    u8 least; /* magnitude less 1 of what is no zero: so that zero is the largest */
    d4 sum[2];
} look;

OCT_INLINE void look_at(look *l, const float *x)
{
    v8 v;
    d4 a, b;
    memcpy(&v, x, sizeof v);
    load(x, &a);
    load(x + 4, &b);
    l->min = LEAST(v, l->min);
    l->max = MOST(v, l->max);
    l->least = LESS(((u8)v & 0x7fffffff) - 1, l->least);
    l->sum[0] += a;
    l->sum[1] += b;
}

/* Even rows and odd ones apart, as additions wait for each other. *least: the least magnitude that is no zero; returns
 * whether a sum is NaN. */
static inline bool look_at_rows(const float *x, size_t rows, size_t stride, oct_columns *c, float *least)
{
    look even = { .least = (u8){ 0 } - 1 }, odd;
    memcpy(&even.min, x, sizeof even.min);
    even.max = even.min;
    odd = even;
    for (size_t i = 0; i + 2 <= rows; i += 2) {
        look_at(&even, x + i * stride);
        look_at(&odd, x + (i + 1) * stride);
    }
    if (rows % 2)
        look_at(&even, x + (rows - 1) * stride);
    const v8 min = LEAST(odd.min, even.min), max = MOST(odd.max, even.max);
    const u8 small = LESS(odd.least, even.least);
    const d4 a = even.sum[0] + odd.sum[0], b = even.sum[1] + odd.sum[1];
    STORE(c->min, min);
    STORE(c->max, max);
    memcpy(c->sum[0], &a, sizeof a);
    memcpy(c->sum[0] + 4, &b, sizeof b);
    uint32_t all = UINT32_MAX;
    for (int k = 0; k < N; k++)
        all = small[k] < all ? small[k] : all;
    *least = all == UINT32_MAX ? INFINITY : oct_float_of((int32_t)(all + 1));
    const l4 nan = (a != a) | (b != b);
    return (nan[0] | nan[1] | nan[2] | nan[3]) != 0;
}

/* Sums of the first or (second, a constant once inlined) the second parts; returns whether a value has more than the
 * parts up to it. */
OCT_INLINE bool sum_part(const bool second, const float *x, size_t rows, size_t stride, const double magic[2],
                         double *sum)
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
    float peak = 0, least;
    const bool nan = look_at_rows(x, rows, stride, c, &least);
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
    /* One part is enough for nine blocks of activations in ten: the 24 bits of what reaches 2^-16 of the largest
     * fit. */
    if (least >= ldexpf(1, top - 16))
        c->inexact = nan;
    else if (sum_part(false, x, rows, stride, magic, c->sum[0]))
        c->inexact = sum_part(true, x, rows, stride, magic, c->sum[1]);
}
