/* lib/quant/blocks.h -- weights of 4 or 8 bits with a scale for each block of values along k, without data.
 *
 * Each block takes the parameters with the least squared error among twenty-five: ranges cut by 0 to 20 %, three zero points for each, and
 * the middle one from either end. For the steps that the weights take the best scale follows in closed form
 * (kernels/quantize.h), so rounding is measured with the scale that will be written. */
#ifndef OCT_QUANT_BLOCKS_H
#define OCT_QUANT_BLOCKS_H

#include "base/pool.h"
#include "kernels/nbits/nbits.h"

/* A matrix of k x n weights: element (i, j) at w[i * ks + j * ns]. */
typedef struct oct_block_matrix {
    const float *w;
    ptrdiff_t ks, ns;
} oct_block_matrix;

/* f->bits: 4 or 8. Chooses quantization parameters and quantized values of all columns: quantized values u8[n][oct_nbits_column_bytes], as
 * oct_nbits_weights has them, zeroed by the caller; scale f32[n][blocks] and zero s32[n][blocks], 0 where f->zero is MIDDLE (symmetric). Quantized
 * values beyond k stand for 0. *sqnr: dB of the rounding, as float weights have it. The same bytes for any pool.
 * OCT_ENUMERIC names the first weight that is not finite. */
oct_status oct_quantize_blocks(const oct_block_matrix *m, const oct_nbits_form *f, oct_pool *pool, uint8_t *qvals, float *scale,
                               int32_t *zero, double *sqnr, oct_err *err);

#endif
