/* lib/ops/core/quantized.h -- how nodes compute whose values carry quantization (oct_value.quant). */
#ifndef OCT_OPS_QUANTIZED_H
#define OCT_OPS_QUANTIZED_H

#include "kernels/nbits/nbits.h"
#include "ops/op.h"

typedef enum oct_compute {
    OCT_ON_REALS = 0, /* what is quantized is dequantized before, and rounded behind */
    OCT_ON_CODES,     /* as the record's integer() does it; inputs and outputs that carry quantization are codes */
    OCT_ON_DYNAMIC,   /* a product of input 0, whose scale is found when run, and weights of 8 bits; or an LSTM with weights of 8 bits */
    OCT_ON_BLOCKS     /* a product of reals and weights in blocks */
} oct_compute;

/* Whether a node is a border between reals and codes: of QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear, with one input and one
 * output, of which one carries the parameters. */
bool oct_is_border(const oct_graph *g, const oct_node *n);

/* How a node computes. Dimensions that are not known yet do not count. */
oct_status oct_compute_of(const oct_graph *g, int node, oct_compute *how, oct_err *err);

/* The clamp that alone reads a value and may be computed with it; -1: none. *e is set when there is one. */
int oct_clamp_behind(const oct_graph *g, int value, oct_epilogue *e);

/* Whether a MatMul, or a Gemm without factors, is one of reals with a constant matrix in blocks that kernels take. transposed: k runs
 * along dimension 1 of the matrix. */
bool oct_in_blocks(const oct_graph *g, int node, oct_nbits_form *form, bool *transposed);

#endif
