/* lib/ops/core/quantized.h -- how a node with quantized values (oct_value.quant) is computed. */
#ifndef OCT_OPS_QUANTIZED_H
#define OCT_OPS_QUANTIZED_H

#include "ops/op.h"

typedef enum oct_compute {
    OCT_ON_REALS = 0, /* on reals: quantized inputs are dequantized before the node, outputs are quantized after it */
    OCT_ON_QUANTIZED, /* on integers, if the record's integer() allows it: inputs and outputs with quantization are
                         quantized values */
    OCT_ON_DYNAMIC,   /* a product of input 0, quantized at run time, and 8-bit weights; or a recurrent operator with
                         8-bit weights */
    OCT_ON_BLOCKS     /* a product of reals and weights in blocks */
} oct_compute;

/* Borders between reals and quantized values: nodes with one input and one output, one of which carries the parameters.
 */
typedef enum oct_border {
    OCT_NO_BORDER = 0,
    OCT_BORDER_ROUNDS,  /* QuantizeLinear: a real value is quantized */
    OCT_BORDER_DYNAMIC, /* DynamicQuantizeLinear: a real value is quantized with parameters computed from the tensor */
    OCT_BORDER_NUMBERS, /* QuantizeLinear: the integers of a quantized value become plain numbers */
    OCT_BORDER_QVALS    /* DequantizeLinear: plain integers become a quantized value */
} oct_border;
oct_border oct_border_of(const oct_graph *g, const oct_node *n);

/* The record of the step between the two: QuantizeLinear, or DequantizeLinear. */
const oct_op *oct_op_between(bool to_qvals);

/* How a node is computed. Unknown dimensions do not matter. */
oct_status oct_compute_of(const oct_graph *g, int node, oct_compute *how, oct_err *err);

/* The record of the step that computes a node in this way: its own; for a dynamic product DynamicQuantizeMatMul, which
 * takes reals, or MatMulIntegerToFloat, which takes quantized values with scale and zero point; for weights in blocks
 * MatMulNBits. Input 1 of these is the quantized weights, which carry their parameters; the last input is a constant
 * row that is added. */
const oct_op *oct_op_computing(const oct_graph *g, int node, oct_compute how, bool from_qvals);

/* Whether a value is a constant row of float32, which is added to a tensor of at most `rank` dimensions that ends in
 * `columns` values. */
bool oct_is_row(const oct_graph *g, int value, int64_t columns, int rank);

/* The clamp that is the only reader of a value and may be fused; -1: none. Sets *e if there is one. */
int oct_clamp_behind(const oct_graph *g, int value, oct_epilogue *e);

#endif
