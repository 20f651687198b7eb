/* lib/kernels/nbits/nbits_bytes.c -- blockwise weights and activations that are quantized by the same blocks: kernels,
 * plans, the walk. */
#include "base/mem.h"
#include "kernels/rows.h"
#include "kernels/nbits/nbits_int.h"
#include "kernels/quantize.h"
#include "kernels/sgemm/sout.h"

#include <string.h>

/* Rows that are quantized at a time, so that weights are read once for so many; the most rows of a call, whole groups
 * of them, and columns. */
enum { ROWS = 128, MOST_ROWS = 132, MOST_COLUMNS = 32 };

#define OCT_NBITS_BYTES(isa, name, mr, nr, least, group) { #name, OCT_ISA_##isa, name, mr, nr, least, group },
static const oct_nbits_bytes_kernel kernels[] = {
#include "kernels/nbits/nbits_s8.inc"
};
#undef OCT_NBITS_BYTES

const oct_nbits_bytes_kernel *oct_nbits_bytes_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

/* Quantized rows in scratch: values, scales, sums. */
typedef struct parts {
    size_t scale, sum, bytes;
} parts;

static bool part(const oct_nbits_form *f, size_t rows, parts *p)
{
    const size_t blocks = oct_nbits_blocks(f);
    size_t values, numbers;
    if (blocks > SIZE_MAX / 16 / f->block || !oct_mul_size(blocks * f->block, rows, &values) ||
        !oct_mul_size(blocks * sizeof(float), rows, &numbers) || values > SIZE_MAX / 8 || numbers > SIZE_MAX / 8)
        return false;
    p->scale = oct_round_up(values, 64);
    p->sum = p->scale + oct_round_up(numbers, 64);
    p->bytes = p->sum + oct_round_up(numbers, 64);
    return true;
}

oct_status oct_nbits_bytes_prepare(oct_nbits *p, oct_err *err)
{
    const oct_nbits_form *f = &p->form;
    parts scratch;
    if (f->zero == OCT_NBITS_REAL)
        return oct_fail(err, OCT_EUNSUPPORTED,
                        "activations cannot be quantized where zero points of weights are real numbers");
    p->bytes = &kernels[0];
    for (size_t i = 1; i < OCT_COUNT(kernels); i++)
        if ((kernels[i].isa & ~oct_isa_active()) == 0 && kernels[i].least == 1)
            p->bytes = &kernels[i];
    for (size_t i = 0, n = 0; i < OCT_COUNT(kernels) && n < OCT_COUNT(p->more); i++)
        if ((kernels[i].isa & ~oct_isa_active()) == 0 && kernels[i].least > 1 && kernels[i].nr == p->bytes->nr)
            p->more[n++] = &kernels[i];
    const size_t nr = p->bytes->nr;
    if (f->k > SIZE_MAX / 64 / nr || f->n > SIZE_MAX / 64 ||
        !oct_mul_size(oct_nbits_panel_bytes(f, nr), (f->n + nr - 1) / nr, &p->packed_size) ||
        p->packed_size > SIZE_MAX / 2 || !part(f, MOST_ROWS, &scratch))
        return oct_fail(err, OCT_ENOMEM, "matrix product of depth %zu with %zu columns is too large", f->k, f->n);
    p->scratch_size = scratch.bytes;
    return OCT_OK;
}

typedef struct job {
    const oct_nbits *p;
    const oct_nbits_bytes_kernel *kernel;
    const float *a;
    const uint8_t *packed;
    size_t m, lda, ldc;
    float *c;
    oct_sout out;
    uint8_t *scratch;
    parts at;
} job;

/* A row to its places among those that it lies together with. */
static void quantize_row(const job *w, size_t i)
{
    enum { PART = 1024, MOST_BLOCKS = PART / 16 };
    const oct_nbits_form *f = &w->p->form;
    const size_t blocks = oct_nbits_blocks(f), group = w->kernel->group, first = i % group;
    uint8_t *to = w->scratch + (i - first) * blocks * f->block + 4 * first;
    float *scale = (float *)(void *)(w->scratch + w->at.scale) + (i - first) * blocks + first;
    int32_t *sum = (int32_t *)(void *)(w->scratch + w->at.sum) + (i - first) * blocks + first;
    for (size_t k = 0; k < f->k; k += PART) {
        const size_t n = f->k - k < PART ? f->k - k : PART, some = (n + f->block - 1) / f->block;
        int8_t q[PART];
        float scales[MOST_BLOCKS];
        int32_t sums[MOST_BLOCKS];
        oct_quantize_blocks_s8(w->a + i * w->lda + k, n, f->block, q, scales, sums);
        for (size_t j = 0; j < some * f->block; j += 4, to += 4 * group)
            memcpy(to, q + j, 4);
        for (size_t j = 0; j < some; j++, scale += group, sum += group) {
            *scale = scales[j];
            *sum = sums[j];
        }
    }
}

