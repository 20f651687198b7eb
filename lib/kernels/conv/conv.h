/* lib/kernels/conv/conv.h -- convolution and transposed convolution, channels last, float and 8-bit.
 *
 * Tensors are N D H W C; a 2-D convolution has d = od = kd = sd = dd = 1, a 1-D one also h = 1. Each output
 * is one chain over (kd, ky, kx, ic) in this order (float: from the bias, see sgemm.h), and padding is read as zeros
 * (8-bit: as the zero point), so that results are the same bits on every instruction set, number of threads and split
 * of the batch. In a transposed convolution the taps that fall between inputs are part of the chain as zeros.
 *
 * Use: oct_conv_geom, prepare, pack the weights once, run often. Plans are plain data. Kernels allocate
 * nothing: packed weights and scratch (both 64-byte aligned) are the caller's, sizes are in the plan. */
#ifndef OCT_KERNELS_CONV_H
#define OCT_KERNELS_CONV_H

#include "kernels/conv/padded.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/sgemm/sgemm.h"

/* Everything 1 but the paddings, ldx and ldy, which are 0. */
void oct_conv_geom_init(oct_conv_geom *g);
/* OCT_EMALFORMED when a dimension is below 1 (n may be 0), groups divide not c and oc, or sizes overflow. The output
 * size is taken as given: pixels that reach outside the input read padding. */
oct_status oct_conv_geom_check(const oct_conv_geom *g, oct_err *err);

/* How a plan computes; chosen from the shape and the kernel in use. */
typedef enum oct_conv_path {
    OCT_CONV_DENSE,    /* 1x1, stride 1: a plain product over pixels              */
    OCT_CONV_INDIRECT, /* pointers to the input pixel of every tap                */
    OCT_CONV_GATHER,   /* few channels: blocks of rows copied together (k dense) */
    OCT_CONV_FOLDED,   /* float, few channels: a copy of the image with its padding, where the taps of a line are one */
    OCT_CONV_FLAT,     /* 8-bit: a copy of the image with its padding (qflat.h)   */
    OCT_CONV_DEPTHWISE /* one input and one output channel a group                */
} oct_conv_path;
/* From the shape alone. */
oct_conv_path oct_conv_choose(const oct_conv_geom *g);
const char *oct_conv_path_name(oct_conv_path p); /* "dense", ...; for profiles */

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
const oct_sdw_kernel *oct_sdw_select(oct_isa have, const oct_conv_geom *g);
const oct_qdw_kernel *oct_qdw_kernels(size_t *n);
const oct_qdw_kernel *oct_qdw_select(oct_isa have, const oct_conv_geom *g);

/* ---- float ---- */
typedef struct oct_sconv {
    oct_conv_geom g;
    oct_padded padded;
    oct_conv_geom folded; /* OCT_CONV_FOLDED: of the padded copy, a line's taps as one */
    oct_conv_path path;
    const oct_sgemm_kernel *kernel;
    const oct_sdw_kernel *dw;
    size_t block; /* output pixels of a work item */
    int threads;
    size_t packed_size, scratch_size; /* bytes */
} oct_sconv;

/* Plans for pools of at most `threads` threads. bf16: as bgemm.h computes, the input being of bf16; depthwise ones are
 * float32 all the same. Fails as oct_conv_geom_check, OCT_ENOMEM when sizes overflow. */
oct_status oct_sconv_prepare(oct_sconv *p, const oct_conv_geom *g, bool bf16, int threads, oct_err *err);

/* w: f32[oc][c / groups][kd][kh][kw], transposed: f32[c][oc / groups][kd][kh][kw] (as ONNX stores them). */
void oct_sconv_pack(const oct_sconv *p, const float *w, void *packed);

/* Whether the residual of a run may be y itself: each of its elements is read right before the same one of y is
 * written. */
bool oct_sconv_in_place(const oct_sconv *p);

/* x: f32[n][d][h][w][c], y: f32[n][od][oh][ow][oc]; out as for oct_sgemm_run with one row a pixel (bias f32[oc];
 * residual shaped as y with its own ldr), or NULL. y must overlap no other input. */
void oct_sconv_run(const oct_sconv *p, oct_pool *pool, const float *x, const void *packed, float *y,
                   const oct_sout *out, void *scratch);

/* ---- 8-bit ---- */
typedef struct oct_qconv {
    oct_conv_geom g;
    oct_conv_path path;
    oct_dtype x_type, w_type; /* each OCT_U8 or OCT_S8 */
    const oct_qgemm_kernel *kernel;
    const oct_qdw_kernel *dw;
    const oct_qout_kernel *qout;
    const struct oct_qwinograd_kernel *winograd; /* tried when packing, where the shape suits it; or NULL */
    oct_padded padded;
    oct_conv_geom lanes; /* OCT_CONV_DEPTHWISE: as the kernel sees it, */
    size_t joined;       /* `joined` pixels side by side being the channels of one */
    size_t block;
    int threads;
    bool fast_pack;                   /* as in oct_qgemm */
    size_t packed_size, scratch_size; /* bytes */
} oct_qconv;

oct_status oct_qconv_prepare(oct_qconv *p, const oct_conv_geom *g, oct_dtype x_type, oct_dtype w_type, int threads,
                             oct_err *err);

/* w as for oct_sconv_pack, of w_type. zw: zero points of the weights in w_type's range, zw[o * zw_step] for output
 * channel o (0 per tensor, 1 per channel), or NULL for 0. */
void oct_qconv_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);

/* The name of the path that packed weights take: oct_conv_path_name(p->path), or "winograd". */
const char *oct_qconv_path_name(const oct_qconv *p, const void *packed);

/* x: x_type[n][d][h][w][c] with zero point zx; bias: s32[oc] at s_x * s_w[oc] or NULL; out: never NULL, arrays
 * [oc]; y: element type by out->kind. y must overlap no input. */
void oct_qconv_run(const oct_qconv *p, oct_pool *pool, const void *x, int32_t zx, const void *packed,
                   const int32_t *bias, const oct_qout *out, void *y, void *scratch);

#endif
