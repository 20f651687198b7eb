/* lib/forms/forms.h -- how files spell quantized values.
 *
 * In a graph that has been read a value carries its quantization (oct_value.quant), and whoever reads the value reads the reals that the
 * quantized values stand for. Where a real becomes quantized values without a node that makes them so, or quantized values are needed as numbers,
 * stands a border, a node of one input whose parameters are those of the value that carries them:
 *   QuantizeLinear            real -> quantized: rounds;  quantized -> integers: the quantized values as numbers
 *   DequantizeLinear          integers -> quantized: numbers taken as quantized values
 *   DynamicQuantizeLinear     real -> quantized, n == 0: rounds by parameters that are found from the tensor */
#ifndef OCT_FORMS_FORMS_H
#define OCT_FORMS_FORMS_H

#include "graph/graph.h"

typedef struct oct_read_opts {
    bool operators_only; /* read only what cannot be run in its present form: QLinear operators; leave everything else */
    const int *seen;     /* values inside dynamically quantized products that are looked at (-1: none); such products are not read */
    size_t n_seen;
} oct_read_opts;

/* Reads what g and the graphs nested in it spell: QuantizeLinear and DequantizeLinear, per tensor, per channel and in blocks, QLinear operators
 * and what moves quantized values between them, products whose input is quantized when run (DynamicQuantizeLinear, MatMulInteger),
 * DynamicQuantizeLSTM and MatMulNBits. Types of 16 bits are read as they stand: they tell which nodes compute on them. Spellings with scales that are
 * no positive constants stay as they are. What was read already stays. Types must have been inferred; shapes help: scales
 * per channel are read where they are seen to fit.
 * *now (may be NULL; in g's arena): for each value of g that was there, the value that holds the same numbers now: mostly itself; rounded, where
 * only its quantizer read it. Nodes that nothing reads any more are left for oct_graph_prune. */
oct_status oct_forms_read(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err);

/* For a runtime, after reading: QLinear operators whose scales or zero points are computed at run time could not be read. They become float operators
 * between DequantizeLinear and QuantizeLinear, also in subgraphs. Their products are float32 sums, so that a quantized value may differ by one from that of
 * exact sums. */
oct_status oct_forms_take_apart(oct_graph *g, oct_err *err);

#endif
