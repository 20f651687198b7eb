/* lib/tflite/tfl_order.h -- orders of axes, of tensors in .tflite and values in ONNX. */
#ifndef OCT_TFLITE_TFL_ORDER_H
#define OCT_TFLITE_TFL_ORDER_H

#include "graph/graph.h"

/* Axis i of one is axis d[i] of the other: when a file is written, of a tensor and a value; when it is read, of a value
 * and a tensor. */
typedef struct oct_tfl_order {
    int8_t d[OCT_MAX_RANK];
} oct_tfl_order;

oct_tfl_order oct_tfl_plain(void);
oct_tfl_order oct_tfl_channels_last(int rank);
/* The opposite: of a tensor whose last axis has the channels. */
oct_tfl_order oct_tfl_channels_first(int rank);
bool oct_tfl_same_order(const oct_tfl_order *a, const oct_tfl_order *b, int rank);
/* Where axis `axis` of what d refers to stands. */
int oct_tfl_axis(const oct_tfl_order *o, int rank, int64_t axis);

#endif
