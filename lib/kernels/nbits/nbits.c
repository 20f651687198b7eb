/* lib/kernels/nbits/nbits.c -- list of kernels, packing, plans, the walk over panels. */
#include "kernels/nbits/nbits.h"

#include "base/mem.h"
#include "kernels/nbits/nbits_int.h"
#include "kernels/sgemm/sgemm_int.h"

#include <string.h>

#define OCT_NBITS(isa, name, nr) { #name, OCT_ISA_##isa, name##_row, name##_few, name##_unpack, nr },
static const oct_nbits_kernel kernels[] = {
#include "kernels/nbits/nbits.inc"
};
#undef OCT_NBITS

const oct_nbits_kernel *oct_nbits_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

const oct_nbits_kernel *oct_nbits_select(oct_isa have, size_t nr)
{
    const oct_nbits_kernel *best = &kernels[0];
    for (size_t i = 1; i < OCT_COUNT(kernels); i++)
        if ((kernels[i].isa & ~have) == 0 && kernels[i].nr == nr)
            best = &kernels[i];
    return best;
}

/* ------------------------------------------------------------------ the unpacked form */

size_t oct_nbits_blocks(const oct_nbits_form *f)
{
    return f->k / f->block + (f->k % f->block != 0);
}

size_t oct_nbits_column_bytes(const oct_nbits_form *f)
{
    return oct_nbits_blocks(f) * (f->block * (size_t)f->bits / 8);
}

size_t oct_nbits_zero_bytes(const oct_nbits_form *f)
{
    return (oct_nbits_blocks(f) * (size_t)f->bits + 7) / 8;
}

static unsigned qval_at(const uint8_t *qvals, int bits, size_t i)
{
    const size_t per = 8 / (size_t)bits;
    return qvals[i / per] >> i % per * (size_t)bits & ((1u << bits) - 1);
}

static float zero_of(const oct_nbits_form *f, const oct_nbits_weights *w, size_t column, size_t block)
{
    switch (f->zero) {
    case OCT_NBITS_WHOLE: return (float)qval_at(w->zero + column * oct_nbits_zero_bytes(f), f->bits, block);
    case OCT_NBITS_REAL: return w->real[column * oct_nbits_blocks(f) + block];
    default: return (float)(1 << (f->bits - 1));
    }
}

void oct_nbits_dequantize(const oct_nbits_form *f, const oct_nbits_weights *from, size_t column, float *w)
{
    const uint8_t *qvals = from->qvals + column * oct_nbits_column_bytes(f);
    const float *scale = from->scale + column * oct_nbits_blocks(f);
    for (size_t i = 0; i < f->k; i++) {
        const size_t block = from->group ? (size_t)from->group[i] : i / f->block;
        w[i] = ((float)qval_at(qvals, f->bits, i) - zero_of(f, from, column, block)) * scale[block];
    }
}

/* ------------------------------------------------------------------ preparing */

oct_status oct_nbits_prepare(oct_nbits *p, const oct_nbits_form *f, int threads, oct_err *err)
{
    *p = (oct_nbits){ .form = *f,
                      .sgemm = oct_sgemm_choose(oct_isa_active(), &(oct_extent){ .n = f->n, .depth = f->k }).record,
                      .threads = threads < 1 ? 1 : threads };
    if ((f->bits != 2 && f->bits != 4 && f->bits != 8) || f->block < 16 || f->block > 256 ||
        (f->block & (f->block - 1)))
        return oct_fail(err, OCT_EUNSUPPORTED, "weights of %d bits in blocks of %zu cannot be run", f->bits, f->block);
    if (f->bytes)
        return oct_nbits_bytes_prepare(p, err);
    const size_t nr = p->sgemm->nr;
    size_t bytes;
    p->kernel = oct_nbits_select(oct_isa_active(), nr);
    /* A block takes less than 16 bytes a value of k and column. */
    if (f->k > SIZE_MAX / 64 / nr || f->n > SIZE_MAX / 64 ||
        !oct_mul_size(oct_nbits_panel_bytes(f, nr), (f->n + nr - 1) / nr, &p->packed_size) ||
        p->packed_size > SIZE_MAX / 2 ||
        !oct_stiles_scratch(p->sgemm, oct_rows_block(0, false), 1, f->k, false, true, &bytes) ||
        !oct_mul_size(bytes, (size_t)p->threads, &p->scratch_size))
        return oct_fail(err, OCT_ENOMEM, "matrix product of depth %zu with %zu columns is too large", f->k, f->n);
    return OCT_OK;
}

/* A word of values one behind another, with value i + 4 behind value i instead. */
static uint32_t by_fours(uint32_t word, size_t bits)
{
    const size_t per = 32 / bits;
    uint32_t out = 0;
    for (size_t i = 0; i < per; i++)
        out |= (word >> i * bits & (uint32_t)((1u << bits) - 1)) << (i % 4 * 8 + i / 4 * bits);
    return out;
}

/* Column j of a panel, or zeros where the last panel has none. */
static void pack_column(const oct_nbits_form *f, size_t nr, const oct_nbits_weights *w, size_t column, uint8_t *panel,
                        size_t j)
{
    const size_t blocks = oct_nbits_blocks(f), words = f->block * (size_t)f->bits / 32;
    const uint8_t *qvals = w->qvals + column * oct_nbits_column_bytes(f);
    for (size_t b = 0; b < blocks; b++, panel += oct_nbits_block_bytes(f, nr), qvals += words * 4) {
        memcpy(panel + j * 4, w->scale + column * blocks + b, 4);
        const float zero = zero_of(f, w, column, b);
        if (f->zero == OCT_NBITS_WHOLE)
            panel[oct_nbits_at_zero(nr) + j] = (uint8_t)zero;
        else if (f->zero == OCT_NBITS_REAL)
            memcpy(panel + oct_nbits_at_zero(nr) + j * 4, &zero, 4);
        for (size_t i = 0; i < words; i++) {
            uint32_t word;
            memcpy(&word, qvals + i * 4, 4);
            word = f->bytes && f->bits < 8 ? by_fours(word, (size_t)f->bits) : word;
            memcpy(panel + oct_nbits_at_qvals(f, nr) + (i * nr + j) * 4, &word, 4);
        }
    }
}

