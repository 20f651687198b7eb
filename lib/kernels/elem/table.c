/* lib/kernels/elem/table.c -- the tables of row kernels and the choice among them. */
#include "kernels/elem/table.h"

static const oct_elem_table tables[] = {
    {
        "ref",
        OCT_ISA_REF,
#define OCT_K(name, args) oct_##name##__ref,
#include "kernels/elem/elem.inc"
#undef OCT_K
    },
#if defined(__x86_64__) && !defined(OCT_SIMDE)
    {
        "avx2",
        OCT_ISA_AVX2,
#define OCT_K(name, args) oct_##name##__avx2,
#include "kernels/elem/elem.inc"
#undef OCT_K
    },
    {
        "avx512",
        OCT_ISA_AVX512,
#define OCT_K(name, args) oct_##name##__avx512,
#include "kernels/elem/elem.inc"
#undef OCT_K
    },
#endif
};

const oct_elem_table *oct_elem_tables(size_t *n)
{
    *n = OCT_COUNT(tables);
    return tables;
}

const oct_elem_table *oct_elem(void)
{
    const oct_elem_table *best = &tables[0];
    const oct_isa have = oct_isa_active();
    for (size_t i = 1; i < OCT_COUNT(tables); i++)
        if ((tables[i].isa & ~have) == 0)
            best = &tables[i];
    return best;
}
