/* lib/kernels/conv/conv.h -- convolution and transposed convolution, channels last, float and 8-bit.
 *
 * Tensors are N D H W C; a 2-D convolution has d = od = kd = sd = dd = 1, a 1-D one also h = 1. Each output
 * is one chain over (kd, ky, kx, ic) in this order (float: from the bias, see sgemm.h), and padding is read as zeros
 * (8-bit: as the zero point), so that results are the same bits on every instruction set, number of threads and split
 * of the batch. In a transposed convolution the taps that fall between inputs are part of the chain as zeros;
 * kernels/conv/phases.h does without most of them.
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

/* ---- float ---- */
typedef struct oct_sconv {
    oct_conv_geom g;
    const struct oct_sconv_algorithm *algorithm;
    const char *kernel_name;
    /* Set by the algorithm. */
    const oct_sgemm_kernel *kernel;  /* of products */
    const struct oct_sdw_kernel *dw; /* depthwise */
    oct_padded padded;               /* folded: the copy, */
    oct_conv_geom folded;            /* and the convolution over it, with a line's taps as one */
    size_t fold;                     /* taps that the kernel of products sees as one */
    size_t block;                    /* output pixels of a work item */
    int threads;
    size_t shared;                    /* bytes of scratch that all threads share */
    size_t packed_size, scratch_size; /* bytes */
} oct_sconv;

/* Plans for pools of at most `threads` threads. bf16: as bgemm.h computes, the input being of bf16; depthwise ones are
 * float32 all the same. Fails as oct_conv_geom_check, OCT_ENOMEM when sizes overflow. */
oct_status oct_sconv_prepare(oct_sconv *p, const oct_conv_geom *g, bool bf16, int threads, oct_err *err);

/* Names of the algorithm (kernels/conv/algorithms.inc) and of the record of the kernel that it uses, for profiles. */
const char *oct_sconv_algorithm_name(const oct_sconv *p);
const char *oct_sconv_kernel_name(const oct_sconv *p);

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
/* An algorithm, and the name of the record of the kernel that it uses. */
typedef struct oct_qconv_way {
    const struct oct_qconv_algorithm *algorithm;
    const char *kernel_name;
} oct_qconv_way;

typedef struct oct_qconv {
    oct_conv_geom g;
    oct_dtype x_type, w_type; /* each OCT_U8 or OCT_S8 */
    oct_qconv_way way;        /* chosen by cost; once weights are packed, what they are packed for */
    oct_qconv_way otherwise;  /* for weights that `way` declines; algorithm NULL: it takes any */
    const oct_qout_kernel *qout;
    /* Set by the algorithms. */
    const oct_qgemm_kernel *kernel;              /* of products */
    const struct oct_qdw_kernel *dw;             /* depthwise */
    const struct oct_qwinograd_kernel *winograd; /* Winograd */
    oct_padded padded;                           /* depthwise: the copy, */
    oct_conv_geom lanes;                         /* and the convolution as the kernel sees it, */
    size_t joined;                               /* `joined` pixels side by side being the channels of one */
    size_t fold;                                 /* taps that the kernel of products sees as one */
    size_t block;                                /* output pixels of a work item */
    int threads;
    bool fast_pack;                   /* as in oct_qgemm */
    size_t shared;                    /* bytes of scratch that all threads share */
    size_t packed_size, scratch_size; /* bytes */
} oct_qconv;

oct_status oct_qconv_prepare(oct_qconv *p, const oct_conv_geom *g, oct_dtype x_type, oct_dtype w_type, int threads,
                             oct_err *err);

/* w as for oct_sconv_pack, of w_type. zw: zero points of the weights in w_type's range, zw[o * zw_step] for output
 * channel o (0 per tensor, 1 per channel), or NULL for 0. If the algorithm cannot use these weights, the plan changes
 * to another one: so packed weights must be run by the plan that packed them last. */
void oct_qconv_pack(oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);

/* As for float; of the algorithm that weights are packed for. */
const char *oct_qconv_algorithm_name(const oct_qconv *p);
const char *oct_qconv_kernel_name(const oct_qconv *p);

/* x: x_type[n][d][h][w][c] with zero point zx; bias: s32[oc] at s_x * s_w[oc] or NULL; out: never NULL, arrays
 * [oc]; y: element type by out->kind. y must overlap no input. */
void oct_qconv_run(const oct_qconv *p, oct_pool *pool, const void *x, int32_t zx, const void *packed,
                   const int32_t *bias, const oct_qout *out, void *y, void *scratch);

#endif
