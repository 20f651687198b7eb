/* lib/ops/core/quantized.h -- how a node computes when its values carry quantization (oct_value.quant). */
#ifndef OCT_OPS_QUANTIZED_H
#define OCT_OPS_QUANTIZED_H

#include "ops/op.h"

typedef enum oct_compute {
    OCT_ON_REALS = 0, /* quantized inputs are dequantized before the node, quantized outputs rounded after it */
    OCT_ON_QUANTIZED, /* on integers, as the record's integer() allows: inputs and outputs that carry quantization are
                         quantized values */
    OCT_ON_DYNAMIC,   /* a product of input 0, quantized at run time, and 8-bit weights; or a recurrent operator with
                         8-bit weights */
    OCT_ON_BLOCKS     /* a product of reals and weights in blocks */
} oct_compute;

/* Borders between reals and quantized values: nodes with one input and one output, of which one carries the
 * parameters. */
typedef enum oct_border {
    OCT_NO_BORDER = 0,
    OCT_BORDER_ROUNDS,  /* QuantizeLinear: a real becomes quantized */
    OCT_BORDER_DYNAMIC, /* DynamicQuantizeLinear: so it does, quantized that is found from the tensor */
    OCT_BORDER_NUMBERS, /* QuantizeLinear: quantized values become plain numbers */
    OCT_BORDER_QVALS    /* DequantizeLinear: plain numbers are taken as quantized values */
} oct_border;
oct_border oct_border_of(const oct_graph *g, const oct_node *n);

/* The record of the step between the two: QuantizeLinear, or DequantizeLinear. */
const oct_op *oct_op_between(bool to_qvals);

/* How a node computes. Unknown dimensions do not decide. */
oct_status oct_compute_of(const oct_graph *g, int node, oct_compute *how, oct_err *err);

/* The record of the step that computes a node so: its own, or for a dynamic product DynamicQuantizeMatMul, which takes
 * reals, or MatMulIntegerToFloat, which takes quantized values with their scale and zero point, and for one in blocks
 * MatMulNBits. Input 1 of these is the quantized values of the weights, which carry their scales and zero points; their
 * last input is a constant row that is added. */
const oct_op *oct_op_computing(const oct_graph *g, int node, oct_compute how, bool from_qvals);

/* Whether a value is a constant row of float32, which is added to a tensor of at most `rank` dimensions that ends in
 * `columns` values. */
bool oct_is_row(const oct_graph *g, int value, int64_t columns, int rank);

/* The clamp that alone reads a value and may be computed with it; -1: none. *e is set when there is one. */
int oct_clamp_behind(const oct_graph *g, int value, oct_epilogue *e);

#endif
