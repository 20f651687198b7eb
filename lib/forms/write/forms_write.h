/* lib/forms/write/forms_write.h -- quantized values (oct_value.quant) written as files spell them.
 *
 * In a quantized graph everything that is rounded is an annotated value: activations with their scale and zero point,
 * weights and biases with their quantized values, too. forms.h says which borders stand where reals become such a
 * value, and back. Files need more nodes:
 *
 *   activations, weights, biases    QuantizeLinear and DequantizeLinear around real operators (write_qdq.c), or
 * operators on integers (write_qlinear.c) dynamic products                DynamicQuantizeLinear, MatMulInteger and what
 * scales its result (write_dynamic.c) LSTM with annotated weights     DynamicQuantizeLSTM of com.microsoft
 * (write_lstm.c) GRU and RNN with annotated weights: dynamic products, those of the state in the body of a Scan
 * (write_recurrent.c) products of weights in blocks   MatMulNBits of com.microsoft, or DequantizeLinear of opset 21
 * (write_blocks.c)
 *
 * What is made for X is named X_quantized, X_scale, X_zero_point and X_dequantized; values that share their parameters
 * share the constants of these. */
#ifndef OCT_FORMS_WRITE_H
#define OCT_FORMS_WRITE_H

#include "graph/graph.h"

/* Nodes that compute in 16-bit floats. */
typedef struct oct_half_opts {
    const oct_dtype *type; /* by node: OCT_F16 or OCT_BF16; for OCT_UNDEFINED, and for nodes from n_types on, the type
                              does not change */
    size_t n_types;
    oct_dtype ends;   /* the type for float32 inputs and outputs of the graph; OCT_UNDEFINED: they do not change */
    bool bf16_stored; /* for OCT_BF16: nodes compute in float32, and their large constants are stored in 16 bits with a
                         Cast after them */
} oct_half_opts;

enum { OCT_HALF_TABLE = 1024 }; /* the number of elements from which on a constant is stored in 16 bits */

/* The type of a node; o may be NULL. */
static inline oct_dtype oct_half_of(const oct_half_opts *o, int node)
{
    return o && (size_t)node < o->n_types ? o->type[node] : OCT_UNDEFINED;
}

typedef struct oct_forms_write_opts {
    bool blocks_qdq; /* write weights in blocks with DequantizeLinear instead of MatMulNBits */
    /* Operators on integers are written where a node has such a form, by the table of qlinear.h: QLinearConv and
     * QLinearMatMul, and those of com.microsoft, which is then imported. Nodes that move data take quantized values as
     * they are. All others stay real, and so does MatMul with a real output. This holds between QuantizeLinear and
     * DequantizeLinear of the file, too. Nodes keep their names; the output is X_quantized for the real X, under which
     * the runtime still shows it to taps. Both ways compute the same integers. */
    bool operators;
    const oct_half_opts
        *half; /* nodes that will compute in 16-bit floats, and so get no integer form; NULL: there are none */
} oct_forms_write_opts;

/* Writes all annotated values of g and of its subgraphs; none remains. o->half is for g alone: subgraphs with such
 * nodes must be written before. Scales and quantized values of weights in blocks are not copied. */
oct_status oct_forms_write(oct_graph *g, const oct_forms_write_opts *o, oct_err *err);

/* In a written graph: gives each reader of a quantized activation a DequantizeLinear of its own and, if requested, a
 * QuantizeLinear before it. Subgraphs are not changed. */
oct_status oct_dedicate_pairs(oct_graph *g, bool quantizers, oct_err *err);

/* Whether ONNX Runtime rounds the float32 weights of a node to 8 bits, with one scale for all, when it loads the graph,
 * because the node is a Conv, ConvTranspose, Gemm or MatMul between a DequantizeLinear with one scale and a
 * QuantizeLinear. g: as in a file, with shapes inferred. */
bool oct_rounds_at_load(const oct_graph *g, int node);
/* Whether a constant is read by a DequantizeLinear in blocks. ONNX Runtime makes MatMulNBits of it and the product
 * behind it, and fails if the constant is not in the same graph. */
bool oct_is_in_blocks(const oct_graph *g, int v);
/* Whether ONNX Runtime makes a MatMulNBits of the node, a MatMul with constant weights in blocks behind a
 * DequantizeLinear, which rounds its activations by the session's option; and what is to be said then. */
bool oct_rounds_inputs_at_load(const oct_graph *g, int node);
#define OCT_ROUNDED_INPUTS                                                                         \
    "ONNX Runtime rounds the activations of weights in blocks to 8 bits in this form, unless its " \
    "session has session.qdq_matmulnbits_accuracy_level 1"
/* In a written graph: gives each such layer a DequantizeLinear of its own with a scale for each channel, all the same,
 * so that the runtime does not round. From opset 13 on, and where the input has a known dimension of more than 1 after
 * the first. Subgraphs are not changed. */
