/* tests/check/check_bgemm.c -- product of bf16: every kernel against the definition, which is written down here in
 * double. */
#include "check.h"
#include "kernels/bgemm/bgemm.h"
#include "kernels/conv/conv.h"
#include "kernels/sgemm/sgemm_int.h"

#include <math.h>
#include <string.h>

/* Rounded to 24 bits, as if exponents had no bound; then zero below 2^-126. */
static float flushed(double v)
{
    if (fabs(v) > 0x1p-100)
        return (float)v;
    const float f = (float)(v * 0x1p64);
    return fabsf(f) < 0x1p-62f ? copysignf(0, f) : f * 0x1p-64f;
}

static float normal(float v)
{
    return flushed((double)v);
}

/* x * y + c for x and y of bf16: the product is exact, the sum is rounded to odd, so that rounding it again rounds
 * once. */
static float fused(float x, float y, float c)
{
    const double p = (double)normal(x) * (double)normal(y), z = (double)normal(c);
    double sum = p + z;
    const double back = sum - p, rest = (p - (sum - back)) + (z - back);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (isfinite(sum) && rest != 0 && bits % 2 == 0)
        sum = nextafter(sum, rest > 0 ? HUGE_VAL : -HUGE_VAL);
    return flushed(sum);
}

static float added(float x, float y)
{
    return flushed((double)normal(x) + (double)normal(y));
}

/* v and the products of n values of k; a and b have strides. */
static float block(float v, size_t n, const float *a, const float *b, size_t step)
{
    float even = 0, odd = 0;
    for (size_t k = 0; k < n; k += 2)
        even = fused(a[k], b[k * step], even);
    for (size_t k = 1; k < n; k += 2)
        odd = fused(a[k], b[k * step], odd);
    return added(v, added(even, odd));
}

static float naive(float v, size_t kc, const float *a, const float *b, size_t step)
{
    for (size_t k = 0; k < kc; k += 32)
        v = block(v, kc - k < 32 ? kc - k : 32, a + k, b + k * step, step);
    return v;
}

/* oct_sout_apply, written down. */
static float finished(float v, const oct_sout *o, size_t i, size_t j)
{
    const uint32_t nan = 0x7fc00000;
    if (o->residual)
        v += o->residual[i * o->ldr + j];
    if (o->clamp)
        v = v < o->lo ? o->lo : v > o->hi ? o->hi : v;
    if (isnan(v))
        memcpy(&v, &nan, sizeof v);
    return v;
}

/* Values of bf16: the wild ones of float products; or in a narrow band of exponents, where sums round, and where
 * products are next to the least normal number. */
