/* lib/forms/forms.h -- how files spell quantized values.
 *
 * In a graph that has been read, values carry their quantization (oct_value.quant). A node that reads such a value
 * reads the real numbers that the quantized values represent. Borders stand where real numbers become quantized values
 * without an operator that computes them, and where quantized values are needed as numbers. A border is a node with one
 * input; its parameters are those of the value that carries them: QuantizeLinear            real -> quantized: rounds;
 * quantized -> integers: the quantized values as numbers DequantizeLinear          integers -> quantized: numbers taken
 * as quantized values DynamicQuantizeLinear     real -> quantized, n == 0: rounds by parameters that are computed from
 * the tensor */
#ifndef OCT_FORMS_FORMS_H
#define OCT_FORMS_FORMS_H

#include "graph/graph.h"

typedef struct oct_read_opts {
    bool
        operators_only; /* read only what cannot be run in its present form: QLinear operators; leave everything else */
    const int *seen;    /* values inside dynamically quantized products that are looked at (-1: none); such products are
                           not read */
    size_t n_seen;
    bool keeps_lstm; /* leave DynamicQuantizeLSTM: its weights need not be transposed in order to run */
} oct_read_opts;

/* Reads the quantized values of g and of the graphs nested in it: QuantizeLinear and DequantizeLinear (per tensor, per
 * channel and in blocks), QLinear operators and nodes that move quantized values between them, products whose input is
 * quantized at run time (DynamicQuantizeLinear, MatMulInteger), DynamicQuantizeLSTM and MatMulNBits. 16-bit floats are
 * not changed: their types tell which nodes compute on them. Nodes whose scales are not constant and positive (in
 * blocks: finite) stay as they are, and so does everything that was read before. Types must have been inferred. Shapes
 * help: scales per channel are read only if they are known to fit. *now (may be NULL; in g's arena): for each value
 * that g had, the value that has the same numbers now: mostly the value itself; its rounded numbers, if only its
 * quantizer read it. Nodes that are no longer used are left for oct_graph_prune. */
oct_status oct_forms_read(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err);

/* For a runtime, after reading: QLinear operators whose scales or zero points are computed at run time could not be
 * read. They become float operators between DequantizeLinear and QuantizeLinear, also in subgraphs. Their products are
 * float32 sums, so that a quantized value may differ by one from that of exact sums. */
oct_status oct_forms_split_qlinear(oct_graph *g, oct_err *err);

#endif
