/* lib/kernels/elem/table.h -- the row kernels of this folder, one table per instruction set.
 *
 * Callers outside the folder use kernels/unary.h, binary.h, reduce.h, ...; the kernel check walks the tables. */
#ifndef OCT_KERNELS_ELEM_TABLE_H
#define OCT_KERNELS_ELEM_TABLE_H

#include "kernels/binary.h"
#include "kernels/bins.h"
#include "kernels/columns.h"
#include "kernels/cpu.h"
#include "kernels/pooling.h"
#include "kernels/qelem.h"
#include "kernels/quantize.h"
#include "kernels/reduce.h"
#include "kernels/unary.h"

typedef struct oct_elem_table {
    const char *name;
    oct_isa isa;
#define OCT_K(name, args) void(*name) args;
#include "kernels/elem/elem.inc"
#undef OCT_K
} oct_elem_table;

#define OCT_K(name, args)         \
    void oct_##name##__ref args;  \
    void oct_##name##__avx2 args; \
    void oct_##name##__avx512 args;
#include "kernels/elem/elem.inc"
#undef OCT_K

/* The fastest table that may be used now (oct_isa_active). */
const oct_elem_table *oct_elem(void);
/* All tables of this build, the reference first; some may need more than this CPU has. */
const oct_elem_table *oct_elem_tables(size_t *n);

#endif