static void fill(oct_check *t, float *x, size_t n, bool wild)
{
    const uint32_t low = oct_check_below(t, 2) ? 120 : 60;
    oct_fill_f32_wild(t, x, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if (!wild)
            bits = (bits & 0x807fffff) | (low + oct_check_below(t, 8)) << 23;
        bits &= 0xffff0000 | (isnan(x[i]) ? 1u << 16 : 0);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

/* Every kernel the CPU has, on its own: several taps, sums continued, all heights and widths. */
static void check_kernel(oct_check *t, const oct_sgemm_kernel *k, size_t m, size_t n, size_t taps, size_t kc)
{
    const size_t ldc = k->nr + 3, mr = k->mr;
    size_t floats = 0;
    const bool first = oct_check_below(t, 2), last = oct_check_below(t, 3), wild = last && oct_check_below(t, 2);
    oct_spack_size(k, taps, kc, n, &floats);
    float *a = oct_check_buffer(t, mr * taps * kc * 4), *b = oct_check_buffer(t, taps * kc * n * 4),
          *packed = oct_check_buffer(t, floats * 4);
    float *c = oct_check_buffer(t, mr * ldc * 4), *want = oct_check_buffer(t, mr * ldc * 4),
          *bias = oct_check_buffer(t, k->nr * 4);
    float *residual = oct_check_buffer(t, mr * ldc * 4);
    const float **rows = oct_check_buffer(t, mr * taps * sizeof *rows);
    fill(t, a, mr * taps * kc, wild);
    fill(t, b, taps * kc * n, wild);
    oct_fill_f32(t, c, mr * ldc);
    oct_fill_f32_wild(t, residual, mr * ldc);
    for (size_t j = 0; j < k->nr; j++)
        bias[j] = (float[]){ 0.0f, -0.0f, 1e-39f, -0x1p-126f, 0.75f }[oct_check_below(t, 5)];
    memcpy(want, c, mr * ldc * 4);
    const oct_sout o = { .bias = bias,
                         .residual = oct_check_below(t, 2) ? residual : NULL,
                         .ldr = ldc,
                         .clamp = oct_check_below(t, 2),
                         .lo = -1,
                         .hi = 1 };
    for (size_t i = 0; i < mr * taps; i++)
        rows[i] = a + i * kc;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float v = first ? bias[j] : c[i * ldc + j];
            for (size_t p = 0; p < taps; p++)
                v = naive(v, kc, rows[p * mr + i], b + p * kc * n + j, n);
            want[i * ldc + j] = last ? finished(v, &o, i, j) : v;
        }
    oct_spack(k, b, taps, kc, n, (ptrdiff_t)(kc * n), (ptrdiff_t)n, 1, false, packed);
    k->fn(m, n, taps, kc, rows, packed, c, ldc, first, last, &o);
    for (size_t i = 0; i < m; i++)
        oct_check_same(t, want + i * ldc, c + i * ldc, n * 4, 4, "%s m=%zu n=%zu taps=%zu kc=%zu row %zu%s", k->name, m,
                       n, taps, kc, i, wild ? " wild" : "");
    for (size_t i = 0; i < mr; i++) {
        const size_t from = i < m ? k->nr : 0;
        oct_check_same(t, want + i * ldc + from, c + i * ldc + from, (ldc - from) * 4, 4, "%s m=%zu: beyond the tile",
                       k->name, m);
    }
    oct_check_release(t);
}

/* Plans: B is rounded when it is packed. */
static void check_shape(oct_check *t, size_t m, size_t n, size_t k)
{
    const bool wild = oct_check_below(t, 2), threads = oct_check_below(t, 2);
    float *a = oct_check_buffer(t, m * k * 4), *b = oct_check_buffer(t, k * n * 4),
          *fine = oct_check_buffer(t, k * n * 4);
    float *want = oct_check_buffer(t, m * n * 4), *got = oct_check_buffer(t, m * n * 4);
    fill(t, a, m * k, wild);
    fill(t, b, k * n, wild);
    for (size_t i = 0; i < k * n; i++)
        fine[i] = isnormal(b[i]) ? b[i] * (1 + 0x1p-10f) : b[i];
    const oct_sout o = { .clamp = true, .lo = 0, .hi = INFINITY };
    for (size_t i = 0; i < m * n; i++)
        want[i] = finished(naive(0, k, a + i / n * k, b + i % n, n), &o, 0, 0);
    oct_sgemm p;
    if (oct_check_wrong(t, oct_bgemm_prepare(&p, threads ? m : 0, n, k, 2, NULL) != OCT_OK, "bgemm"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_sgemm_pack(&p, fine, (ptrdiff_t)n, 1, packed);
    oct_sgemm_run(&p, threads ? t->pool : NULL, m, a, k, packed, got, n, &o, scratch);
    oct_check_same(t, want, got, m * n * 4, 4, "%s m=%zu n=%zu k=%zu%s", p.kernel->name, m, n, k, wild ? " wild" : "");
    oct_check_release(t);
}

/* An output of a 3x3 convolution with padding of 1: the taps of an image of 16 channels and more have blocks of their
 * own, fewer are joined. */
static float convolved(const oct_conv_geom *g, const float *x, const float *w, size_t at, size_t o)
{
    const size_t c = (size_t)(g->c / g->groups), group = o / (size_t)(g->oc / g->groups);
    const int64_t oy = (int64_t)at / g->ow, ox = (int64_t)at % g->ow;
    float a[9 * 64], b[9 * 64], v = 0;
    for (size_t t = 0; t < 9; t++) {
        const int64_t y = oy * g->sh - 1 + (int64_t)t / 3, z = ox * g->sw - 1 + (int64_t)t % 3;
        const bool inside = y >= 0 && y < g->h && z >= 0 && z < g->w;
        for (size_t i = 0; i < c; i++) {
            a[t * c + i] = inside ? x[(y * g->w + z) * g->c + (int64_t)(group * c + i)] : 0;
            b[t * c + i] = w[(o * c + i) * 9 + t];
        }
    }
    for (size_t t = 0; t < 9 && c >= 16; t++)
        v = naive(v, c, a + t * c, b + t * c, 1);
    return c >= 16 ? v : naive(v, 9 * c, a, b, 1);
}

static void check_conv(oct_check *t, int64_t channels, int64_t groups, int64_t stride)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.h = 5, g.w = 7, g.c = channels * groups, g.oc = 3 * groups, g.kh = g.kw = 3, g.sh = g.sw = stride,
    g.ph = g.pw = 1, g.groups = groups;
    g.oh = (g.h - 1) / stride + 1, g.ow = (g.w - 1) / stride + 1;
    const size_t pixels = (size_t)(g.oh * g.ow), oc = (size_t)g.oc, nx = (size_t)(g.h * g.w * g.c),
                 nw = oc * (size_t)channels * 9;
    float *x = oct_check_buffer(t, nx * 4), *w = oct_check_buffer(t, nw * 4),
          *want = oct_check_buffer(t, pixels * oc * 4), *got = oct_check_buffer(t, pixels * oc * 4);
    fill(t, x, nx, false);
    fill(t, w, nw, false);
    const oct_sout none = { 0 };
    for (size_t i = 0; i < pixels * oc; i++)
        want[i] = finished(convolved(&g, x, w, i / oc, i % oc), &none, 0, 0);
    oct_sconv p;
    if (oct_check_wrong(t, oct_sconv_prepare(&p, &g, true, 2, NULL) != OCT_OK, "convolution of bf16"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_sconv_pack(&p, w, packed);
    oct_sconv_run(&p, t->pool, x, packed, got, NULL, scratch);
    oct_check_same(t, want, got, pixels * oc * 4, 4, "%s, 3x3 of %lld channels, %lld groups, stride %lld",
                   p.kernel->name, (long long)channels, (long long)groups, (long long)stride);
    oct_check_release(t);
}

/* 2^-126 - 1.5 * 2^-151: what a CPU takes to be zero, and what rounds to 2^-126 as a denormal number. */
static void check_least(oct_check *t)
{
    static const float a[] = { 0x1p-63f, 0, -0x1.8p-76f }, b[] = { 0x1p-63f, 0, 0x1p-75f };
    float c = 1;
    oct_sgemm p;
    if (oct_check_wrong(t, oct_bgemm_prepare(&p, 1, 1, 3, 1, NULL) != OCT_OK, "bgemm"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_sgemm_pack(&p, b, 1, 1, packed);
    oct_sgemm_run(&p, NULL, 1, a, 3, packed, &c, 1, NULL, scratch);
    oct_check_wrong(t, c != 0, "%s: %g below the least normal number", p.kernel->name, (double)c);
    oct_check_release(t);
}

void check_bgemm(oct_check *t)
{
    size_t count;
    const oct_sgemm_kernel *k = oct_bgemm_kernels(&count);
    static const size_t depths[] = { 1, 2, 7, 16, 31, 32, 33, 63, 64, 65, 97 };
    for (size_t i = 0; i < count; i++)
        for (size_t m = 1; m <= k[i].mr && (k[i].isa & ~oct_isa_active()) == 0; m++)
            for (size_t n = 1; n <= k[i].nr; n++)
                check_kernel(t, &k[i], m, n, 1 + (m + n) % 3, depths[(m * 7 + n * 3) % OCT_COUNT(depths)]);
    static const size_t deep[] = { 0, 1, 33, 64, 300, 700 };
    for (size_t i = 0; i < OCT_COUNT(deep); i++)
        for (size_t n = 1; n < 40; n += 1 + n / 4)
            check_shape(t, 1 + oct_check_below(t, 40), n, deep[i]);
    for (int64_t c = 1; c < 60; c += 1 + c / 3)
        for (int64_t groups = 1; groups < 3; groups++)
            check_conv(t, c, groups, 1 + c % 2);
    check_least(t);
}
