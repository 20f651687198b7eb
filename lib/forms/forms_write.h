/* lib/forms/forms_write.h -- quantized values (oct_value.quant) written as files spell them.
 *
 * In a quantized graph everything that is rounded is an annotated value: activations on a grid, weights and biases with their codes.
 * Where real numbers become such a value, a QuantizeLinear or DynamicQuantizeLinear of one input stands, or the DequantizeLinear of an
 * integer tensor; where an integer operator makes it, nothing does, and whoever reads it reads the reals. Files need more nodes:
 *
 *   activations, weights, biases    QuantizeLinear and DequantizeLinear around real operators (write_qdq.c), or from these operators on
 *                                   integers (write_qlinear.c)
 *   dynamic products                DynamicQuantizeLinear, MatMulInteger and what scales its result (write_dynamic.c)
 *   LSTM with annotated weights     DynamicQuantizeLSTM of com.microsoft (write_lstm.c)
 *   products of weights in blocks   MatMulNBits of com.microsoft, or DequantizeLinear of opset 21 (write_blocks.c)
 *
 * What is made for X is named X_quantized, X_scale, X_zero_point and X_dequantized; values that share a grid share its constants. */
#ifndef OCT_FORMS_WRITE_H
#define OCT_FORMS_WRITE_H

#include "graph/graph.h"

/* Nodes that compute on 16-bit floats. */
typedef struct oct_half_opts {
    const oct_dtype *type; /* by node: OCT_F16, OCT_BF16, or OCT_UNDEFINED: on what it did; nodes from n_types on, too */
    size_t n_types;
    oct_dtype ends;        /* what graph inputs and outputs of float32 become; OCT_UNDEFINED: they stay */
} oct_half_opts;

static inline oct_dtype oct_half_of(const oct_half_opts *o, int node)
{
    return o && (size_t)node < o->n_types ? o->type[node] : OCT_UNDEFINED;
}

typedef struct oct_forms_write_opts {
    bool blocks_qdq; /* weights in blocks behind DequantizeLinear, instead of in MatMulNBits */
    /* QLinearConv, QLinearMatMul, or QGemm, QLinearAdd, QLinearMul, QLinearConcat, QLinearSigmoid, QLinearLeakyRelu, QLinearAveragePool,
     * QLinearGlobalAveragePool, QLinearSoftmax of com.microsoft, whose import is added when one is written, in the place of what has such
     * a form; what moves data takes codes as they are. Everything else, and MatMul with a real output, stays real. Nodes keep their
     * names; the output is X_quantized for the real X, under which the runtime still shows it to taps. The integers are the same. */
    bool operators;
    const oct_half_opts *half; /* nodes that are going to compute on 16-bit floats stay real; NULL: none */
} oct_forms_write_opts;

/* Writes all annotated values of g and of the graphs that it holds; none is left. Scales and codes of weights in blocks are not
 * copied. */
oct_status oct_forms_write(oct_graph *g, const oct_forms_write_opts *o, oct_err *err);

/* Writes their types, and a Cast for each value and type that the other side wants. Runs on a graph without annotated values. Graphs that
 * nodes hold are left alone. */
oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err);
/* Whether input `slot` has the type that the operator computes on: not Resize's scales. */
bool oct_half_follows(const oct_node *n, int slot);

#endif
