/* Fuzz target: any bytes as the file of a value of a test case, of each kind: a tensor, a sequence, an optional. */
#include "fuzz_reader.h"

#include "onnx/model.h"
#include "onnx/proto.h"

extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__optional_proto__descriptor; /* has the others inside */

/* What the header says of a value that was read. */
static bool is_whole(const oct_stored_value *v, oct_value_kind kind)
{
    bool whole = v->name && (v->n <= 1 || v->sequence) && (v->n == 1 || kind != OCT_VALUE_TENSOR) &&
                 v->sequence >= (kind == OCT_VALUE_SEQUENCE);
    for (size_t i = 0; whole && i < v->n; i++) {
        const oct_tensor *t = v->t[i];
        int64_t count;
        size_t bytes;
        whole = t && oct_count(t->dims, t->rank, &count) && count == t->count && (count == 0 || t->data) &&
                (t->dtype == OCT_STRING || (oct_dtype_bytes(t->dtype, count, &bytes) && bytes == t->bytes));
        for (size_t k = 0; whole && t->dtype != OCT_STRING && k < t->bytes; k++) /* all of it is there to be read */
            (void)((const volatile uint8_t *)t->data)[k];
    }
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const oct_value_kind kinds[] = { OCT_VALUE_TENSOR, OCT_VALUE_SEQUENCE, OCT_VALUE_OPTIONAL,
                                            OCT_VALUE_OPTIONAL_SEQUENCE };
    const char *path = fuzz_file(data, size);
    for (size_t i = 0; *path && i < OCT_COUNT(kinds); i++) {
        oct_arena *a = oct_arena_create();
        oct_err err = OCT_ERR_INIT;
        oct_stored_value v;
        if (!a)
            return 0;
        const oct_status s = oct_value_load_pb(path, kinds[i], a, &v, &err);
        if (s == OCT_OK ? !is_whole(&v, kinds[i]) : s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED && s != OCT_ENOMEM)
            abort();
        oct_arena_destroy(a);
    }
    return 0;
}