oct_status oct_keep_real_layers(oct_graph *g, oct_err *err);
/* In a written graph and its subgraphs: what a subgraph captures behind a DequantizeLinear and nodes that only move its
 * result gets a pair of quantizers of its own, without which ONNX Runtime ends the process when it loads the file.
 * Values do not change. */
oct_status oct_keep_moved_captures(oct_graph *g, oct_err *err);

/* Makes node id, which picks rows of a table by its input 1 (oct_op.picks), pick quantized rows. q->qvals: 8 bits,
 * [rows][columns], or if not by_rows, [columns][rows] (then the rank of input 1 must be known). q->n: the number of
 * rows, or 1; all zero points are equal. qvals are not copied. */
oct_status oct_write_table(oct_graph *g, int id, const oct_quant *q, bool by_rows, oct_err *err);
/* The same by one node, GatherBlockQuantized. q: u8 around 128, [rows][columns], with a scale for each row. */
oct_status oct_write_row_table(oct_graph *g, int id, const oct_quant *q, oct_err *err);
/* The same from a matrix in blocks along the columns of the table. Its quantized values have the layout of MatMulNBits,
 * and blocks are complete. */
oct_status oct_write_block_table(oct_graph *g, int id, const oct_quant *q, oct_err *err);
/* Replaces input `slot` of a node, a constant, by its quantized values, converted to float and multiplied by their
 * scales. scales[]: the dimensions of the scales, as many as those of the constant. Runtimes compute this once. */
oct_status oct_write_stored(oct_graph *g, int id, int slot, const oct_quant *q, const int64_t *scales, oct_err *err);
/* The same for quantized values in blocks, in the order of their elements: a DequantizeLinear of opset 21. */
oct_status oct_write_stored_blocks(oct_graph *g, int id, int slot, const oct_quant *q, oct_err *err);

/* Writes the types of such nodes, and adds a Cast for each value and type that other nodes need. The graph must have no
 * annotated values. Subgraphs are not changed. */
oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err);
/* Whether input `slot` has the type on which the operator computes. The scales of Resize, for example, do not; those of
 * operators of com.microsoft follow that may be of float16. */
bool oct_half_follows(const oct_node *n, int slot);

/* Gives each convolution and pool of g, without its subgraphs, the attributes kernel_shape, strides, pads, dilations
 * and group that it lacks, with the values that ONNX says for these; pads only where no other attribute computes them.
 * Meaning and results stay. OCT_ENOMEM. */
oct_status oct_write_defaults(oct_graph *g, oct_err *err);

/* Float32 constants of g and its subgraphs with 128 elements or more become Casts of the same numbers in a 16-bit type,
 * that of the original model, so that unchanged constants take no more bytes than before. Numbers that passes have
 * computed are rounded to that type, if it can represent them. Runtimes compute the Cast once. */
oct_status oct_source_write(oct_graph *g, oct_dtype type, oct_err *err);

/* In a written graph: the nodes whose results were of float16 before the graph was read as float32 compute in float16
 * again, where their operators take it and it represents their constants; with bf16, the same for bfloat16. stays: by
 * node, those that do not. Shapes must have been inferred. Casts that this makes void are removed. Subgraphs are not
 * changed. */
oct_status oct_own_type_write(oct_graph *g, bool bf16, const bool *stays, oct_err *err);
/* Before it, in g and its subgraphs: what If, Loop and Scan take and give has that type, on both sides, with Casts. */
oct_status oct_own_ends_write(oct_graph *g, bool bf16, oct_err *err);

/* The reason why a GRU or RNN with quantized matrices cannot be written in this form, or NULL. */
const char *oct_no_body(const oct_graph *g, int node);

/* Rewrites a product of float32 data and a constant [matrices][k][n] as one for each matrix, with a Concat after them
 * and, if `splits`, a Split before them. The data have 1 or as many matrices in their third dimension from the end. */
oct_status oct_unroll_product(oct_graph *g, int node, bool splits, oct_err *err);

/* Whether a node is a product W X of a constant float32 matrix and float32 data of known rank. */
bool oct_may_transpose_product(const oct_graph *g, int node);
/* Rewrites such a node as X^T W^T, with a Transpose before and after. turned: by value that existed before the first
 * such call, its transpose if one was made; else 0. Products of the same value share it. Nodes that are no longer used
 * must be pruned. */
oct_status oct_transpose_product(oct_graph *g, int node, int *turned, oct_err *err);

#define OCT_POINTWISE_BECOMES "MatMul"
/* Whether a node is a Conv that multiplies the channels of each position by one constant float32 matrix, with data of
 * known rank. */
bool oct_is_pointwise(const oct_graph *g, int node);
/* Rewrites such a node as a MatMul, between Transposes that make the channels the last dimension and undo it; where the
 * graph has these already, they are passed by. last: by value that existed before the first such call, the value with
 * its channels last; else 0. Nodes that are no longer used must be pruned. */
oct_status oct_pointwise_product(oct_graph *g, int node, int *last, oct_err *err);

#endif
