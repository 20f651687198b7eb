/* lib/kernels/conv/dw_int.h -- prototypes of the depthwise kernels in dw.inc. Internal. */
#ifndef OCT_KERNELS_DW_INT_H
#define OCT_KERNELS_DW_INT_H

#include "kernels/conv/conv.h"
#include "kernels/rows.h"

#define OCT_SDW(isa, fn, lines) \
    void fn(size_t, size_t, size_t, const float *const *, const float *, float *, size_t, const oct_sout *);
#define OCT_QDW(isa, fn, columns) void fn(size_t, size_t, size_t, const uint8_t *const *, uint8_t, const int16_t *, int32_t *);
#include "kernels/conv/dw.inc"
#undef OCT_SDW
#undef OCT_QDW
void oct_sdw_lines_f32__avx2(const oct_sdw_lines *);
void oct_qdw_columns__avx2(const oct_qdw_lines *);
void oct_qdw_columns__avxvnni(const oct_qdw_lines *);

/* Channels of a packed depthwise row: a multiple of this. */
enum { OCT_DW_CHANNELS = 16 };

/* Depthwise weights as given; zw NULL for zero points of 0. */
typedef struct oct_dw_weights {
    const void *w; /* s8 or u8 [c][taps] */
    bool is_signed;
    size_t taps;
    const int32_t *zw;
    size_t zw_step;
} oct_dw_weights;

/* Without its zero point: -255..255. */
static inline int oct_dw_weight(const oct_dw_weights *w, size_t c, size_t tap)
{
    const size_t at = c * w->taps + tap;
    const int v = w->is_signed ? ((const int8_t *)w->w)[at] : ((const uint8_t *)w->w)[at];
    return v - (w->zw ? w->zw[c * w->zw_step] : 0);
}

/* Output pixels of a work item of a depthwise convolution. */
size_t oct_dw_block(size_t c);

#endif
