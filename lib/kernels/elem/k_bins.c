/* lib/kernels/elem/k_bins.c -- scanning values and finding their histogram bins, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

/* In the order of the values, -0 before 0; NaN lies outside of the infinities. */
static inline int32_t key_of(int32_t bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

static inline float value_of(int32_t key)
{
    return oct_float_of(key_of(key));
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

/* Extremes of what is no NaN. */
static void scan_without_nan(const float *x, size_t n, oct_scan *s)
{
    for (size_t i = 0; i < n; i++) {
        s->min = x[i] < s->min ? x[i] : s->min;
        s->max = x[i] > s->max ? x[i] : s->max;
    }
}

/* All on integers, whose extremes may be found in any order. */
void K(scan)(const float *x, size_t n, float tiny, oct_scan *s)
{
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    uint32_t least = UINT32_MAX; /* magnitude less 1, so that zeros come last */
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = oct_bits_of(x[i]), key = key_of(bits);
        const uint32_t magnitude = ((uint32_t)bits & 0x7fffffff) - 1;
        lo = LEAST(lo, key);
        hi = MOST(hi, key);
        least = LEAST(least, magnitude);
    }
    s->small |= tiny > 0 && n > 0 && least < (uint32_t)oct_bits_of(tiny) - 1;
    if (n > 0 && (lo < key_of(oct_bits_of(-INFINITY)) || hi > key_of(oct_bits_of(INFINITY)))) {
        s->nan = true;
        scan_without_nan(x, n, s);
    } else if (n > 0) {
        s->min = LEAST(value_of(lo), s->min);
        s->max = MOST(value_of(hi), s->max);
    }
}

void K(count_equal)(const float *x, size_t n, float v, size_t *count)
{
    uint32_t c = 0; /* a row is short */
    for (size_t i = 0; i < n; i++)
        c += x[i] == v;
    *count = c;
}

/* a where mask is -1, b where it is 0: written so that the compiler computes neither twice. */
#define SELECT(mask, a, b) ((b) ^ ((mask) & ((a) ^ (b))))

/* With `positive` negative values are small, too. */
OCT_INLINE size_t index_row(const bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin)
{
    const int32_t up = oct_bits_of(g->scale[0]), down = oct_bits_of(g->scale[1]);
    const int32_t base = g->base[0], other = g->base[1] - base, zero = g->zero - g->small, small = g->small;
    int32_t found = 0;
    OCT_EACH
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        const int32_t bits = oct_bits_of(x[i]), magnitude = bits & 0x7fffffff, neg = positive ? 0 : bits >> 31;
        const int32_t u = (int32_t)(positive ? x[i] * g->scale[0] : oct_float_of(magnitude) * oct_float_of(SELECT(neg, down, up)));
        /* The steps are a concave function of u: the least of its three lines. */
        const int32_t second = 2048 + (u >> 1), third = 4096 + (u >> 2), upper = LEAST(second, third);
        const int32_t on = LEAST(u, upper) + base + (neg & other);
        const int32_t low = (u - OCT_GRID_LEAST) >> 31, is_zero = (magnitude - 1) >> 31;
        const int32_t off = small + (is_zero & (zero + (int32_t)(i % OCT_ZERO_BINS)));
        bin[i] = SELECT(low, off, on);
        found -= low & ~is_zero;
    }
    return (size_t)found;
}

void K(bin_index)(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    *small = g->scale[1] > 0 ? index_row(false, x, n, g, bin) : index_row(true, x, n, g, bin);
}

#define LANES 8

/* For the compiler to place in registers; with less than 256 bits it splits them. */
typedef int32_t m8 __attribute__((vector_size(32)));

void K(find)(const int32_t *x, size_t n, int32_t v, size_t *at)
{
    typedef int64_t l4 __attribute__((vector_size(32)));
    size_t i = *at;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        m8 a, b, c, d;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, x + i + LANES, sizeof b);
        memcpy(&c, x + i + 2 * LANES, sizeof c);
        memcpy(&d, x + i + 3 * LANES, sizeof d);
        const l4 any = (l4)((a == v) | (b == v) | (c == v) | (d == v));
        if (any[0] | any[1] | any[2] | any[3])
            break;
    }
    while (i < n && x[i] != v)
        i++;
    *at = i;
}
