/* lib/forms/forms_write.h -- quantized values written as files spell them. */
#ifndef OCT_FORMS_WRITE_H
#define OCT_FORMS_WRITE_H

#include "graph/graph.h"

/* From QuantizeLinear/DequantizeLinear to operator form, in any graph: DequantizeLinear -> operator -> QuantizeLinear
 * becomes QLinearConv, QLinearMatMul, or QGemm, QLinearAdd, QLinearMul, QLinearConcat, QLinearSigmoid, QLinearLeakyRelu,
 * QLinearAveragePool, QLinearGlobalAveragePool, QLinearSoftmax of com.microsoft, whose import is added when one is written; what
 * moves data takes the codes as they are. Everything else, and MatMul with a real output, stays as it was. Nodes keep their
 * names; the output is the one that QuantizeLinear had: X_quantized for the real X, under which the runtime still shows it
 * to taps. *made (may be NULL): operators on integers. Both forms give the same integers. */
oct_status oct_qoperator_rewrite(oct_graph *g, size_t *made, oct_err *err);

/* Nodes that compute on 16-bit floats. */
typedef struct oct_half_opts {
    const oct_dtype *type; /* by node: OCT_F16, OCT_BF16, or OCT_UNDEFINED: on what it did; nodes from n_types on, too */
    size_t n_types;
    oct_dtype ends;        /* what graph inputs and outputs of float32 become; OCT_UNDEFINED: they stay */
} oct_half_opts;

/* Writes their types, and a Cast for each value and type that the other side wants. Graphs that nodes hold are left alone. */
oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err);
/* Whether input `slot` has the type that the operator computes on: not Resize's scales. */
bool oct_half_follows(const oct_node *n, int slot);

#endif
