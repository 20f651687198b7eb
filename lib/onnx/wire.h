/* lib/onnx/wire.h -- checks the protobuf wire format before protobuf-c unpacks it.
 *
 * protobuf-c recurses as deep as the file nests and copies every byte field. So the bytes are walked first,
 * iteratively, along the schema. Refused: lengths past the end, nesting deeper than OCT_WIRE_DEPTH, groups, a
 * known field of the wrong wire type, a sub-message given twice (merging them repeatedly costs quadratic
 * memory), strings that hold NUL, strings other than doc_string and metadata that are not UTF-8, and
 * messages that would need more than OCT_WIRE_BASE + OCT_WIRE_RATIO * size bytes unpacked.
 *
 * Every TensorProto.raw_data of OCT_WIRE_TOKEN bytes or more is left out of the bytes to unpack: a token, the
 * number of its extent, stands in its place, and oct_proto_unpack() points the field back into the file. */
#ifndef OCT_ONNX_WIRE_H
#define OCT_ONNX_WIRE_H

#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

enum { OCT_WIRE_DEPTH = 100, OCT_WIRE_TOKEN = 8, OCT_WIRE_RATIO = 40, OCT_WIRE_BASE = 64 << 20 };

typedef struct oct_wire_extent {
    size_t at, len; /* in the checked bytes */
} oct_wire_extent;

typedef struct oct_wire {
    const uint8_t *bytes; /* to unpack: the checked bytes themselves when nothing was left out */
    size_t size;
    oct_wire_extent *extent;
    size_t n_extent, cap_extent;
    uint8_t *own; /* the shortened copy, or NULL */
    size_t cap_own;
} oct_wire;

/* Walks data[size] as a message of the given type and fills w, which borrows data; release with
 * oct_wire_free. OCT_EMALFORMED names the byte, OCT_EUNSUPPORTED a legal form that is not read, OCT_ENOMEM.
 * On failure w holds nothing. Linear time; memory as large as what is not raw_data. */
oct_status oct_wire_check(const uint8_t *data, size_t size, const ProtobufCMessageDescriptor *type, oct_wire *w,
                          oct_err *err);
void oct_wire_free(oct_wire *w);

#endif
