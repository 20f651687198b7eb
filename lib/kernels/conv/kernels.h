/* lib/kernels/conv/kernels.h -- prototypes of the depthwise kernels in dw.inc. Internal. */
#ifndef OCT_KERNELS_CONV_KERNELS_H
#define OCT_KERNELS_CONV_KERNELS_H

#include "kernels/conv/rows.h"

#define OCT_SDW(isa, fn) \
    void fn(size_t, size_t, size_t, const float *const *, const float *, float *, size_t, const oct_sout *);
#define OCT_QDW(isa, fn) void fn(size_t, size_t, size_t, const uint8_t *const *, uint8_t, const int16_t *, int32_t *);
#include "kernels/conv/dw.inc"
#undef OCT_SDW
#undef OCT_QDW

/* Channels of a packed depthwise row: a multiple of this. */
enum { OCT_DW_CHANNELS = 16 };

/* Output pixels of a work item of a depthwise convolution. */
size_t oct_dw_block(size_t c);

#endif
