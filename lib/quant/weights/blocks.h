/* lib/quant/weights/blocks.h -- rounds weights to 4 or 8 bits with a scale for each block of values along k, without
 * samples.
 *
 * Each block gets the scale and zero point with the least squared error among 25 candidates: the range is cut by 0 to
 * 20 %, three zero points are tried for each cut, and the middle zero point is tried from both ends. When the quantized
 * values are known, the best scale follows in closed form (kernels/quantize.h). The error is therefore measured with
 * the scale that will be written. */
#ifndef OCT_QUANT_BLOCKS_H
#define OCT_QUANT_BLOCKS_H

#include "base/dtype.h"
#include "base/pool.h"
#include "kernels/nbits/nbits.h"

/* A matrix of k x n weights: element (i, j) at w[i * ks + j * ns]. type: OCT_F32, OCT_F16 or OCT_BF16. */
typedef struct oct_block_matrix {
    const void *w;
    int64_t ks, ns;
    oct_dtype type;
} oct_block_matrix;

/* Quantizes all columns; f->bits is 4 or 8. Results: quantized values u8[n][oct_nbits_column_bytes] in the layout of
 * oct_nbits_weights; scale f32[n][blocks]; zero s32[n][blocks], all 0 if f->zero is MIDDLE (symmetric). All of them are
 * written, whatever they held. Padding beyond k stands for 0. *sqnr: dB of the rounding. The results do not depend on
 * the pool. OCT_ENUMERIC names the first weight that is not finite. */
oct_status oct_quantize_blocks(const oct_block_matrix *m, const oct_nbits_form *f, oct_pool *pool, uint8_t *qvals,
                               float *scale, int32_t *zero, double *sqnr, oct_err *err);

#endif
