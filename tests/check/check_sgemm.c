/* tests/check/check_sgemm.c -- float product: every kernel against the definition, the definition against double. */
#include "check.h"
#include "kernels/sgemm/sgemm_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One chain an output, from the bias, written down without the library. */
static void naive(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, float *c, size_t ldc,
                  const oct_sout *o)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float v = o->bias ? o->bias[j] : 0;
            for (size_t p = 0; p < k; p++)
                v = fmaf(a[i * lda + p], b[p * n + j], v);
            if (o->residual)
                v += o->residual[i * o->ldr + j];
            if (o->clamp && v < o->lo)
                v = o->lo;
            if (o->clamp && v > o->hi)
                v = o->hi;
            const uint32_t nan = 0x7fc00000;
            if (isnan(v))
                memcpy(&v, &nan, 4);
            c[i * ldc + j] = v;
        }
}

static void check_shape(oct_check *t, size_t m, size_t n, size_t k, bool wild)
{
    void (*fill)(oct_check *, float *, size_t) = wild ? oct_fill_f32_wild : oct_fill_f32;
    const size_t lda = k + oct_check_below(t, 5), ldc = n + oct_check_below(t, 5), ldr = n + oct_check_below(t, 3);
    float *a = oct_check_buffer(t, m * lda * 4), *b = oct_check_buffer(t, k * n * 4),
          *bt = oct_check_buffer(t, k * n * 4);
    float *want = oct_check_buffer(t, m * ldc * 4), *got = oct_check_buffer(t, m * ldc * 4);
    float *bias = oct_check_buffer(t, n * 4), *res = oct_check_buffer(t, m * ldr * 4);
    fill(t, a, m * lda);
    fill(t, b, k * n);
    fill(t, bias, n);
    fill(t, res, m * ldr);
    for (size_t p = 0; p < k; p++)
        for (size_t j = 0; j < n; j++)
            bt[j * k + p] = b[p * n + j];
    const uint32_t r = oct_check_random(t);
    const oct_sout o = { .bias = r & 1 ? bias : NULL,
                         .residual = r & 2 ? res : NULL,
                         .ldr = ldr,
                         .clamp = r & 4,
                         .lo = r & 8 ? 0.0f : -0.5f,
                         .hi = r & 16 ? INFINITY : 0.75f };
    naive(m, n, k, a, lda, b, want, ldc, &o);
    oct_sgemm p;
    oct_err err = OCT_ERR_INIT;
    oct_check_want_any(t, false);
    const oct_status s = oct_sgemm_prepare(&p, r & 64 ? m : 0, n, k, 2, &err);
    oct_choice_want(NULL, NULL);
    if (oct_check_wrong(t, s != OCT_OK, "sgemm %s", err.text))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    if (r & 32)
        oct_sgemm_pack(&p, b, (ptrdiff_t)n, 1, packed);
    else
        oct_sgemm_pack(&p, bt, 1, (ptrdiff_t)k, packed);
    oct_sgemm_run(&p, r & 64 ? t->pool : NULL, m, a, lda, packed, got, ldc, &o, scratch);
    oct_check_same(t, want, got, m * ldc * 4, 4, "%s m=%zu n=%zu k=%zu out=%x%s", p.kernel->name, m, n, k, r & 31,
                   wild ? " wild" : "");
    oct_check_release(t);
}

/* |chain - exact| <= k * 2^-24 * sum |a b| (Higham, Accuracy and Stability, 3.1), plus one rounding. */
static void check_bound(oct_check *t, size_t k)
{
    float *a = oct_check_buffer(t, k * 4), *b = oct_check_buffer(t, k * 4), c;
    oct_fill_f32(t, a, k);
    oct_fill_f32(t, b, k);
    const float *rows[] = { a };
    const oct_sout o = { 0 };
    oct_sgemm_f32_1x1__ref(1, 1, 1, k, rows, b, &c, 1, true, true, &o);
    double sum = 0, abs = 0;
    for (size_t i = 0; i < k; i++) {
        sum += (double)a[i] * b[i];
        abs += fabs((double)a[i] * b[i]);
    }
    oct_check_wrong(t, fabs(c - sum) > (double)(k + 1) * 0x1p-24 * abs, "sgemm reference k=%zu: %g, double %g", k,
                    (double)c, sum);
    oct_check_release(t);
}

