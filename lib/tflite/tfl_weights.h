/* lib/tflite/tfl_weights.h -- constant operands of layers: weights, and biases as integers of the product's scale. */
#ifndef OCT_TFLITE_TFL_WEIGHTS_H
#define OCT_TFLITE_TFL_WEIGHTS_H

#include "tflite/tfl_tensors.h"

/* Whether kernels on int8 take these weights: constants of int8, all zero points 0, one scale or one for each index of
 * axis `channel`. */
bool oct_tfl_weights_fit(const oct_tfl_writer *w, int value, int channel);
/* Weights in an order of axes, whose dimensions are taken for `dims`; channel: the axis of the outputs among these. For
 * REAL they are dequantized by an operator, if they are stored quantized. */
oct_status oct_tfl_weights(oct_tfl_writer *w, int value, int rank, const int64_t *dims, const oct_tfl_order *order,
                           int channel, oct_tfl_kind kind, int *tensor, oct_err *err);

/* Stored weights of a layer on reals with a scale for each output: DEQUANTIZE has one scale for all in runtimes for
 * microcontrollers, which take the first of several. So the layer multiplies by the integers, without bias and
 * activation, and MUL, ADD follow. Between `begin`, which may take other tensors for bias and result, and `end` stands
 * the layer's operator; product: what that makes. */
typedef struct oct_tfl_scaled {
    int made, scaled, scales, bias; /* made -1: there is nothing behind it */
    oct_tfl_activation activation;
} oct_tfl_scaled;
bool oct_tfl_scales_behind(const oct_tfl_writer *w, int weights, int channel, oct_tfl_kind kind);
oct_status oct_tfl_scaled_begin(oct_tfl_writer *w, int weights, int channel, oct_tfl_kind kind, int *bias, int *made,
                                oct_tfl_scaled *s, oct_err *err);
oct_status oct_tfl_scaled_end(oct_tfl_writer *w, int product, const oct_tfl_scaled *s, oct_err *err);

/* The bias of n outputs, zeros where there is none (value -1): int32 (int64 beside int16) with the scales of input
 * `x` times those of the weights for OWN, float32 for REAL. */
oct_status oct_tfl_bias(oct_tfl_writer *w, int value, int64_t n, int x, int weights, oct_tfl_kind kind, int *tensor,
                        oct_err *err);

#endif
