/* lib/kernels/dw/dw_int.h -- depthwise kernels: their records, lists and choice (dw.inc). Internal. */
#ifndef OCT_KERNELS_DW_INT_H
#define OCT_KERNELS_DW_INT_H

#include "kernels/cost.h"
#include "kernels/qgemm/qout.h"
#include "kernels/rows.h"
#include "kernels/sgemm/sout.h"

/* Micro-kernel of depthwise convolution, px output pixels of c channels.
 *   x    pointers to the c channels under each tap: x[pixel * taps + tap]
 *   w    packed, f32[taps][c rounded up to 16]
 *   y    f32[px][c], ldy elements between pixels; only c are written. out: never NULL, arrays f32[c] and
 *        residual f32[px][c] with ldr */
typedef void (*oct_sdw_fn)(size_t px, size_t c, size_t taps, const float *const *x, const float *w, float *y,
                           size_t ldy, const oct_sout *out);
/* The same for kernels of 3 taps along the line: px >= 4 pixels of one output line, c a multiple of the record's. */
typedef struct oct_sdw_lines {
    size_t px, c, rows;    /* rows of taps: kh */
    size_t advance;        /* columns from one pixel to the next: 1 or 2 */
    const float *const *x; /* c channels of row ky of column i: x[i * rows + ky], i < (px - 1) * advance + 3; pixel p's
                              column kx is p * advance + kx */
    const float *w;        /* f32[rows][3][c rounded up to 16] */
    float *y;              /* f32[px][c], ldy elements between pixels */
    size_t ldy;
    const oct_sout *out; /* as above */
} oct_sdw_lines;
typedef void (*oct_sdw_lines_fn)(const oct_sdw_lines *l);
/* 8-bit: acc[pixel][i] = sum over taps of (x ^ flip) * w; w packed s16[taps rounded up to 2][c rounded up to 16] in
 * pairs of taps, [taps / 2][c][2]; acc is s32[px][c rounded up to 16], and may be written in full. */
typedef void (*oct_qdw_fn)(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip, const int16_t *w,
                           int32_t *acc);
/* 3x3 taps of c >= 16 channels under output lines of px pixels, whose neighbours may have columns of the image in
 * common. */
typedef struct oct_qdw_lines {
    size_t lines, px, c;
    size_t advance;          /* columns from one pixel to the next: 1, 2, or 3: none in common */
    const uint8_t *const *x; /* c channels of row ky of column i of a line: x[i * 3 + ky], i < (px - 1) * advance + 3;
                                pixel p's column kx is p * advance + kx */
    size_t pitch;            /* pointers from one line to the next */
    uint8_t flip;            /* 0 or, for sums, 0x80 */
    const void *w;           /* packed by oct_qdw_columns_pack */
    int32_t *acc;            /* s32[lines][px][c rounded up to 16]: the sums; or NULL: */
    const int32_t *add;      /* s32[c], */
    const oct_qout *out;     /* oct_qout_is_plain, */
    uint8_t *y;              /* and finished: [lines][px][c], ldy elements between pixels */
    size_t ldy;
} oct_qdw_lines;
typedef void (*oct_qdw_columns_fn)(const oct_qdw_lines *l);

typedef struct oct_sdw_kernel {
    const char *name;
    oct_isa isa;
    oct_sdw_fn fn;          /* of any pixels; or NULL: */
    oct_sdw_lines_fn lines; /* by lines, of kernels of 3 taps along them */
    size_t channels;        /* a register's: what takes fewer takes as long */
    size_t multiple;        /* channels by lines are a multiple of this */
} oct_sdw_kernel;
typedef struct oct_qdw_kernel {
    const char *name;
    oct_isa isa;
    oct_qdw_fn fn;              /* of any pixels; or NULL: */
    oct_qdw_columns_fn columns; /* by columns, of 3x3 taps */
    bool exact;                 /* by columns: adds four products in 32 bits, whatever the weights */
} oct_qdw_kernel;
const oct_sdw_kernel *oct_sdw_kernels(size_t *n);
oct_choice oct_sdw_choose(oct_isa have, const oct_conv_geom *g);
const oct_qdw_kernel *oct_qdw_kernels(size_t *n);
oct_choice oct_qdw_choose(oct_isa have, const oct_conv_geom *g);

#define OCT_SDW(isa, fn) \
    void fn(size_t, size_t, size_t, const float *const *, const float *, float *, size_t, const oct_sout *);
#define OCT_SDW_LINES(isa, fn, channels, multiple) void fn(const oct_sdw_lines *);
#define OCT_QDW(isa, fn) void fn(size_t, size_t, size_t, const uint8_t *const *, uint8_t, const int16_t *, int32_t *);
#define OCT_QDW_COLUMNS(isa, fn, exact) void fn(const oct_qdw_lines *);
#include "kernels/dw/dw.inc"
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
