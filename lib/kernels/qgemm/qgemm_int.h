/* lib/kernels/qgemm/qgemm_int.h -- prototypes of the kernels in qgemm.inc, and the tile walk. Internal. */
#ifndef OCT_KERNELS_QGEMM_INT_H
#define OCT_KERNELS_QGEMM_INT_H

#include "kernels/rows.h"
#include "kernels/items.h"
#include "kernels/qgemm/qblock.h"
#include "kernels/qgemm/qbytes.h"
#include "kernels/qgemm/qclass.h"
#include "kernels/qgemm/qfused.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/qgemm/qrow.h"

#define OCT_QGEMM(isa, fn, mr, nr, kr, order, a) \
    void fn(size_t, size_t, size_t, size_t, const uint8_t *const *, uint8_t, const int8_t *, int32_t *);
#define OCT_QCHAIN(isa, chain, fn, mr, nr, a) \
    void chain(size_t, size_t, const oct_qchain_rows *, const int8_t *, const int32_t *, int32_t *);
#define OCT_QSORTED(isa, sorted, chain, fn, mr, nr, a)
#define OCT_QROW(isa, row)
#define OCT_QBLOCK(isa, block, mr, nr) void block(const oct_qblock *);
#define OCT_QFUSED(isa, fn, fused, mr, nr, kr, order, a) \
    OCT_QGEMM(isa, fn, mr, nr, kr, order, a)             \
    void fused(const oct_qfused *);
#include "kernels/qgemm/qgemm.inc"
#undef OCT_QGEMM
#undef OCT_QCHAIN
#undef OCT_QSORTED
#undef OCT_QROW
#undef OCT_QBLOCK
#undef OCT_QFUSED

/* Packed weights of all groups: the header, s32[2][groups * n] (sums of columns, then minus the zero points),
 * then the panels of each group. */
typedef struct oct_qpacked {
    uint32_t has_zb;                /* some zero point of B is not zero: sums of rows are needed */
    uint32_t has_chains, has_plain; /* some panel is in chains, is not; of kernels that know chains */
    uint32_t has_shuffled;          /* some panel in chains has shuffled units */
    uint64_t panel;                 /* bytes from one panel of a group to the next */
    uint32_t small;                 /* weights are within -64 and 64 (qrow.h) */
    uint32_t bias;                  /* not 0: panels are for rows by class (qclass.h) */
    uint32_t more[8];
} oct_qpacked;

/* What a kernel reads A of that type as. */
static inline oct_dtype oct_qreads(const oct_qgemm_kernel *k, oct_dtype type)
{
    return k->block ? type : k->a;
}
/* To read A as the other type, its bytes are xored with this, and its zero point z is shifted. */
static inline uint8_t oct_qflip(oct_dtype type, oct_dtype as)
{
    return type == as ? 0 : 0x80;
}
static inline int32_t oct_qzero(int32_t z, oct_dtype type, oct_dtype as)
{
    return type == as ? z : as == OCT_U8 ? z + 128 : z - 128;
}

/* Convolutions for kernels of blocks: rows are positions in a copy of the image, of which only some are output
 * pixels. */
typedef struct oct_qflat {
    const size_t *tap;  /* where in the copy each tap begins, from the row's place on */
    size_t line, width; /* positions of an output line, and pixels: its first ones */
} oct_qflat;

typedef struct oct_qtiles {
    const oct_qgemm_kernel *kernel;
    const oct_qout_kernel *qout;
    oct_rows rows; /* of group 0 */
    bool gather;
    const oct_qflat *flat; /* or NULL */
    size_t taps, kc;       /* as the kernel sees them */
    size_t n, groups;
    bool is_signed; /* A, as the kernel sees it */
    uint8_t flip;   /* as the kernel takes it */
    int32_t za;     /* zero point of A as the kernel sees it */
    const void *packed;
    const int32_t *bias;
    const oct_qout *out;
    void *c;
    size_t ldc, block;
    bool backwards;   /* as in oct_qgemm */
    uint8_t *scratch; /* oct_qtiles_shared bytes, then oct_qtiles_scratch a thread */
} oct_qtiles;

/* Rows of a work item, at most. */
size_t oct_qtiles_block(const oct_qgemm_kernel *k, size_t depth, bool gather);
/* Bytes of scratch all threads share (a number a column, and of columns that fill the last panel); false when they
 * overflow. */
bool oct_qtiles_shared(size_t columns, size_t *bytes);
bool oct_qtiles_scratch(const oct_qgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, size_t *bytes);
/* How a product is cut for threads; copies: rows of A are. */
oct_work oct_qtiles_work(const oct_qgemm_kernel *k, size_t rows, size_t n, size_t groups, size_t block, bool copies);
void oct_qtiles_run(const oct_qtiles *t, oct_pool *pool);

/* The same for products of one row (qrow.h): columns of one group, one tap; count of rows is 0 or 1. */
bool oct_qrow_scratch(size_t k, size_t n, size_t *bytes);
void oct_qrow_run(const oct_qtiles *t, oct_pool *pool);

/* Bytes of one panel; taps and kc as the kernel sees them. False when they overflow. */
bool oct_qpack_panel(const oct_qgemm_kernel *k, size_t taps, size_t kc, size_t *bytes);
/* Bytes of the packed weights of all groups. */
bool oct_qpack_size(const oct_qgemm_kernel *k, size_t taps, size_t kc, size_t n, size_t groups, size_t *bytes);
/* Packs group g; element (tap, k, j) = b[tap * ts + k * ks + j * ns]. zb: zero point of column j is zb[j * zb_step]. */
typedef struct oct_qsource {
    const uint8_t *b;
    bool is_signed;
    size_t taps, kc; /* of the weights */
    bool fast_pack;  /* take no time to find chains */
    size_t fold;     /* number of taps that are joined before the depth is padded to kr: 1, or all in gathered rows */
    ptrdiff_t ts, ks, ns;
    const int32_t *zb;
    size_t zb_step;
} oct_qsource;
void oct_qpack(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t n, size_t g, size_t groups, void *packed);

#endif
