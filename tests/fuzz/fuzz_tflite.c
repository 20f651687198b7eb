/* Fuzz target: any model that loads is written as .tflite, or refused with a reason and a remedy. What is written is as
 * large as was said. */
#include "onnx/model.h"
#include "onnx/proto.h"
#include "passes/opset.h"
#include "passes/pass.h"
#include "tflite/tflite.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

enum { OPSET = 13 };

static void fault(const char *what, const oct_err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    abort();
}

static void write_model(const oct_tfl_model *m)
{
    oct_err err = OCT_ERR_INIT;
    oct_out out;
    uint64_t bytes;
    oct_status s = oct_tfl_model_size(m, &bytes, &err);
    if (s == OCT_EUNSUPPORTED)
        return;
    if (s != OCT_OK || oct_out_open(&out, "/dev/null", &err) != OCT_OK)
        fault("not written", &err);
    s = oct_tfl_model_write(m, &out, &err);
    if (s != OCT_OK || out.written != bytes)
        fault("another size than was said", &err);
    oct_out_abort(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    oct_tflite t;
    if (oct_model_load_mem(data, size, "fuzz.onnx", &m, &err) != OCT_OK)
        return 0;
    oct_status s = oct_infer_shapes(m->graph, &err);
    if (s == OCT_OK)
        s = oct_raise_opset(m->graph, OPSET, &err);
    if (s == OCT_OK) {
        s = oct_tflite_make(m->graph, "fuzz", &t, &err);
        if (s == OCT_OK)
            write_model(&t.model);
        else if (s == OCT_EINTERNAL || (s == OCT_EUNSUPPORTED && !err.hint[0]))
            fault("without a remedy", &err);
        oct_tflite_free(&t);
    }
    oct_model_free(m);
    return 0;
}
