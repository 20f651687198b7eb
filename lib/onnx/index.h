/* lib/onnx/index.h -- maps records of the message to values (inside lib/onnx only). */
#ifndef OCT_ONNX_INDEX_H
#define OCT_ONNX_INDEX_H

#include "onnx/tensor.h"

/* What oct_graph.origin of a loaded graph points to: its message, and value indices by position in the message's lists;
 * -1: the record names no value of the graph. Node i of the graph is record i of the message. No list is NULL. */
typedef struct oct_graph_record {
    const Onnx__GraphProto *p;
    int *init;
    const oct_tensor **init_tensor; /* constant as loaded; NULL: passed through */
    int *sparse, *input, *output, *info;
} oct_graph_record;

#endif
