/* lib/ops/core/block_matrix.h -- a matrix quantized in blocks (oct_quant.block), in the form that kernels take. */
#ifndef OCT_OPS_BLOCK_MATRIX_H
#define OCT_OPS_BLOCK_MATRIX_H

#include "graph/graph.h"
#include "kernels/nbits/nbits.h"

/* The form of the quantized values of a matrix of dims[2]; k runs along dimension q->axis. Kernels may not support it
 * (oct_nbits_prepare). */
oct_nbits_form oct_blocks_form(const oct_quant *q, const int64_t dims[2]);

/* The weights by columns: data of q that have this form are borrowed, the rest is made in the arena. q must have its
 * quantized values. */
oct_status oct_blocks_weights(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_nbits_weights *w,
                              oct_err *err);
/* A matrix whose quantized values, scales and zero points have the order of its elements, as in DequantizeLinear. */
typedef struct oct_block_elements {
    const oct_tensor *qvals; /* of q->dtype, like zero */
    const float *scale;      /* of dims[2], like zero */
    const oct_tensor *zero;  /* NULL in the middle */
    int64_t dims[2];         /* blocks, and columns: in the order of the matrix */
} oct_block_elements;
/* The same for elements. */
oct_status oct_blocks_elements(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_block_elements *e,
                               oct_err *err);

/* The type of quantized values in this form: signed if the zero point is the middle. */
oct_dtype oct_blocks_dtype(const oct_nbits_form *f);
/* Zero points zp[n][blocks] of such quantized values, as in oct_quant. packed: [n][bytes of zero points]; NULL: the
 * middle. */
void oct_blocks_zero_points(const oct_nbits_form *f, const uint8_t *packed, int32_t *zp);

#endif
