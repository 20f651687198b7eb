/* lib/ops/core/block_matrix.h -- a matrix quantized in blocks (oct_quant.block) as kernels take it. */
#ifndef OCT_OPS_BLOCK_MATRIX_H
#define OCT_OPS_BLOCK_MATRIX_H

#include "graph/graph.h"
#include "kernels/nbits/nbits.h"

/* How the quantized values of a matrix of dims[2] are told; k runs along dimension q->axis. Kernels need not take it
 * (oct_nbits_prepare). */
oct_nbits_form oct_blocks_form(const oct_quant *q, const int64_t dims[2]);

/* The weights by columns: what q has so already is borrowed, the rest is made in the arena. q->quantized values must be
 * there. */
oct_status oct_blocks_weights(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_nbits_weights *w,
                              oct_err *err);
/* A matrix whose quantized values, scales and zero points stand as its elements do, as DequantizeLinear takes them. */
typedef struct oct_block_elements {
    const oct_tensor *qvals; /* of q->dtype, like zero */
    const float *scale;      /* of dims[2], like zero */
    const oct_tensor *zero;  /* NULL in the middle */
    int64_t dims[2];         /* blocks, and columns: in the order of the matrix */
} oct_block_elements;
/* The same for elements. */
oct_status oct_blocks_elements(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_block_elements *e,
                               oct_err *err);

/* The type of quantized values that are told so: signed where the middle stands for 0. */
oct_dtype oct_blocks_dtype(const oct_nbits_form *f);
/* Zero points zp[n][blocks] of such quantized values as an oct_quant has them. packed: [n][bytes of zero points], or
 * NULL in the middle. */
void oct_blocks_zero_points(const oct_nbits_form *f, const uint8_t *packed, int32_t *zp);

#endif
