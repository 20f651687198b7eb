/* lib/ops/core/block_matrix.h -- a matrix quantized in blocks (oct_quant.block) as kernels take it. */
#ifndef OCT_OPS_BLOCK_MATRIX_H
#define OCT_OPS_BLOCK_MATRIX_H

#include "graph/graph.h"
#include "kernels/nbits/nbits.h"

/* How the codes of a matrix of dims[2] are told; k runs along dimension q->axis. Kernels need not take it (oct_nbits_prepare). */
oct_nbits_form oct_blocks_form(const oct_quant *q, const int64_t dims[2]);

/* The weights by columns: what q has so already is borrowed, the rest is made in the arena. q->codes must be there. */
oct_status oct_blocks_weights(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_nbits_weights *w, oct_err *err);

#endif
