/* lib/kernels/sgemm/sgemm.c -- list of float product kernels, packing, plans. */
#include "kernels/sgemm/sgemm.h"

#include "base/mem.h"
#include "kernels/elem/table.h"
#include "kernels/sgemm/sgemm_int.h"

#include <string.h>

#define OCT_SGEMM(isa, fn, mr, nr, masks) { #fn, OCT_ISA_##isa, fn, mr, nr, NULL, OCT_SPANEL_F32, masks },
#define OCT_SROW(isa, row, fn, mr, nr) { #row, OCT_ISA_##isa, fn, mr, nr, row, OCT_SPANEL_F32, false },
static const oct_sgemm_kernel kernels[] = {
#include "kernels/sgemm/sgemm.inc"
};
#undef OCT_SGEMM
#undef OCT_SROW

const oct_sgemm_kernel *oct_sgemm_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

oct_choice oct_sgemm_choose(oct_isa have, const oct_extent *e)
{
    oct_choice p = { 0 };
    for (size_t i = 0; i < OCT_COUNT(kernels); i++)
        if ((kernels[i].isa & ~have) == 0 && (!kernels[i].row || e->rows == 1))
            oct_choice_offer(&p, &kernels[i], kernels[i].name, e,
                             (oct_cost_tile){ kernels[i].mr, kernels[i].nr, kernels[i].nr < 16 ? 1 : 16, 1 });
    return p;
}

bool oct_spack_size(const oct_sgemm_kernel *k, size_t taps, size_t kc, size_t n, size_t *floats)
{
    return n <= SIZE_MAX - k->nr && kc <= SIZE_MAX / 64 / k->nr &&
           oct_mul_size(oct_spanel_floats(k, kc), taps, floats) &&
           oct_mul_size(*floats, oct_round_up(n, k->nr) / k->nr, floats) && *floats <= SIZE_MAX / 64;
}

/* kc rows of n columns, n <= nr, behind each other nr apart; the columns beyond are zero. */
static void pack_part(const oct_elem_table *e, const float *b, size_t kc, size_t n, size_t nr, ptrdiff_t ks,
                      ptrdiff_t ns, float *packed)
{
    if (n < nr)
        memset(packed, 0, kc * nr * sizeof *packed);
    if (ks == 1 && ns > 0) {
        e->transpose_tile(b, (size_t)ns, n, kc, packed, nr, sizeof *packed);
        return;
    }
    for (size_t k = 0; k < kc; k++, b += ks, packed += nr)
        if (ns == 1)
            memcpy(packed, b, n * sizeof *packed);
        else
            for (size_t j = 0; j < n; j++)
                packed[j] = b[(ptrdiff_t)j * ns];
}

/* The same rounded to bf16. Pairs: behind the first `at` values of k. */
static void pack_part_bf16(const oct_elem_table *e, const oct_sgemm_kernel *kn, const float *b, size_t kc, size_t n,
                           ptrdiff_t ks, ptrdiff_t ns, size_t at, float *packed)
{
    enum { ROWS = 32, MOST = 32 };
    const size_t nr = kn->nr;
    uint16_t *const pairs = (uint16_t *)(void *)packed;
    float real[ROWS * MOST];
    uint16_t half[ROWS * MOST];
    for (size_t k = 0; k < kc; k += ROWS, b += ROWS * ks) {
        const size_t rows = kc - k < ROWS ? kc - k : ROWS;
        pack_part(e, b, rows, n, nr, ks, ns, real);
        e->narrow(OCT_BF16, real, rows * nr, half);
        if (kn->panel == OCT_SPANEL_BF16)
            e->widen(OCT_BF16, half, rows * nr, packed + k * nr);
        for (size_t i = 0; i < rows && kn->panel == OCT_SPANEL_PAIRS; i++)
            for (size_t j = 0, to = at + k + i; j < nr; j++)
                pairs[(to / 2 * nr + j) * 2 + to % 2] = half[i * nr + j];
    }
}

void oct_spack(const oct_sgemm_kernel *kn, const float *b, size_t taps, size_t kc, size_t n, ptrdiff_t ts, ptrdiff_t ks,
               ptrdiff_t ns, bool joined, float *packed)
{
    const size_t nr = kn->nr, all = joined ? oct_spanel_floats(kn, taps * kc) : taps * oct_spanel_floats(kn, kc);
    const bool pairs = kn->panel == OCT_SPANEL_PAIRS;
    const oct_elem_table *e = oct_elem();
    for (size_t j0 = 0; j0 < n; j0 += nr, packed += all) {
        const size_t columns = n - j0 < nr ? n - j0 : nr;
        if (pairs)
            memset(packed, 0, all * sizeof *packed);
        for (size_t t = 0; t < taps; t++) {
            const float *from = b + (ptrdiff_t)t * ts + (ptrdiff_t)j0 * ns;
            float *to = packed + (pairs && joined ? 0 : t * oct_spanel_floats(kn, kc));
            if (kn->panel == OCT_SPANEL_F32)
                pack_part(e, from, kc, columns, nr, ks, ns, to);
            else
                pack_part_bf16(e, kn, from, kc, columns, ks, ns, joined ? t * kc : 0, to);
        }
    }
}

oct_status oct_sgemm_plan(oct_sgemm *p, const oct_sgemm_kernel *kernel, size_t n, size_t k, int threads, oct_err *err)
{
    *p = (oct_sgemm){ .kernel = kernel, .n = n, .k = k, .threads = threads < 1 ? 1 : threads };
    size_t floats, bytes;
    if (!oct_spack_size(p->kernel, 1, k, n, &floats) ||
        !oct_stiles_scratch(p->kernel, oct_rows_block(0, false), 1, k, false, false, &bytes) ||
        !oct_mul_size(bytes, (size_t)p->threads, &p->scratch_size))
        return oct_fail(err, OCT_ENOMEM, "matrix product of depth %zu with %zu columns is too large", k, n);
    p->packed_size = floats * sizeof(float);
    return OCT_OK;
}

oct_status oct_sgemm_prepare(oct_sgemm *p, size_t rows, size_t n, size_t k, int threads, oct_err *err)
{
    const oct_extent e = { rows, n, k };
    return oct_sgemm_plan(p, oct_sgemm_choose(oct_isa_active(), &e).record, n, k, threads, err);
}

void oct_sgemm_pack(const oct_sgemm *p, const float *b, ptrdiff_t rs, ptrdiff_t cs, void *packed)
{
    oct_spack(p->kernel, b, 1, p->k, p->n, 0, rs, cs, false, packed);
}

void oct_sgemm_run(const oct_sgemm *p, oct_pool *pool, size_t m, const float *a, size_t lda, const void *packed,
                   float *c, size_t ldc, const oct_sout *out, void *scratch)
{
    const oct_stiles t = {
        .kernel = p->kernel,
        .rows = { .x = (const uint8_t *)a, .step = lda * sizeof *a, .run = p->k * sizeof *a, .count = m },
        .taps = 1,
        .kc = p->k,
        .n = p->n,
        .groups = 1,
        .packed = packed,
        .c = c,
        .ldc = ldc,
        .out = out ? *out : (oct_sout){ 0 },
        .block = oct_rows_block(0, false),
        .scratch = scratch,
    };
    oct_stiles_run(&t, oct_pool_threads(pool) > p->threads ? NULL : pool);
}
