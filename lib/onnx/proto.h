/* lib/onnx/proto.h -- messages of the schema in an arena (inside lib/onnx and its tests only). */
#ifndef OCT_ONNX_PROTO_H
#define OCT_ONNX_PROTO_H

#include "base/mem.h"
#include "onnx/onnx.pb-c.h"

/* Checks (wire.h) and unpacks data[size]; the message and all that it owns live in the arena, so it is never
 * freed by protobuf-c. raw_data of 8 bytes and more points into data, which must outlive the message. */
oct_status oct_proto_unpack(const uint8_t *data, size_t size, const ProtobufCMessageDescriptor *type, oct_arena *a,
                            void **msg, oct_err *err);

/* Calls fn for every TensorProto below a message (initializers, attributes, subgraphs, functions, sparse
 * values); stops at the first failure. */
typedef oct_status (*oct_tensor_fn)(void *arg, Onnx__TensorProto *t, oct_err *err);
oct_status oct_proto_tensors(ProtobufCMessage *m, oct_tensor_fn fn, void *arg, oct_err *err);

#endif
