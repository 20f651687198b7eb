/* Fuzz target: any bytes as a TensorProto of a test case. */
#include "data/readers/readers.h"

#include "base/mem.h"
#include "onnx/proto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__tensor_proto__descriptor;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_array a;
    char *name;
    if (oct_pb_parse(data, size, &a, &name, &err) != OCT_OK)
        return 0;
    if (!name || oct_array_count(&a) < 0 || (a.bytes && !a.data))
        abort();
    oct_array_find_nan(&a);
    oct_free(name);
    oct_array_free(&a);
    return 0;
}
