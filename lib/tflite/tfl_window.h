/* lib/tflite/tfl_window.h -- the sliding windows of convolutions and pools, over one or two axes, as .tflite has them:
 * always over two, with the channels last, and padded as much as "same" pads or not at all. Any other padding becomes a
 * PAD of its own. */
#ifndef OCT_TFLITE_TFL_WINDOW_H
#define OCT_TFLITE_TFL_WINDOW_H

#include "tflite/tfl_tensors.h"

/* Everything by axis: height, width. */
typedef struct oct_tfl_window {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2], after[2];
    int64_t batch, channels; /* of the input */
    bool lifted;             /* there is but one axis: the height was added, and is 1 */
    oct_tfl_padding padding; /* chosen by oct_tfl_pad */
} oct_tfl_window;

/* Reads the window of the node that is being written, an operator of ONNX on value `x` with result w->out. kernel: that
 * of the weights; NULL: the node's attribute. */
oct_status oct_tfl_window_read(const oct_tfl_writer *w, int x, const int64_t *kernel, oct_tfl_window *win,
                               oct_err *err);
/* The input as a tensor of four dimensions, channels last. */
oct_status oct_tfl_window_input(oct_tfl_writer *w, int x, const oct_tfl_window *win, oct_tfl_kind kind, int *tensor,
                                oct_err *err);
/* What pads are to an operator: zeros, as to convolutions; less than any value, as to a maximum; left out of averages,
 * or counted in them. */
typedef enum oct_tfl_pads {
    OCT_TFL_PADS_ZERO,
    OCT_TFL_PADS_LOWEST,
    OCT_TFL_PADS_SKIPPED,
    OCT_TFL_PADS_COUNTED
} oct_tfl_pads;
/* Chooses the padding. Where "same" or none does not say it, *tensor becomes a padded copy; pads that are skipped
 * cannot be said so. */
oct_status oct_tfl_window_pad(oct_tfl_writer *w, oct_tfl_window *win, oct_tfl_pads pads_are, int *tensor, oct_err *err);
/* The result of four dimensions, for an operator to make; *done: what to give to oct_tfl_window_done when that is
 * written. */
oct_status oct_tfl_window_result(oct_tfl_writer *w, const oct_tfl_window *win, oct_tfl_kind kind, const oct_quant *like,
                                 int *tensor, int *done, oct_err *err);
oct_status oct_tfl_window_done(oct_tfl_writer *w, int made, int done, oct_err *err);

#endif
