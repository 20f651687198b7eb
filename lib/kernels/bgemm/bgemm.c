/* lib/kernels/bgemm/bgemm.c -- list of bf16 product kernels. */
#include "kernels/bgemm/bgemm_int.h"
#include "kernels/sgemm/sgemm_int.h"

#define OCT_BGEMM(isa, fn, mr, nr, panel) { #fn, OCT_ISA_##isa, fn, mr, nr, NULL, OCT_SPANEL_##panel, false },
static const oct_sgemm_kernel kernels[] = {
#include "kernels/bgemm/bgemm.inc"
};
#undef OCT_BGEMM

const oct_sgemm_kernel *oct_bgemm_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

oct_choice oct_bgemm_choose(oct_isa have, const oct_extent *e)
{
    oct_choice p = { 0 };
    for (size_t i = 0; i < OCT_COUNT(kernels); i++)
        if ((kernels[i].isa & ~have) == 0)
            oct_choice_offer(&p, &kernels[i], kernels[i].name, e,
                             (oct_cost_tile){ kernels[i].mr, kernels[i].nr, kernels[i].nr < 16 ? 1 : 16,
                                              kernels[i].panel == OCT_SPANEL_PAIRS ? OCT_BGEMM_BLOCK : 1 });
    return p;
}

oct_status oct_bgemm_prepare(oct_sgemm *p, size_t rows, size_t n, size_t k, int threads, oct_err *err)
{
    return oct_sgemm_plan(p, oct_bgemm_choose(oct_isa_active(), &(oct_extent){ rows, n, k }).record, n, k, threads,
                          err);
}
