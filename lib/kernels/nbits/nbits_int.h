/* lib/kernels/nbits/nbits_int.h -- the packed panel, and prototypes of the kernels in nbits.inc. Internal.
 *
 * A panel holds nr columns, block after block along k; a block holds
 *   f32[nr]            scales
 *   u8[nr] or f32[nr]  zero points, where each block has its own (padded to whole words)
 *   u32[words][nr]     quantized values: a word is 32 / bits consecutive values of k of one column, the first in its
 * lowest bits; of forms that have `bytes`, byte i of a word has value i, then i + 4, ... from its lowest bits on, so
 * that a shift and a mask leave four consecutive values */
#ifndef OCT_KERNELS_NBITS_INT_H
#define OCT_KERNELS_NBITS_INT_H

#include "kernels/nbits/nbits.h"

#define OCT_NBITS(isa, name, nr)                                                                              \
    void name##_row(const oct_nbits_form *, size_t, bool, const float *, const uint8_t *, float *);           \
    void name##_few(const oct_nbits_form *, size_t, size_t, const float *, size_t, const uint8_t *, float *); \
    void name##_unpack(const oct_nbits_form *, size_t, const uint8_t *, size_t, size_t, float *);
#include "kernels/nbits/nbits.inc"
#undef OCT_NBITS

#define OCT_NBITS_BYTES(isa, name, mr, nr, least, group) \
    void name(const oct_nbits_form *, size_t, size_t, const oct_nbits_rows *, const uint8_t *, float *);
#include "kernels/nbits/nbits_s8.inc"
#undef OCT_NBITS_BYTES

/* nbits_bytes.c: products of forms that have `bytes`, as oct_nbits_prepare and oct_nbits_run. */
oct_status oct_nbits_bytes_prepare(oct_nbits *p, oct_err *err);
void oct_nbits_bytes_run(const oct_nbits *p, oct_pool *pool, size_t m, const float *a, size_t lda,
                         const uint8_t *packed, float *c, size_t ldc, const oct_sout *out, void *scratch);

/* Bytes from a block to its zero points, to its quantized values, and to the next block. */
static inline size_t oct_nbits_at_zero(size_t nr)
{
    return nr * sizeof(float);
}

static inline size_t oct_nbits_at_qvals(const oct_nbits_form *f, size_t nr)
{
    const size_t zero = f->zero == OCT_NBITS_MIDDLE ? 0
                        : f->zero == OCT_NBITS_REAL ? nr * sizeof(float)
                                                    : (nr + 3) / 4 * 4;
    return oct_nbits_at_zero(nr) + zero;
}

static inline size_t oct_nbits_block_bytes(const oct_nbits_form *f, size_t nr)
{
    return oct_nbits_at_qvals(f, nr) + f->block * (size_t)f->bits / 8 * nr;
}

/* From a panel to the next one. */
static inline size_t oct_nbits_panel_bytes(const oct_nbits_form *f, size_t nr)
{
    return (f->k + f->block - 1) / f->block * oct_nbits_block_bytes(f, nr);
}

#endif
