/* lib/kernels/conv/dw.c -- lists of depthwise kernels. */
#include "kernels/conv/dw_int.h"

#define OCT_SDW(isa, fn, lines) { #fn, OCT_ISA_##isa, fn, lines },
static const oct_sdw_kernel sdw[] = {
#include "kernels/conv/dw.inc"
};
#undef OCT_SDW
#define OCT_QDW(isa, fn, columns) { #fn, OCT_ISA_##isa, fn, columns },
static const oct_qdw_kernel qdw[] = {
#include "kernels/conv/dw.inc"
};
#undef OCT_QDW

const oct_sdw_kernel *oct_sdw_kernels(size_t *n)
{
    *n = OCT_COUNT(sdw);
    return sdw;
}

const oct_sdw_kernel *oct_sdw_select(oct_isa have)
{
    const oct_sdw_kernel *best = &sdw[0];
    for (size_t i = 1; i < OCT_COUNT(sdw); i++)
        if ((sdw[i].isa & ~have) == 0)
            best = &sdw[i];
    return best;
}

const oct_qdw_kernel *oct_qdw_kernels(size_t *n)
{
    *n = OCT_COUNT(qdw);
    return qdw;
}

const oct_qdw_kernel *oct_qdw_select(oct_isa have)
{
    const oct_qdw_kernel *best = &qdw[0];
    for (size_t i = 1; i < OCT_COUNT(qdw); i++)
        if ((qdw[i].isa & ~have) == 0)
            best = &qdw[i];
    return best;
}

/* About 16k channel values an item, a bounded table of pointers. */
size_t oct_dw_block(size_t c)
{
    const size_t fit = 16384 / (c + 1);
    return fit < 8 ? 8 : fit > 128 ? 128 : fit / 8 * 8;
}
