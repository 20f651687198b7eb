/* tests/check/check_nbits.c -- products with blockwise weights: every kernel against dequantized weights and their
 * chain. */
#include "check.h"
#include "kernels/nbits/nbits_int.h"
#include "kernels/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Random weights, and what each stands for, written down without the library: w[k][n]. */
typedef struct sample {
    oct_nbits_form form;
    oct_nbits_weights weights;
    float *w;
} sample;

static unsigned bits_at(const uint8_t *p, size_t i, int bits)
{
    unsigned v = 0;
    for (int b = 0; b < bits; b++)
        v |= (unsigned)(p[(i * (size_t)bits + (size_t)b) / 8] >> (i * (size_t)bits + (size_t)b) % 8 & 1) << b;
    return v;
}

static unsigned zero_at(const sample *s, size_t j, size_t block)
{
    const oct_nbits_form *f = &s->form;
    return f->zero == OCT_NBITS_WHOLE ? bits_at(s->weights.zero + j * oct_nbits_zero_bytes(f), block, f->bits)
                                      : 1u << (f->bits - 1);
}

static sample make(oct_check *t, size_t n, size_t k, int bits, size_t block, oct_nbits_zero kind, bool wild)
{
    const size_t blocks = (k + block - 1) / block, zero_row = (blocks * (size_t)bits + 7) / 8,
                 row = blocks * block * (size_t)bits / 8;
    uint8_t *qvals = oct_check_buffer(t, n * row), *zeros = oct_check_buffer(t, n * zero_row);
    float *scale = oct_check_buffer(t, n * blocks * 4), *real = oct_check_buffer(t, n * blocks * 4);
    sample s = { { n, k, bits, block, kind, false }, { qvals, scale, zeros, real }, oct_check_buffer(t, k * n * 4) };
    oct_fill_bytes(t, qvals, n * row);
    oct_fill_bytes(t, zeros, n * zero_row);
    wild ? oct_fill_f32_wild(t, scale, n * blocks) : oct_fill_f32(t, scale, n * blocks);
    for (size_t i = 0; i < n * blocks; i++)
        real[i] = (float)(int32_t)oct_check_random(t) * 0x1p-27f;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < k; i++) {
            const size_t at = j * blocks + i / block;
            const float qval = (float)bits_at(qvals + j * row, i, bits);
            const float zero = kind == OCT_NBITS_REAL    ? real[at]
                               : kind == OCT_NBITS_WHOLE ? (float)bits_at(zeros + j * zero_row, i / block, bits)
                               : bits == 2               ? 2
                               : bits == 4               ? 8
                                                         : 128;
            s.w[i * n + j] = (qval - zero) * scale[at];
        }
    return s;
}

