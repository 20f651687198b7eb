/* lib/kernels/qgemm/qgemm.c -- list of integer product kernels, plans. */
#include "kernels/qgemm/qgemm.h"

#include "base/mem.h"
#include "kernels/qgemm/qgemm_int.h"

#define OCT_QGEMM(isa, fn, mr, nr, kr, order, a) \
    { #fn, OCT_ISA_##isa, fn, mr, nr, kr, order, a, NULL, NULL, NULL, NULL, NULL },
#define OCT_QCHAIN(isa, chain, fn, mr, nr, a) \
    { #chain, OCT_ISA_##isa, fn, mr, nr, 4, OCT_QGEMM_CHAINS, a, NULL, NULL, chain, NULL, NULL },
#define OCT_QSORTED(isa, sorted, chain, fn, mr, nr, a) \
    { #sorted, OCT_ISA_##isa, fn, mr, nr, 4, OCT_QGEMM_CHAINS, a, NULL, &sorted, chain, NULL, NULL },
#define OCT_QROW(isa, row) \
    { #row, OCT_ISA_##isa, NULL, 1, OCT_QROW_COLUMNS, 4, OCT_QGEMM_ROW, OCT_U8, &row, NULL, NULL, NULL, NULL },
#define OCT_QBLOCK(isa, block, mr, nr) \
    { #block, OCT_ISA_##isa, NULL, mr, nr, OCT_QBLOCK_STEP, OCT_QGEMM_TILES, OCT_U8, NULL, NULL, NULL, block, NULL },
#define OCT_QFUSED(isa, fn, fused, mr, nr, kr, order, a) \
    { #fn, OCT_ISA_##isa, fn, mr, nr, kr, order, a, NULL, NULL, NULL, NULL, fused },
static const oct_qgemm_kernel kernels[] = {
#include "kernels/qgemm/qgemm.inc"
};
#undef OCT_QGEMM
#undef OCT_QCHAIN
#undef OCT_QSORTED
#undef OCT_QROW
#undef OCT_QBLOCK
#undef OCT_QFUSED

const oct_qgemm_kernel *oct_qgemm_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

/* Kernels compute 16 columns at least, chains half a panel. */
static oct_cost_tile tile_of(const oct_qgemm_kernel *k)
{
    return (oct_cost_tile){ k->mr, k->nr, k->chain ? k->nr / 2 : k->nr < 16 ? k->nr : 16, k->kr };
}

static bool suits(const oct_qgemm_kernel *k, const oct_extent *e, bool is_matrix)
{
    return (!k->row || (is_matrix && e->rows == 1)) && (!k->sorted || (is_matrix && e->rows >= OCT_QCLASS_LEAST));
}

void oct_qgemm_offer(oct_choice *c, const oct_qgemm_kernel *k, oct_isa have, const oct_extent *e, bool is_matrix)
{
    if ((k->isa & ~have) != 0 || !suits(k, e, is_matrix))
        return;
    if (k->row) { /* a tile is the row of A, which is split once; a row of it some columns */
        const size_t rows = (e->n + OCT_QROW_STEP - 1) / OCT_QROW_STEP;
        oct_choice_offer(c, k, k->name, &(oct_extent){ rows, 1, e->depth, e->more },
                         (oct_cost_tile){ .mr = rows, .nr = 1, .unit = 1, .kr = k->kr });
    } else {
        oct_choice_offer(c, k, k->name, e, tile_of(k));
    }
}

oct_choice oct_qgemm_choose(oct_isa have, const oct_extent *e, bool is_matrix)
{
    oct_choice p = { 0 };
    for (size_t i = 0; i < OCT_COUNT(kernels); i++)
        oct_qgemm_offer(&p, &kernels[i], have, e, is_matrix);
    return p;
}

oct_status oct_qgemm_prepare(oct_qgemm *p, size_t rows, size_t n, size_t k, oct_dtype a_type, oct_dtype b_type,
                             int threads, oct_err *err)
{
    const oct_extent e = { rows, n, k };
    *p = (oct_qgemm){ .kernel = oct_qgemm_choose(oct_isa_active(), &e, true).record,
                      .qout = oct_qout_select(oct_isa_active()),
                      .a_type = a_type,
                      .b_type = b_type,
                      .rows = rows,
                      .n = n,
                      .k = k,
                      .threads = threads < 1 ? 1 : threads };
    if ((a_type != OCT_U8 && a_type != OCT_S8) || (b_type != OCT_U8 && b_type != OCT_S8))
        return oct_fail(err, OCT_EUNSUPPORTED, "integer matrix product of %s and %s", oct_dtype_name(a_type),
                        oct_dtype_name(b_type));
    size_t thread, shared, row, all;
    const size_t block = oct_qtiles_block(p->kernel, k, false);
    if (!oct_qpack_size(p->kernel, 1, k, n, 1, &p->packed_size) || !oct_qtiles_shared(n, &shared) ||
        !oct_qtiles_scratch(p->kernel, block, 1, k, false, &thread) ||
        !oct_mul_size(thread, (size_t)p->threads, &all) || !oct_add_size(all, shared, &p->scratch_size) ||
        !oct_qrow_scratch(k, n, &row))
        return oct_fail(err, OCT_ENOMEM, "matrix product of depth %zu with %zu columns is too large", k, n);
    p->scratch_size = p->kernel->row ? row : p->scratch_size;
    return OCT_OK;
}

void oct_qgemm_pack(const oct_qgemm *p, const void *b, ptrdiff_t rs, ptrdiff_t cs, const int32_t *zb, size_t zb_step,
                    void *packed)
{
    const oct_qsource s = { .b = b,
                            .is_signed = p->b_type == OCT_S8,
                            .fast_pack = p->fast_pack,
                            .taps = 1,
                            .kc = p->k,
                            .fold = 1,
                            .ks = rs,
                            .ns = cs,
                            .zb = zb,
                            .zb_step = zb_step };
    oct_qpack(p->kernel, &s, p->n, 0, 1, packed);
}

void oct_qgemm_run(const oct_qgemm *p, oct_pool *pool, size_t m, const void *a, size_t lda, int32_t za,
                   const void *packed, const int32_t *bias, const oct_qout *out, void *c, size_t ldc, void *scratch)
{
    const oct_dtype as = oct_qreads(p->kernel, p->a_type);
    const oct_qtiles t = {
        .kernel = p->kernel,
        .qout = p->qout,
        .rows = { .x = a, .step = lda, .run = p->k, .count = m },
        .taps = 1,
        .kc = p->k,
        .n = p->n,
        .groups = 1,
        .is_signed = as == OCT_S8,
        .flip = oct_qflip(p->a_type, as),
        .za = oct_qzero(za, p->a_type, as),
        .packed = packed,
        .bias = bias,
        .out = out,
        .c = c,
        .ldc = ldc,
        .block = oct_qtiles_block(p->kernel, p->k, false),
        .backwards = p->backwards,
        .scratch = scratch,
    };
    oct_qtiles_run(&t, oct_pool_threads(pool) > p->threads ? NULL : pool);
}
