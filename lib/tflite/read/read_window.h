/* lib/tflite/read/read_window.h -- sliding windows over height and width, of which "same" pads become numbers. */
#ifndef OCT_TFLITE_READ_WINDOW_H
#define OCT_TFLITE_READ_WINDOW_H

#include "tflite/read/tensor_values.h"

/* Everything by axis: height, width. */
typedef struct oct_tfl_view {
    int64_t kernel[2], stride[2], dilation[2], before[2], after[2];
} oct_tfl_view;

/* Computes the pads for operand k, [batch, height, width, channels]. Fails where sizes or strides make no sense, or
 * "same" needs a size that is open. */
oct_status oct_tfl_view_pad(const oct_tfl_reader *r, int k, oct_tfl_padding padding, oct_tfl_view *v, oct_err *err);
/* Sets kernel_shape, strides, pads, and dilations where a node has them. */
oct_status oct_tfl_view_set(oct_tfl_reader *r, int node, const oct_tfl_view *v, bool dilations, oct_err *err);

#endif