static void naive(const sample *s, size_t m, const float *a, size_t lda, float *c, size_t ldc, const oct_sout *o)
{
    const size_t n = s->form.n;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float v = o->bias ? o->bias[j] : 0;
            for (size_t p = 0; p < s->form.k; p++)
                v = fmaf(a[i * lda + p], s->w[p * n + j], v);
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

static void check_product(oct_check *t, size_t m, size_t n, size_t k, int bits, size_t block, oct_nbits_zero kind)
{
    const uint32_t r = oct_check_random(t);
    const bool wild = r % 3 == 0;
    const sample s = make(t, n, k, bits, block, kind, wild);
    const size_t lda = k + oct_check_below(t, 4), ldc = n + oct_check_below(t, 4), ldr = n + oct_check_below(t, 3);
    float *a = oct_check_buffer(t, m * lda * 4), *bias = oct_check_buffer(t, n * 4),
          *res = oct_check_buffer(t, m * ldr * 4);
    float *want = oct_check_buffer(t, m * ldc * 4), *got = oct_check_buffer(t, m * ldc * 4);
    wild ? oct_fill_f32_wild(t, a, m * lda) : oct_fill_f32(t, a, m * lda);
    oct_fill_f32(t, bias, n);
    oct_fill_f32(t, res, m * ldr);
    const oct_sout o = {
        .bias = r & 8 ? bias : NULL, .residual = r & 16 ? res : NULL, .ldr = ldr, .clamp = r & 32, .lo = -0.5f, .hi = 2
    };
    naive(&s, m, a, lda, want, ldc, &o);
    oct_nbits p;
    oct_err err = OCT_ERR_INIT;
    if (oct_check_wrong(t, oct_nbits_prepare(&p, &s.form, 2, &err) != OCT_OK, "nbits %s", err.text))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_nbits_pack(&p, &s.weights, packed);
    oct_nbits_run(&p, r & 64 ? t->pool : NULL, m, a, lda, packed, got, ldc, &o, scratch);
    oct_check_same(t, want, got, m * ldc * 4, 4, "%s m=%zu n=%zu k=%zu bits=%d block=%zu zero=%d out=%x%s",
                   p.kernel->name, m, n, k, bits, block, (int)kind, r >> 3 & 15, wild ? " wild" : "");
    oct_check_release(t);
}

/* What a chain over blocks gives: rows of A as quantize_blocks leaves them, in numbers of 64 bits. */
static void naive_bytes(oct_check *t, const sample *s, size_t m, const float *a, size_t lda, float *c, size_t ldc)
{
    const oct_nbits_form *f = &s->form;
    const size_t blocks = oct_nbits_blocks(f);
    int8_t *q = oct_check_buffer(t, blocks * f->block);
    float *scale = oct_check_buffer(t, blocks * 4);
    int32_t *sums = oct_check_buffer(t, blocks * 4);
    for (size_t i = 0; i < m; i++) {
        oct_quantize_blocks_s8(a + i * lda, f->k, f->block, q, scale, sums);
        for (size_t j = 0; j < f->n; j++) {
            float v = 0;
            for (size_t b = 0; b < blocks; b++) {
                int64_t sum = 0;
                for (size_t p = b * f->block; p < f->k && p < (b + 1) * f->block; p++)
                    sum += q[p] * ((int64_t)bits_at(s->weights.qvals + j * oct_nbits_column_bytes(f), p, f->bits) -
                                   zero_at(s, j, b));
                v = fmaf((float)sum, scale[b] * s->weights.scale[j * blocks + b], v);
            }
            const uint32_t nan = 0x7fc00000;
            if (isnan(v))
                memcpy(&v, &nan, 4);
            c[i * ldc + j] = v;
        }
    }
}

/* Products with quantized activations, by every kernel the CPU has. Extremes: every quantized value and every weight at
 * its largest. */
static void check_bytes(oct_check *t, const oct_nbits_bytes_kernel *kernel, size_t m, size_t n, size_t k, int bits,
                        size_t block, oct_nbits_zero kind)
{
    const uint32_t r = oct_check_random(t);
    sample s = make(t, n, k, bits, block, kind, false);
    const size_t lda = k + oct_check_below(t, 4), ldc = n + oct_check_below(t, 4);
    float *a = oct_check_buffer(t, m * lda * 4), *want = oct_check_buffer(t, m * ldc * 4),
          *got = oct_check_buffer(t, m * ldc * 4);
    r % 5 == 0 ? oct_fill_f32_wild(t, a, m * lda) : oct_fill_f32(t, a, m * lda);
    for (size_t i = 0; i < m * lda && r % 5 == 1; i++)
        a[i] = i % 3 ? 1 : -1;
    if (r % 5 == 1)
        memset((uint8_t *)(uintptr_t)s.weights.qvals, 0xff, n * oct_nbits_column_bytes(&s.form));
    s.form.bytes = true;
    naive_bytes(t, &s, m, a, lda, want, ldc);
    oct_nbits p;
    oct_err err = OCT_ERR_INIT;
    if (oct_check_wrong(t, oct_nbits_prepare(&p, &s.form, 2, &err) != OCT_OK, "nbits %s", err.text))
        return;
    p.bytes = kernel;
    p.more[0] = NULL;
    p.packed_size = (n + kernel->nr - 1) / kernel->nr * oct_nbits_panel_bytes(&s.form, kernel->nr);
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_nbits_pack(&p, &s.weights, packed);
    oct_nbits_run(&p, r & 64 ? t->pool : NULL, m, a, lda, packed, got, ldc, NULL, scratch);
    oct_check_same(t, want, got, m * ldc * 4, 4, "%s m=%zu n=%zu k=%zu bits=%d block=%zu zero=%d kind %u", kernel->name,
                   m, n, k, bits, block, (int)kind, r % 5);
    oct_check_release(t);
}

/* Bias, residual and clamp, and the whole walk: against the same without them, and more rows than are quantized at a
 * time. */
static void check_bytes_out(oct_check *t)
{
    enum { M = 300, N = 50, K = 70 };
    sample s = make(t, N, K, 4, 32, OCT_NBITS_WHOLE, false);
    float *a = oct_check_buffer(t, M * K * 4), *bias = oct_check_buffer(t, N * 4),
          *res = oct_check_buffer(t, M * N * 4);
    float *want = oct_check_buffer(t, M * N * 4), *got = oct_check_buffer(t, M * N * 4);
    oct_fill_f32(t, a, M * K);
    oct_fill_f32(t, bias, N);
    oct_fill_f32(t, res, M * N);
    s.form.bytes = true;
    naive_bytes(t, &s, M, a, K, want, N);
    oct_nbits p;
    if (oct_check_wrong(t, oct_nbits_prepare(&p, &s.form, 2, NULL) != OCT_OK, "nbits"))
        return;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_nbits_pack(&p, &s.weights, packed);
    /* The bias begins a chain: a residual is added behind it, exactly like the first where the chain is taken alone. */
    const oct_sout o = { .residual = res, .ldr = N, .clamp = true, .lo = -0.5f, .hi = 2 };
    oct_nbits_run(&p, t->pool, M, a, K, packed, got, N, &o, scratch);
    for (size_t i = 0; i < M * N; i++) {
        const float v = want[i] + res[i];
        want[i] = v < o.lo ? o.lo : v > o.hi ? o.hi : v;
    }
    oct_check_same(t, want, got, M * N * 4, 4, "%s with a residual, clamped", p.bytes->name);
    const oct_sout begun = { .bias = bias };
    float *one = oct_check_buffer(t, N * 4);
    memset(a, 0, K * 4);
    oct_nbits_run(&p, NULL, 1, a, K, packed, one, N, &begun, scratch);
    oct_check_same(t, bias, one, N * 4, 4, "%s begins with the bias", p.bytes->name);
    oct_check_release(t);
}

/* Each kernel the CPU has, on panels of its own: rows of one and two panels, parts of the depth unpacked. */
static void check_kernel(oct_check *t, const oct_nbits_kernel *kernel, size_t k, int bits, size_t block,
                         oct_nbits_zero kind)
{
    const size_t nr = kernel->nr ? kernel->nr : 1 + oct_check_below(t, 5), n = 2 * nr;
    const sample s = make(t, n, k, bits, block, kind, false);
    const oct_sgemm_kernel width = { .nr = nr };
    oct_nbits p = { .form = s.form, .sgemm = &width, .packed_size = 2 * oct_nbits_panel_bytes(&s.form, nr) };
    uint8_t *packed = oct_check_buffer(t, p.packed_size);
    oct_nbits_pack(&p, &s.weights, packed);
    float *a = oct_check_buffer(t, k * 4), *want = oct_check_buffer(t, n * 4), *got = oct_check_buffer(t, n * 4);
    oct_fill_f32(t, a, k);
    for (size_t two = 0; two < 2; two++) {
        oct_fill_f32(t, want, n);
        memcpy(got, want, n * 4);
        kernel->row(&s.form, nr, two, a, packed, got);
        for (size_t j = 0; j < (two ? n : nr); j++)
            for (size_t i = 0; i < k; i++)
                want[j] = fmaf(a[i], s.w[i * n + j], want[j]);
        oct_check_same(t, want, got, n * 4, 4, "%s row k=%zu bits=%d block=%zu zero=%d panels=%zu", kernel->name, k,
                       bits, block, (int)kind, two + 1);
    }
    for (size_t m = 2; m <= 4; m++) {
        const size_t lda = k + oct_check_below(t, 3);
        float *rows = oct_check_buffer(t, m * lda * 4), *few = oct_check_buffer(t, m * nr * 4),
              *few_want = oct_check_buffer(t, m * nr * 4);
        oct_fill_f32(t, rows, m * lda);
        oct_fill_f32(t, few, m * nr);
        memcpy(few_want, few, m * nr * 4);
        kernel->few(&s.form, nr, m, rows, lda, packed, few);
        for (size_t r = 0; r < m; r++)
            for (size_t j = 0; j < nr; j++)
                for (size_t i = 0; i < k; i++)
                    few_want[r * nr + j] = fmaf(rows[r * lda + i], s.w[i * n + j], few_want[r * nr + j]);
        oct_check_same(t, few_want, few, m * nr * 4, 4, "%s %zu rows k=%zu bits=%d block=%zu zero=%d", kernel->name, m,
                       k, bits, block, (int)kind);
    }
    const size_t k0 = oct_check_below(t, k) / 16 * 16, kc = 1 + oct_check_below(t, k - k0),
                 panel = oct_check_below(t, 2);
    float *part = oct_check_buffer(t, kc * nr * 4), *part_want = oct_check_buffer(t, kc * nr * 4);
    kernel->unpack(&s.form, nr, packed + panel * oct_nbits_panel_bytes(&s.form, nr), k0, kc, part);
    for (size_t i = 0; i < kc; i++)
        memcpy(part_want + i * nr, s.w + (k0 + i) * n + panel * nr, nr * 4);
    oct_check_same(t, part_want, part, kc * nr * 4, 4, "%s unpack k=%zu bits=%d block=%zu zero=%d from %zu",
                   kernel->name, k, bits, block, (int)kind, k0);
    oct_check_release(t);
}

static void check_dequantize(oct_check *t, size_t n, size_t k, int bits, size_t block, oct_nbits_zero kind)
{
    sample s = make(t, n, k, bits, block, kind, false);
    float *one = oct_check_buffer(t, k * 4), *want = oct_check_buffer(t, k * 4);
    int32_t *group = oct_check_buffer(t, k * 4);
    const float middle = (float)(1 << (bits - 1));
    for (size_t j = 0; j < n; j++) {
        s.weights.group = NULL;
        oct_nbits_dequantize(&s.form, &s.weights, j, one);
        for (size_t i = 0; i < k; i++)
            want[i] = s.w[i * n + j];
        oct_check_same(t, want, one, k * 4, 4, "nbits dequantize n=%zu k=%zu bits=%d block=%zu zero=%d", n, k, bits,
                       block, (int)kind);
    }
    for (size_t j = 0; j < n && kind == OCT_NBITS_MIDDLE;
         j++) { /* the first block's scale is the last one's, and so on */
        const size_t blocks = (k + block - 1) / block;
        s.weights.group = group;
        for (size_t i = 0; i < k; i++) {
            group[i] = (int32_t)(blocks - 1 - i / block);
            want[i] = ((float)bits_at(s.weights.qvals + j * blocks * block * (size_t)bits / 8, i, bits) - middle) *
                      s.weights.scale[j * blocks + (size_t)group[i]];
        }
        oct_nbits_dequantize(&s.form, &s.weights, j, one);
        oct_check_same(t, want, one, k * 4, 4, "nbits dequantize by groups, k=%zu bits=%d", k, bits);
    }
    oct_check_release(t);
}

static void check_refused(oct_check *t)
{
    static const oct_nbits_form odd[] = { { 4, 32, 3, 32, 0, 0 },
                                          { 4, 32, 4, 8, 0, 0 },
                                          { 4, 32, 4, 512, 0, 0 },
                                          { 4, 32, 4, 48, 0, 0 },
                                          { SIZE_MAX / 8, SIZE_MAX / 8, 4, 32, 0, 0 },
                                          { 4, 32, 4, 32, OCT_NBITS_REAL, true } };
    for (size_t i = 0; i < OCT_COUNT(odd); i++) {
        oct_nbits p;
        oct_check_wrong(t, oct_nbits_prepare(&p, &odd[i], 1, NULL) == OCT_OK,
                        "nbits: %d bits in blocks of %zu are accepted", odd[i].bits, odd[i].block);
    }
}

void check_nbits(oct_check *t)
{
    static const int bits[] = { 2, 4, 8 };
    static const size_t blocks[] = { 16, 32, 64, 128, 256 }, depths[] = { 1, 7, 16, 31, 32, 33, 100, 256, 300, 700 };
    size_t count;
    const oct_nbits_kernel *kernel = oct_nbits_kernels(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < 3 * OCT_COUNT(blocks) && (kernel[i].isa & ~oct_isa_active()) == 0; b++)
            for (size_t d = 0; d < OCT_COUNT(depths); d++)
                check_kernel(t, &kernel[i], depths[d], bits[b % 3], blocks[b / 3], (oct_nbits_zero)((b + d) % 3));
    for (size_t b = 0; b < 3 * OCT_COUNT(blocks); b++)
        for (size_t d = 0; d < OCT_COUNT(depths); d++)
            for (int zero = 0; zero < 3; zero++)
                check_product(t, d % 2 ? 1 : 2 + oct_check_below(t, 9), 1 + oct_check_below(t, 70), depths[d],
                              bits[b % 3], blocks[b / 3], (oct_nbits_zero)zero);
    for (int zero = 0; zero < 3; zero++) {
        check_product(t, 110, 33, 600, 4, 32, (oct_nbits_zero)zero);
        check_product(t, 1, 200, 1000, 4, 32, (oct_nbits_zero)zero);
        check_dequantize(t, 5, 77, bits[zero], 16, (oct_nbits_zero)zero);
        check_dequantize(t, 3, 300, bits[zero], 128, (oct_nbits_zero)((zero + 1) % 3));
    }
    const oct_nbits_bytes_kernel *bytes = oct_nbits_bytes_kernels(&count);
    for (size_t i = 0; i < count; i++) /* tiles of every height and number */
        for (size_t m = 10; m <= bytes[i].mr && (bytes[i].isa & ~oct_isa_active()) == 0; m += m < 50 ? 1 : 13)
            check_bytes(t, &bytes[i], m, 1 + oct_check_below(t, 40), 1 + oct_check_below(t, 100), bits[m % 3],
                        blocks[m % 5], (oct_nbits_zero)(m % 2));
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < 3 * OCT_COUNT(blocks) && (bytes[i].isa & ~oct_isa_active()) == 0; b++)
            for (size_t d = 0; d < OCT_COUNT(depths); d++)
                check_bytes(t, &bytes[i], 1 + (b + d) % 19, 1 + oct_check_below(t, 70), depths[d], bits[b % 3],
                            blocks[b / 3], (oct_nbits_zero)((b + d) % 2));
    check_bytes_out(t);
    check_refused(t);
}

