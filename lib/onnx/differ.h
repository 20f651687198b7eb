/* lib/onnx/differ.h -- describes where two models differ. */
#ifndef OCT_ONNX_DIFFER_H
#define OCT_ONNX_DIFFER_H

#include "base/buf.h"
#include "onnx/model.h"

/* Whether the files that two loaded models came from have different bytes, external data included. Then the first place
 * where they differ is appended to where, in the order of the schema: "graph, initializer 'w_scale': raw_data: element
 * 3 is 0.12, should be 0.13" (what a has, and what b has). Bytes that differ though what they say is equal are told by
 * their place in the file. Check where->failed. */
bool oct_model_differs(const oct_model *a, const oct_model *b, oct_buf *where);

#endif
