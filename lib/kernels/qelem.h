/* lib/kernels/qelem.h -- element-wise operators on 8-bit affine integers (u8 or s8: `is_signed`).
 *
 * Formulas are those of ONNX Runtime's x86 CPU provider; all operands of one call have the same type. */
#ifndef OCT_KERNELS_QELEM_H
#define OCT_KERNELS_QELEM_H

#include "kernels/binary.h"
#include "kernels/unary.h"

/* real = scale * (q - zp). */
typedef struct oct_qparam {
    float scale;
    int32_t zp;
} oct_qparam;

typedef enum oct_qbinary_op {
    OCT_QBINARY_ADD =
        0, /* QLinearAdd: ra = sa/sy, rb = sb/sy, k = zy - fma(ra, za, rb zb); rint(fma(a, ra, fma(b, rb, k))) */
    OCT_QBINARY_MUL /* QLinearMul: rint((a - za)(b - zb) * (sa sb / sy) + zy) */
} oct_qbinary_op;

typedef struct oct_qbinary {
    oct_qbinary_op op;
    bool is_signed;
    oct_qparam a, b, y;
    int32_t lo, hi; /* clamp of the quantized output, for a fused Relu or Clip: [0,255] or [-128,127] for none */
} oct_qbinary;

/* y = f(a, b) broadcast; y must not overlap an operand unless it is the same memory with the same strides. */
void oct_qbinary_8_nd(oct_pool *pool, const oct_qbinary *f, const oct_broadcast *s, const void *a, const void *b,
                      void *y);

/* y[i] = table[x[i] as u8]; y may be x. A table is indexed by the byte, whatever its sign. */
void oct_lut_8(oct_pool *pool, const uint8_t table[256], const void *x, void *y, size_t n);

/* table[q] = quantize(f(dequantize(q))): any unary function on integers. f NULL: requantization only. clamp to [lo, hi]
 * quantized values of the output. in_signed and out_signed may differ. */
void oct_lut_build(const oct_unary *f, bool in_signed, oct_qparam in, bool out_signed, oct_qparam out, int32_t lo,
                   int32_t hi, uint8_t table[256]);

/* QLinearSoftmax over rows [rows][n]: e = exp(in.scale * (q - max)), q = rint(e * floor(1 / out.scale) / sum) + zp.
 * One layout: the softmax axis last. */
void oct_qsoftmax_8(oct_pool *pool, bool is_signed, const void *x, size_t rows, size_t n, oct_qparam in, oct_qparam out,
                    void *y);

#endif
