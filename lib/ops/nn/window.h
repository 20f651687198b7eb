/* lib/ops/nn/window.h -- the sliding window of convolutions and pools: kernel, strides, dilations, padding, output
 * sizes. */
#ifndef OCT_OPS_WINDOW_H
#define OCT_OPS_WINDOW_H

#include "ops/core/infer.h"

enum { OCT_SPATIAL_MAX = 3 };

typedef enum oct_auto_pad { OCT_PAD_NOTSET, OCT_PAD_SAME_UPPER, OCT_PAD_SAME_LOWER, OCT_PAD_VALID } oct_auto_pad;

typedef struct oct_window {
    int n; /* spatial dimensions: 1 to 3 */
    int64_t kernel[OCT_SPATIAL_MAX], stride[OCT_SPATIAL_MAX], dilation[OCT_SPATIAL_MAX];
    int64_t before[OCT_SPATIAL_MAX], after[OCT_SPATIAL_MAX]; /* pads; filled by oct_window_fit for auto_pad */
    oct_auto_pad auto_pad;
    bool ceil_mode;
} oct_window;

/* Attribute `name` as n numbers from `least` to INT32_MAX, all `absent` without it. OCT_EMALFORMED for others. */
oct_status oct_window_list(const oct_node *node, const char *name, int n, int64_t absent, int64_t least, int64_t *dst,
                           oct_err *err);

/* Reads the attributes of a node for n spatial dimensions. kernel: the weights' (a convolution's, when kernel_shape is
 * absent), or NULL when kernel_shape must be there. OCT_EMALFORMED for lists of the wrong length and values out of
 * range. */
oct_status oct_window_read(const oct_node *node, int n, const int64_t *kernel, oct_window *w, oct_err *err);
/* The same for a convolution: the kernel is what follows the two dimensions of channels in the shape of its weights. */
oct_status oct_window_of_weights(const oct_node *node, oct_shape weights, oct_window *w, oct_err *err);

/* Output size along dimension i for input size `in`, and the pads that auto_pad means (ONNX Conv-11, MaxPool-12 and
 * AveragePool-19; in ceil_mode the last window must start inside the input or its leading padding). OCT_EMALFORMED when
 * the window is larger than the padded input. */
oct_status oct_window_fit(oct_window *w, int i, int64_t in, int64_t *out, oct_err *err);

/* The whole inference of an output [N, channels, spatial...] from an input of rank n + 2. */
oct_status oct_window_infer(const oct_infer *c, oct_window *w, oct_dim channels, int slot, oct_err *err);

#endif
