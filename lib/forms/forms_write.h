/* lib/forms/forms_write.h -- quantized values (oct_value.quant) written as files spell them.
 *
 * In a quantized graph everything that is rounded is an annotated value: activations with their scale and zero point, weights and biases
 * with their quantized values, too. forms.h says which borders stand where reals become such a value, and back. Files need more nodes:
 *
 *   activations, weights, biases    QuantizeLinear and DequantizeLinear around real operators (write_qdq.c), or operators on integers
 *                                   (write_qlinear.c)
 *   dynamic products                DynamicQuantizeLinear, MatMulInteger and what scales its result (write_dynamic.c)
 *   LSTM with annotated weights     DynamicQuantizeLSTM of com.microsoft (write_lstm.c)
 *   GRU and RNN with annotated weights: dynamic products, those of the state in the body of a Scan (write_recurrent.c)
 *   products of weights in blocks   MatMulNBits of com.microsoft, or DequantizeLinear of opset 21 (write_blocks.c)
 *
 * What is made for X is named X_quantized, X_scale, X_zero_point and X_dequantized; values that share their parameters share
 * the constants of these. */
#ifndef OCT_FORMS_WRITE_H
#define OCT_FORMS_WRITE_H

#include "graph/graph.h"

/* Nodes that compute on 16-bit floats. */
typedef struct oct_half_opts {
    const oct_dtype *type; /* by node: OCT_F16 or OCT_BF16; OCT_UNDEFINED, and nodes from n_types on: the node computes on what it did */
    size_t n_types;
    oct_dtype ends;        /* what graph inputs and outputs of float32 become; OCT_UNDEFINED: they stay */
    bool bf16_stored;      /* of OCT_BF16: nodes compute on float32, and their large constants stand in 16 bits with a Cast behind */
} oct_half_opts;

enum { OCT_HALF_TABLE = 1024 }; /* elements from which a constant is worth storing in 16 bits */

/* The type that a node is given; o may be NULL. */
static inline oct_dtype oct_half_of(const oct_half_opts *o, int node)
{
    return o && (size_t)node < o->n_types ? o->type[node] : OCT_UNDEFINED;
}

typedef struct oct_forms_write_opts {
    bool blocks_qdq; /* weights in blocks behind DequantizeLinear, instead of in MatMulNBits */
    /* Operators on integers are written where a node has such a form, by the table of qlinear.h: QLinearConv and QLinearMatMul, and those
     * of com.microsoft, which is then imported. Nodes that move data take quantized values as they are. All others stay real, and so does MatMul
     * with a real output. This holds between QuantizeLinear and DequantizeLinear of the file, too. Nodes keep their names; the output is
     * X_quantized for the real X, under which the runtime still shows it to taps. Both ways compute the same integers. */
    bool operators;
    const oct_half_opts *half; /* nodes that will compute on 16-bit floats, which get no form on integers; NULL: none */
} oct_forms_write_opts;

/* Writes all annotated values of g and of the graphs that it holds; none is left. o->half is of g alone: nested graphs that have such nodes
 * are to be written before. Scales and quantized values of weights in blocks are not copied. */
oct_status oct_forms_write(oct_graph *g, const oct_forms_write_opts *o, oct_err *err);

/* In a written graph: a DequantizeLinear for each reader of a quantized activation and, where asked, a QuantizeLinear before each of them. Graphs that nodes
 * hold are left alone. */
oct_status oct_dedicate_pairs(oct_graph *g, bool quantizers, oct_err *err);

/* Has node id, which picks rows of a table by its input 1 (oct_op.picks), pick quantized rows: q->qvals is [rows][columns], or the other way
 * round without by_rows (then the rank of input 1 must be known), of 8 bits; q->n: rows or 1; zero points are all equal. qvals are not copied. */
oct_status oct_write_table(oct_graph *g, int id, const oct_quant *q, bool by_rows, oct_err *err);
/* The same from a matrix in blocks along the columns of the table, whose quantized values lie as MatMulNBits has them, in whole blocks. */
oct_status oct_write_block_table(oct_graph *g, int id, const oct_quant *q, oct_err *err);
/* Input `slot` of a node, a constant, becomes its quantized values as reals times their scales, whose dimensions, as many, are scales[]. Runtimes compute it once. */
oct_status oct_write_stored(oct_graph *g, int id, int slot, const oct_quant *q, const int64_t *scales, oct_err *err);

/* Writes the types of such nodes, and a Cast for each value and type that other nodes want. The graph must be without annotated values.
 * Graphs that nodes hold are left alone. */
oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err);
/* Whether input `slot` has the type that the operator computes on, as Resize's scales have not. */
bool oct_half_follows(const oct_node *n, int slot);

/* Constants of g and of its nested graphs, of float32 and 128 elements or more, become Casts of the same numbers in a 16-bit type, that of the
 * model that they come from: so what it keeps as it was takes no more room than it did. Numbers that passes have made since are rounded to it, where the
 * type holds them. Runtimes compute the Cast once. */
oct_status oct_source_write(oct_graph *g, oct_dtype type, oct_err *err);

/* Why a GRU or RNN whose matrices are quantized could not be written so, or NULL. */
const char *oct_no_body(const oct_graph *g, int node);

/* Whether a node is a product W X of a constant float32 matrix and float32 data of known rank. */
bool oct_may_turn(const oct_graph *g, int node);
/* Makes such a node X^T W^T, a Transpose before it and one behind. turned: by value that is there before the first such call, its transposed form, where
 * one was made; else 0. Products of one value share it. What is unused then is left to be pruned. */
oct_status oct_turn_product(oct_graph *g, int node, int *turned, oct_err *err);

#endif
