/* lib/kernels/qgemm/qout.h -- the last step of integer products: from int32 accumulators to the output.
 *
 * Requantization is done in float32 as ONNX Runtime does it on x86:
 *   v = (float)acc * mult[n];  v = max(v, lo);  v = min(v, hi);  q = rint_half_even(v) + zp;  q = lut[q]
 * where acc holds the int32 bias, and lo, hi are counted from the zero point. */
#ifndef OCT_KERNELS_QOUT_H
#define OCT_KERNELS_QOUT_H

#include "kernels/cpu.h"

typedef enum oct_qout_kind {
    OCT_QOUT_S32, /* the accumulator, int32 (4-byte elements)      */
    OCT_QOUT_F32, /* (float)acc * mult[n] + bias[n], then clamped  */
    OCT_QOUT_U8,  /* requantized                                   */
    OCT_QOUT_S8
} oct_qout_kind;

typedef struct oct_qout {
    oct_qout_kind kind;
    const float *mult;  /* f32[n], finite; unused for S32. U8, S8: s_a * s_b[n] / s_c; F32: s_a * s_b[n] */
    float lo, hi;       /* U8, S8: in steps from the zero point (oct_qout_range); F32 with clamp: real units */
    bool clamp;         /* F32: apply lo and hi */
    int32_t zp;         /* U8, S8: zero point of the output */
    const uint8_t *lut; /* U8, S8: table of 256 output bytes indexed by the byte of q (an s8 value by its
                           two's complement), or NULL */
    const float *bias;  /* F32: f32[n] or NULL */
} oct_qout;

/* Sets kind, zp, lo and hi of an 8-bit output: the whole range, no fused activation. */
void oct_qout_range(oct_qout *o, oct_qout_kind kind, int32_t zp);
/* Narrows lo and hi to the quantized values of the real interval [lo, hi] with this scale: a fused Relu is
 * (0, INFINITY). Ends are rounded as a quantizer would round them: rint_half_even(lo / scale). */
void oct_qout_narrow(oct_qout *o, float scale, float lo, float hi);

/* Whether the output is 8 bits without a table and all n multipliers are below 1, so that the fast path applies. */
bool oct_qout_is_plain(const oct_qout *o, size_t n);

/* Bytes of an output element: 4, 4, 1, 1. */
size_t oct_qout_size(oct_qout_kind kind);

/* Finishes m rows of n accumulators.
 *   acc    s32[m][lda]
 *   add    s32[n], added to each row first (wrapping), or NULL
 *   rowadd s32[m] or NULL: rowadd[m] * colmul[n] is added too (wrapping)
 *   o      its mult and bias start at this tile's first column
 *   c      first output element, ldc elements between rows; only n columns are written */
typedef void (*oct_qout_fn)(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add,
                            const int32_t *rowadd, const int32_t *colmul, const oct_qout *o, void *c, size_t ldc);

typedef struct oct_qout_kernel {
    const char *name;
    oct_isa isa;
    oct_qout_fn fn;
} oct_qout_kernel;

const oct_qout_kernel *oct_qout_kernels(size_t *n); /* slowest first */
const oct_qout_kernel *oct_qout_select(oct_isa have);

/* The definition. */
void oct_qout__ref(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                   const int32_t *colmul, const oct_qout *o, void *c, size_t ldc);
/* The same for columns j to n - 1 only, the rest that other kernels leave. */
void oct_qout_rest(size_t j, size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add,
                   const int32_t *rowadd, const int32_t *colmul, const oct_qout *o, void *c, size_t ldc);

#endif
