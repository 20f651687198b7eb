/* lib/kernels/conv/dw_int.h -- prototypes of the depthwise kernels in dw.inc. Internal. */
#ifndef OCT_KERNELS_DW_INT_H
#define OCT_KERNELS_DW_INT_H

#include "kernels/conv/conv.h"
#include "kernels/rows.h"

#define OCT_SDW(isa, fn) \
    void fn(size_t, size_t, size_t, const float *const *, const float *, float *, size_t, const oct_sout *);
#define OCT_SDW_LINES(isa, fn, channels, multiple) void fn(const oct_sdw_lines *);
#define OCT_QDW(isa, fn) void fn(size_t, size_t, size_t, const uint8_t *const *, uint8_t, const int16_t *, int32_t *);
#define OCT_QDW_COLUMNS(isa, fn, exact) void fn(const oct_qdw_lines *);
#include "kernels/conv/dw.inc"
#undef OCT_SDW
#undef OCT_SDW_LINES
#undef OCT_QDW
#undef OCT_QDW_COLUMNS

/* Channels of a packed depthwise row: a multiple of this. */
enum { OCT_DW_CHANNELS = 16 };

/* Depthwise weights as given; zw NULL for zero points of 0. */
typedef struct oct_dw_weights {
    const void *w; /* s8 or u8 [channels][taps] */
    bool is_signed;
    size_t channels, taps;
    const int32_t *zw;
    size_t zw_step;
} oct_dw_weights;

/* Without its zero point: -255..255. c: beyond the channels of the weights they are repeated. */
static inline int oct_dw_weight(const oct_dw_weights *w, size_t c, size_t tap)
{
    c %= w->channels;
    const size_t at = c * w->taps + tap;
    const int v = w->is_signed ? ((const int8_t *)w->w)[at] : ((const uint8_t *)w->w)[at];
    return v - (w->zw ? w->zw[c * w->zw_step] : 0);
}

enum { OCT_SDW_LINE = 1024 }; /* pixels of a line that goes through a kernel by lines as a whole, at most */

/* Output pixels of a work item of a depthwise convolution. */
size_t oct_dw_block(size_t c);

#endif