/* ------------------------------------------------------------------ timing */

typedef struct timing {
    oct_nbits p;
    oct_sgemm f;
    size_t m;
    float *a, *c;
    void *packed, *packed_f32, *scratch;
} timing;

static void run_bits(void *arg)
{
    timing *b = arg;
    oct_nbits_run(&b->p, NULL, b->m, b->a, b->p.form.k, b->packed, b->c, b->p.form.n, NULL, b->scratch);
}

static void run_f32(void *arg)
{
    timing *b = arg;
    oct_sgemm_run(&b->f, NULL, b->m, b->a, b->p.form.k, b->packed_f32, b->c, b->p.form.n, NULL, b->scratch);
}

/* GMAC/s with quantized activations, 0 where zero points do not let them be. */
static double bytes_rate(oct_check *t, timing b, sample s, double macs)
{
    s.form.bytes = true;
    if (oct_nbits_prepare(&b.p, &s.form, 1, NULL) != OCT_OK)
        return 0;
    b.packed = oct_check_buffer(t, b.p.packed_size);
    b.scratch = oct_check_buffer(t, b.p.scratch_size);
    oct_nbits_pack(&b.p, &s.weights, b.packed);
    return macs / oct_check_time(run_bits, &b);
}

static void bench(oct_check *t, size_t m, size_t n, size_t k, int bits, size_t block, oct_nbits_zero zero)
{
    const sample s = make(t, n, k, bits, block, zero, false);
    timing b = { .m = m };
    if (oct_nbits_prepare(&b.p, &s.form, 1, NULL) != OCT_OK || oct_sgemm_prepare(&b.f, m, n, k, 1, NULL) != OCT_OK)
        return;
    b.a = oct_check_buffer(t, m * k * 4);
    b.c = oct_check_buffer(t, m * n * 4);
    b.packed = oct_check_buffer(t, b.p.packed_size);
    b.packed_f32 = oct_check_buffer(t, b.f.packed_size);
    b.scratch = oct_check_buffer(t, b.p.scratch_size > b.f.scratch_size ? b.p.scratch_size : b.f.scratch_size);
    oct_fill_f32(t, b.a, m * k);
    oct_nbits_pack(&b.p, &s.weights, b.packed);
    oct_sgemm_pack(&b.f, s.w, (ptrdiff_t)n, 1, b.packed_f32);
    const double macs = (double)m * (double)n * (double)k * 1e-9, f = oct_check_time(run_f32, &b),
                 q = oct_check_time(run_bits, &b);
    static const char *const names[] = { "middle", "whole", "real" };
    printf("%3zux%zux%zu %d bits, blocks of %3zu, zero %-6s  f32 %6.1f  %6.1f GMAC/s  %5.1f GB/s  bytes %6.1f GMAC/s\n",
           m, n, k, bits, block, names[zero], macs / f, macs / q, (double)b.p.packed_size * 1e-9 / q,
           bytes_rate(t, b, s, macs));
    oct_check_release(t);
}

void bench_nbits(oct_check *t)
{
    const oct_sgemm_kernel *sgemm =
        oct_sgemm_choose(oct_isa_active(), &(oct_extent){ .n = 1024, .depth = 1024 }).record;
    printf("\n%s, one thread\n", oct_nbits_select(oct_isa_active(), sgemm->nr)->name);
    static const size_t rows[] = { 1, 2, 4, 16, 128 };
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        bench(t, rows[i], 2048, 2048, 4, 32, OCT_NBITS_WHOLE);
    bench(t, 1, 4096, 4096, 4, 32, OCT_NBITS_MIDDLE);
    bench(t, 1, 4096, 4096, 4, 32, OCT_NBITS_WHOLE);
    bench(t, 1, 4096, 4096, 4, 128, OCT_NBITS_WHOLE);
    bench(t, 1, 4096, 4096, 4, 32, OCT_NBITS_REAL);
    bench(t, 1, 4096, 4096, 8, 32, OCT_NBITS_WHOLE);
    bench(t, 1, 4096, 4096, 2, 32, OCT_NBITS_WHOLE);
}