/* Every kernel the CPU has, on its own: several taps, chains continued, all heights and widths. */
static void check_kernel(oct_check *t, const oct_sgemm_kernel *k, size_t m, size_t n, size_t taps, size_t kc)
{
    const size_t ldc = k->nr + 3, mr = k->mr, nr = k->nr;
    float *a = oct_check_buffer(t, mr * taps * kc * 4), *b = oct_check_buffer(t, taps * kc * nr * 4);
    float *c = oct_check_buffer(t, mr * ldc * 4), *want = oct_check_buffer(t, mr * ldc * 4);
    float *bias = oct_check_buffer(t, nr * 4), *one = oct_check_buffer(t, taps * kc * 4);
    const float **rows = oct_check_buffer(t, mr * taps * sizeof *rows), **own = oct_check_buffer(t, taps * sizeof *own);
    const bool first = oct_check_below(t, 2), last = oct_check_below(t, 3);
    /* Inside a chain a NaN may have any bits. */
    void (*fill)(oct_check *, float *, size_t) = last ? oct_fill_f32_wild : oct_fill_f32;
    fill(t, a, mr * taps * kc);
    fill(t, b, taps * kc * nr);
    oct_fill_f32(t, c, mr * ldc);
    oct_fill_f32(t, bias, nr);
    memcpy(want, c, mr * ldc * 4);
    const oct_sout o = { .bias = bias, .clamp = true, .lo = -1, .hi = 1 };
    for (size_t i = 0; i < mr * taps; i++)
        rows[i] = a + i * kc;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            oct_sout oj = o;
            oj.bias += j;
            for (size_t p = 0; p < taps * kc; p++)
                one[p] = b[p * nr + j];
            for (size_t p = 0; p < taps; p++)
                own[p] = rows[p * mr + i];
            oct_sgemm_f32_1x1__ref(1, 1, taps, kc, own, one, want + i * ldc + j, ldc, first, last, &oj);
        }
    k->fn(m, n, taps, kc, rows, b, c, ldc, first, last, &o);
    for (size_t i = 0; i < m; i++)
        oct_check_same(t, want + i * ldc, c + i * ldc, n * 4, 4, "%s m=%zu n=%zu taps=%zu kc=%zu row %zu", k->name, m,
                       n, taps, kc, i);
    for (size_t i = 0; i < mr; i++) {
        const size_t from = i < m ? nr : 0;
        oct_check_same(t, want + i * ldc + from, c + i * ldc + from, (ldc - from) * 4, 4, "%s m=%zu: beyond the tile",
                       k->name, m);
    }
    oct_check_release(t);
}

void check_sgemm(oct_check *t)
{
    size_t count;
    const oct_sgemm_kernel *k = oct_sgemm_kernels(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t m = 1; m <= k[i].mr && (k[i].isa & ~oct_isa_active()) == 0; m++)
            for (size_t n = 1; n <= k[i].nr; n++)
                check_kernel(t, &k[i], m, n, 1 + (m + n) % 3, 1 + (m * 7 + n * 3) % 11);
    static const size_t depths[] = { 0, 1, 2, 7, 16, 33, 64, 257, 700 };
    for (size_t i = 0; i < OCT_COUNT(depths); i++)
        for (size_t n = 0; n < 40; n++)
            check_shape(t, n % 4 == 1 ? 1 : 1 + oct_check_below(t, n % 8 == 0 ? 220 : 17),
                        1 + (n < 34 ? n : oct_check_below(t, 150)), depths[i], n % 3 == 0);
    for (size_t n = 1; n < 3000; n = n * 3 + 1)
        check_bound(t, n);
}
