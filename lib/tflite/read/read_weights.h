/* lib/tflite/read/read_weights.h -- the bias of a layer. */
#ifndef OCT_TFLITE_READ_WEIGHTS_H
#define OCT_TFLITE_READ_WEIGHTS_H

#include "tflite/read/tensor_values.h"

/* The bias, operand k, of a layer whose input is operand x and whose weights are operand w; *value -1: it has none.
 * 32-bit integers without a scale have the product of those of input and weights. */
oct_status oct_tfl_take_bias(oct_tfl_reader *r, int k, int x, int w, int *value, oct_err *err);

#endif
