/* Fuzz target: any model that loads goes through shape inference, all passes and the newest opset, twice: what they
 * leave keeps the graph's invariants. */
#include "onnx/model.h"
#include "onnx/proto.h"
#include "passes/opset.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

enum { NEWEST_OPSET = 26 };

/* A pass may refuse a model that contradicts itself; what it did until then is as sound as before. */
static void check(const oct_graph *g)
{
    oct_err err = OCT_ERR_INIT;
    if (oct_graph_check(g, &err) == OCT_OK)
        return;
    fprintf(stderr, "%s\n", err.text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (oct_model_load_mem(data, size, "fuzz.onnx", &m, &err) != OCT_OK)
        return 0;
    oct_status s = oct_infer_shapes(m->graph, &err);
    for (int i = 0; i < 2 && s == OCT_OK; i++) {
        s = oct_passes_run(m->graph, NULL, 0, NULL, &err);
        if (s == OCT_OK) {
            check(m->graph);
            s = oct_raise_opset(m->graph, NEWEST_OPSET, &err);
        }
        if (s == OCT_OK)
            check(m->graph);
    }
    if (s == OCT_EINTERNAL) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    oct_model_free(m);
    return 0;
}
