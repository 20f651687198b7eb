/* lib/tflite/read/tflite_read.h -- a .tflite file as a graph of ONNX's operators, quantized values between
 * QuantizeLinear and DequantizeLinear.
 *
 * Inputs that operators on pictures read get the channels first, and so do outputs that these make; inputs and outputs
 * of quantized integers are the reals that these mean. The notes say so, and name each Transpose that was added. */
#ifndef OCT_TFLITE_TFLITE_READ_H
#define OCT_TFLITE_TFLITE_READ_H

#include "graph/graph.h"

/* Whether bytes are those of a .tflite file. */
bool oct_tflite_is(const void *data, size_t size);

/* Fills an empty graph, whose constants borrow from data. maker: what the file says made it, borrowed. notes get lines
 * of text. OCT_EMALFORMED: a damaged file, or shapes that operators do not have. OCT_EUNSUPPORTED names the operator
 * that cannot be read, and a remedy. */
oct_status oct_tflite_read(const void *data, size_t size, oct_graph *g, const char **maker, oct_buf *notes,
                           oct_err *err);

#endif
