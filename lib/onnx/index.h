/* lib/onnx/index.h -- which record of the message belongs to which value (inside lib/onnx only). */
#ifndef OCT_ONNX_INDEX_H
#define OCT_ONNX_INDEX_H

#include "onnx/tensor.h"

/* A string tensor's record: its data are nowhere else. */
typedef struct oct_string_tensor {
    const oct_tensor *tensor;
    const Onnx__TensorProto *record;
} oct_string_tensor;

/* Value indices by position in GraphProto's lists; -1: the record names no value of the graph. Node i of the
 * graph is record i. */
struct oct_model_index {
    int *init;
    const oct_tensor **init_tensor; /* konst as loaded; NULL: passed through */
    int *sparse, *input, *output, *info;
    oct_string_tensor *strings;
    size_t n_strings, cap_strings;
};

/* Records which values of g the subgraph `sub` of `node` uses. seen: a zeroed int per value, shared by all
 * calls for one graph. budget: what remains of the memory allowed for captures, in ints. */
oct_status oct_find_captures(oct_graph *g, int node, const Onnx__GraphProto *sub, int *seen, size_t *budget,
                             oct_err *err);

#endif