static void quantize_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_nbits_form *f = &w->p->form;
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t i = begin; i < end; i++)
        if (w->kernel->group > 1)
            quantize_row(w, i);
        else
            oct_quantize_blocks_s8(w->a + i * w->lda, f->k, f->block, (int8_t *)w->scratch + i * blocks * f->block,
                                   (float *)(void *)(w->scratch + w->at.scale) + i * blocks,
                                   (int32_t *)(void *)(w->scratch + w->at.sum) + i * blocks);
}

/* Rows from i of a panel, n columns from j. */
static void run_tile(const job *w, const uint8_t *panel, size_t i, size_t m, size_t j, size_t n)
{
    const oct_nbits_form *f = &w->p->form;
    const size_t nr = w->kernel->nr, blocks = oct_nbits_blocks(f);
    const oct_nbits_rows a = { (const int8_t *)w->scratch + i * blocks * f->block,
                               (const float *)(const void *)(w->scratch + w->at.scale) + i * blocks,
                               (const int32_t *)(const void *)(w->scratch + w->at.sum) + i * blocks };
    _Alignas(64) float y[MOST_ROWS * MOST_COLUMNS];
    for (size_t q = 0; q < nr; q++)
        y[q] = q < n ? oct_sout_start(&w->out, j + q) : 0.0f;
    for (size_t r = 1; r < m; r++)
        memcpy(y + r * nr, y, nr * sizeof *y);
    w->kernel->run(f, nr, m, &a, panel, y);
    const oct_sout out = w->out; /* c is not it */
    for (size_t r = 0; r < m; r++) {
        const float *residual = out.residual ? out.residual + (i + r) * out.ldr : NULL;
        float *c = w->c + (i + r) * w->ldc;
        for (size_t q = 0; q < n; q++)
            c[j + q] = oct_sout_apply(y[r * nr + q], &out, residual, j + q);
    }
}

static void run_panels(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_nbits_form *f = &w->p->form;
    const size_t nr = w->kernel->nr, mr = w->kernel->mr;
    for (size_t p = begin; p < end; p++)
        for (size_t i = 0; i < w->m; i += mr)
            run_tile(w, w->packed + p * oct_nbits_panel_bytes(f, nr), i, w->m - i < mr ? w->m - i : mr, p * nr,
                     f->n - p * nr < nr ? f->n - p * nr : nr);
}

void oct_nbits_bytes_run(const oct_nbits *p, oct_pool *pool, size_t m, const float *a, size_t lda,
                         const uint8_t *packed, float *c, size_t ldc, const oct_sout *out, void *scratch)
{
    const oct_nbits_form *f = &p->form;
    const size_t panels = (f->n + p->bytes->nr - 1) / p->bytes->nr;
    for (size_t i = 0; i < m; i += ROWS) {
        job w = { .p = p,
                  .a = a + i * lda,
                  .packed = packed,
                  .m = m - i < ROWS ? m - i : ROWS,
                  .lda = lda,
                  .ldc = ldc,
                  .c = c + i * ldc,
                  .out = *out,
                  .scratch = scratch };
        w.kernel = p->bytes;
        for (size_t j = 0; j < OCT_COUNT(p->more) && p->more[j] && p->more[j]->least <= w.m; j++)
            w.kernel = p->more[j];
        if (w.out.residual)
            w.out.residual += i * w.out.ldr;
        part(f, oct_round_up(w.m, w.kernel->group), &w.at);
        /* Waking the threads costs more than a product this small. */
        const bool small = (double)w.m * (double)f->n * (double)f->k < 131072;
        oct_pool_for(small || w.m < 4 ? NULL : pool, w.m, 1, quantize_rows, &w);
        oct_pool_for(small ? NULL : pool, panels, 1, run_panels, &w);
    }
}
