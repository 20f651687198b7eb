/* lib/ops/core/quantized.h -- how a node computes when its values carry quantization (oct_value.quant). */
#ifndef OCT_OPS_QUANTIZED_H
#define OCT_OPS_QUANTIZED_H

#include "kernels/nbits/nbits.h"
#include "ops/op.h"

typedef enum oct_compute {
    OCT_ON_REALS = 0, /* quantized inputs are dequantized before the node, quantized outputs rounded after it */
    OCT_ON_CODES,     /* on integers, as the record's integer() allows: inputs and outputs that carry quantization are codes */
    OCT_ON_DYNAMIC,   /* a product of input 0, quantized at run time, and 8-bit weights; or an LSTM with 8-bit weights */
    OCT_ON_BLOCKS     /* a product of reals and weights in blocks */
} oct_compute;

/* Whether a node is a border between reals and codes: of QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear, with one input and one
 * output, of which one carries the parameters. */
bool oct_is_border(const oct_graph *g, const oct_node *n);

/* How a node computes. Unknown dimensions do not decide. */
oct_status oct_compute_of(const oct_graph *g, int node, oct_compute *how, oct_err *err);

/* The clamp that is the only reader of a value and may be fused into its producer; -1: none. *e is set when there is one. */
int oct_clamp_behind(const oct_graph *g, int value, oct_epilogue *e);

/* Whether a MatMul, or a Gemm without factors, multiplies reals by a constant matrix in blocks of a form that kernels support. transposed:
 * k runs along dimension 1 of the matrix. */
bool oct_in_blocks(const oct_graph *g, int node, oct_nbits_form *form, bool *transposed);

#endif
