/* lib/onnx/tensor.h -- TensorProto and oct_tensor (inside lib/onnx only). */
#ifndef OCT_ONNX_TENSOR_H
#define OCT_ONNX_TENSOR_H

#include "onnx/model.h"
#include "onnx/proto.h"

/* The result of decoding a TensorProto. */
typedef enum oct_tensor_kind {
    OCT_TENSOR_DECODED, /* oct_tensor with data */
    OCT_TENSOR_OPAQUE   /* an element type without a name here: passed through */
} oct_tensor_kind;

/* Decodes t. Data are a view where possible: raw_data and external data when aligned, typed fields of the same
 * layout; else copied into the arena (copy: always). m gives external data (NULL: there is none).
 * OCT_EMALFORMED when dims, element type and the bytes given do not agree. Messages start with "tensor 'name'". */
oct_status oct_tensor_decode(oct_model *m, oct_arena *a, const Onnx__TensorProto *t, bool copy, oct_tensor **out,
                             oct_tensor_kind *kind, oct_err *err);

/* Whether the tensor's bytes are in another file. */
bool oct_tensor_is_external(const Onnx__TensorProto *t);
/* The bytes that its type and dimensions need; SIZE_MAX: the type has no name here. */
size_t oct_tensor_bytes(const Onnx__TensorProto *t);
/* Its bytes in another file, mapped (once for each file) and borrowed from the model. want: their number; SIZE_MAX: the
 * length stated in the record, or the rest of the file. Paths that lead out of the model's folder are refused. */
oct_status oct_external_bytes(oct_model *m, const Onnx__TensorProto *t, size_t want, const uint8_t **data, size_t *size,
                              oct_err *err);
/* Maps the files of all tensors, also of those that are not decoded: they belong to the model, and a missing file is
 * found before any work is done. Errors as above. */
oct_status oct_external_find(oct_model *m, oct_err *err);

/* A hint about files of other formats that are often given by mistake; the first hint of an error counts. */
void oct_format_hint(const uint8_t *p, size_t n, oct_err *err);

/* A record with name, dims and a view of t's data; in the arena. */
oct_status oct_tensor_encode(oct_arena *a, const char *name, const oct_tensor *t, Onnx__TensorProto **out,
                             oct_err *err);

#endif