void oct_nbits_pack(const oct_nbits *p, const oct_nbits_weights *w, void *packed)
{
    const size_t nr = p->bytes ? p->bytes->nr : p->sgemm->nr, panel = oct_nbits_panel_bytes(&p->form, nr);
    memset(packed, 0, p->packed_size);
    for (size_t column = 0; column < p->form.n; column++)
        pack_column(&p->form, nr, w, column, (uint8_t *)packed + column / nr * panel, column % nr);
}

/* ------------------------------------------------------------------ running */

typedef struct job {
    const oct_nbits *p;
    const uint8_t *packed;
    const float *a;
    size_t m, lda, ldc;
    float *c;
    const oct_sout *out;
} job;

/* Most columns that two panels have, and rows that are few. */
enum { MOST_COLUMNS = 64, MOST_FEW = 4 };

/* Two panels against the one row. */
static void run_pair(const job *w, size_t pair)
{
    const oct_nbits_form *f = &w->p->form;
    const size_t nr = w->p->sgemm->nr, j0 = pair * 2 * nr, n = f->n - j0 < 2 * nr ? f->n - j0 : 2 * nr;
    float y[MOST_COLUMNS];
    for (size_t j = 0; j < 2 * nr; j++)
        y[j] = j < n ? oct_sout_start(w->out, j0 + j) : 0.0f;
    w->p->kernel->row(f, nr, n > nr, w->a, w->packed + pair * 2 * oct_nbits_panel_bytes(f, nr), y);
    for (size_t j = 0; j < n; j++)
        w->c[j0 + j] = oct_sout_apply(y[j], w->out, w->out->residual, j0 + j);
}

static void run_pairs(void *arg, size_t begin, size_t end, size_t thread)
{
    for (size_t i = begin; i < end; i++)
        run_pair(arg, i);
}

/* One panel against a few rows. */
static void run_few(const job *w, size_t panel)
{
    const oct_nbits_form *f = &w->p->form;
    const size_t nr = w->p->sgemm->nr, j0 = panel * nr, n = f->n - j0 < nr ? f->n - j0 : nr;
    float y[MOST_FEW * MOST_COLUMNS / 2];
    for (size_t i = 0; i < w->m; i++)
        for (size_t j = 0; j < nr; j++)
            y[i * nr + j] = j < n ? oct_sout_start(w->out, j0 + j) : 0.0f;
    w->p->kernel->few(f, nr, w->m, w->a, w->lda, w->packed + panel * oct_nbits_panel_bytes(f, nr), y);
    for (size_t i = 0; i < w->m; i++) {
        const float *residual = w->out->residual ? w->out->residual + i * w->out->ldr : NULL;
        for (size_t j = 0; j < n; j++)
            w->c[i * w->ldc + j0 + j] = oct_sout_apply(y[i * nr + j], w->out, residual, j0 + j);
    }
}

static void run_panels(void *arg, size_t begin, size_t end, size_t thread)
{
    for (size_t i = begin; i < end; i++)
        run_few(arg, i);
}

static void unpack(const void *arg, size_t panel, size_t k0, size_t kc, float *to)
{
    const job *w = arg;
    const size_t nr = w->p->sgemm->nr;
    w->p->kernel->unpack(&w->p->form, nr, w->packed + panel * oct_nbits_panel_bytes(&w->p->form, nr), k0, kc, to);
}

void oct_nbits_run(const oct_nbits *p, oct_pool *pool, size_t m, const float *a, size_t lda, const void *packed,
                   float *c, size_t ldc, const oct_sout *out, void *scratch)
{
    static const oct_sout plain = { 0 };
    const oct_nbits_form *f = &p->form;
    job w = { .p = p, .packed = packed, .a = a, .m = m, .lda = lda, .c = c, .ldc = ldc, .out = out ? out : &plain };
    oct_pool *threads = oct_pool_threads(pool) > p->threads ? NULL : pool;
    if (p->bytes) {
        oct_nbits_bytes_run(p, threads, m, a, lda, packed, c, ldc, w.out, scratch);
        return;
    }
    if (m && m <= MOST_FEW) {
        const size_t columns = p->sgemm->nr * (m == 1 ? 2 : 1);
        /* Waking the threads costs more than a product this small. */
        const bool small = (double)m * (double)f->n * (double)f->k < 65536;
        oct_pool_for(small ? NULL : threads, (f->n + columns - 1) / columns, 1, m == 1 ? run_pairs : run_panels, &w);
        return;
    }
    const oct_stiles t = {
        .kernel = p->sgemm,
        .rows = { .x = (const uint8_t *)a, .step = lda * sizeof *a, .run = f->k * sizeof *a, .count = m },
        .taps = 1,
        .kc = f->k,
        .n = f->n,
        .groups = 1,
        .unpack = unpack,
        .unpack_arg = &w,
        .c = c,
        .ldc = ldc,
        .out = *w.out,
        .block = oct_rows_block(0, false),
        .scratch = scratch,
    };
    oct_stiles_run(&t, threads);
}
