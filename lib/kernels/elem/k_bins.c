/* lib/kernels/elem/k_bins.c -- scanning values and finding their histogram bins, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <string.h>

#define LANES 8

/* For the compiler to place in registers; with less than 256 bits it splits them. */
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t m8 __attribute__((vector_size(32)));

#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#define MAGNITUDE(v) ((v8)((m8)(v) & 0x7fffffff))

typedef struct looks {
    v8 lo, hi, tiny;
    m8 nan, small;
} looks;

static inline void look(looks *a, const float *x)
{
    const v8 none = { 0 };
    v8 v;
    memcpy(&v, x, sizeof v);
    a->lo = (v8)SELECT(v < a->lo, (m8)v, (m8)a->lo);
    a->hi = (v8)SELECT(v > a->hi, (m8)v, (m8)a->hi);
    a->nan |= v != v;
    a->small |= (MAGNITUDE(v) < a->tiny) & (v != none);
}

/* The last values of a row, n < LANES, followed by `fill`. */
static void load_tail(float tail[LANES], const float *x, size_t n, float fill)
{
    for (size_t l = 0; l < LANES; l++)
        tail[l] = l < n ? x[l] : fill;
}

void K(scan)(const float *x, size_t n, float tiny, oct_scan *s)
{
    const v8 none = { 0 };
    looks a = { none + s->min, none + s->max, none + tiny, { 0 }, { 0 } };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        look(&a, x + i);
    if (i < n) {
        float tail[LANES];
        load_tail(tail, x + i, n - i, x[i]);
        look(&a, tail);
    }
    for (size_t l = 0; l < LANES; l++) {
        s->min = a.lo[l] < s->min ? a.lo[l] : s->min;
        s->max = a.hi[l] > s->max ? a.hi[l] : s->max;
        s->nan |= a.nan[l] != 0;
        s->small |= a.small[l] != 0;
    }
}

void K(count_equal)(const float *x, size_t n, float v, size_t *count)
{
    uint32_t c = 0; /* a row is short */
    for (size_t i = 0; i < n; i++)
        c += x[i] == v;
    *count = c;
}

#define LEAST(a, b) SELECT((a) < (b), a, b)

/* *small: -1 in the lanes whose value is small. With `positive` negative values are small, too. */
static inline void bins_of(const float *x, const oct_bin_grid *g, bool positive, int32_t *bin, m8 *small)
{
    const v8 none = { 0 };
    const m8 lane = { 0, 1, 2, 3, 4, 5, 6, 7 }, nothing = { 0 };
    v8 v;
    memcpy(&v, x, sizeof v);
    const m8 neg = v < none, is_zero = v == none;
    const v8 up = none + g->scale[0], scale = (v8)SELECT(neg, (m8)(none + g->scale[1]), (m8)up);
    const m8 u = __builtin_convertvector(positive ? v * up : MAGNITUDE(v) * scale, m8), low = u < OCT_GRID_LEAST;
    /* The steps are a concave function of u: the least of its three lines. */
    const m8 second = 2048 + (u >> 1), third = 4096 + (u >> 2), upper = LEAST(second, third);
    const m8 on = LEAST(u, upper) + g->base[0] + (positive ? nothing : neg & (g->base[1] - g->base[0]));
    const m8 off = SELECT(is_zero, lane + g->zero, nothing + g->small), b = SELECT(low, off, on);
    memcpy(bin, &b, sizeof b);
    *small = low & ~is_zero;
}

static inline size_t index_row(const float *x, size_t n, const oct_bin_grid *g, bool positive, int32_t *bin)
{
    m8 found = { 0 }, s;
    size_t i = 0, small = 0;
    for (; i + LANES <= n; i += LANES) {
        bins_of(x + i, g, positive, bin + i, &s);
        found -= s;
    }
    if (i < n) {
        float tail[LANES];
        int32_t last[LANES];
        load_tail(tail, x + i, n - i, 0.0f);
        bins_of(tail, g, positive, last, &s);
        found -= s;
        memcpy(bin + i, last, (n - i) * sizeof *bin);
    }
    for (size_t l = 0; l < LANES; l++)
        small += (size_t)found[l];
    return small;
}

void K(bin_index)(const float *x, size_t n, const oct_bin_grid *grid, int32_t *bin, size_t *small)
{
    const oct_bin_grid g = *grid;
    *small = g.scale[1] > 0 ? index_row(x, n, &g, false, bin) : index_row(x, n, &g, true, bin);
}

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
