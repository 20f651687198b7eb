/* lib/observers/stats_scan.c -- passes over float32 arrays, with the compilers' portable vectors. */
#include "observers/stats_scan.h"

#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static inline v4f load(const float *x)
{
    v4f v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline v4f choose(v4i mask, v4f a, v4f b)
{
    return (v4f)((mask & (v4i)a) | (~mask & (v4i)b));
}

void oct_scan_extent(const float *x, size_t n, float *min, float *max)
{
    v4f lo[2], hi[2]; /* two chains, so that a comparison need not wait for the one before */
    for (int k = 0; k < 2; k++)
        lo[k] = hi[k] = (v4f){ x[0], x[0], x[0], x[0] };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        v4f a = load(x + i), b = load(x + i + 4);
        lo[0] = choose(a < lo[0], a, lo[0]);
        hi[0] = choose(a > hi[0], a, hi[0]);
        lo[1] = choose(b < lo[1], b, lo[1]);
        hi[1] = choose(b > hi[1], b, hi[1]);
    }
    float l = x[0], h = x[0];
    for (int k = 0; k < 8; k++) {
        float a = lo[k / 4][k % 4], b = hi[k / 4][k % 4];
        l = a < l ? a : l;
        h = b > h ? b : h;
    }
    for (; i < n; i++) {
        l = x[i] < l ? x[i] : l;
        h = x[i] > h ? x[i] : h;
    }
    *min = l + 0.0f; /* -0 becomes 0: which of them came first must not show */
    *max = h + 0.0f;
}

uint64_t oct_scan_count(const float *x, size_t n, float v)
{
    uint64_t c = 0;
    size_t i = 0;
    const v4f want = { v, v, v, v };
    while (i + 4 <= n) { /* lanes of 32 bits: empty them in time */
        v4i sum = { 0 };
        size_t stop = n - i > (1u << 30) ? i + (1u << 30) : n;
        for (; i + 4 <= stop; i += 4)
            sum -= (v4i)(load(x + i) == want);
        for (int k = 0; k < 4; k++)
            c += (uint32_t)sum[k];
    }
    for (; i < n; i++)
        c += x[i] == v;
    return c;
}

bool oct_scan_subnormal(const float *x, size_t n)
{
    const v4i low = { 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff }, normal = { 0x800000, 0x800000, 0x800000, 0x800000 };
    v4i any = { 0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        v4i m = (v4i)load(x + i) & low;
        any |= (m > 0) & (m < normal);
    }
    bool found = any[0] | any[1] | any[2] | any[3];
    for (; i < n; i++) {
        uint32_t b;
        memcpy(&b, x + i, sizeof b);
        found |= (b & 0x7fffffff) - 1 < 0x7fffff;
    }
    return found;
}
