/* Fuzz target: a model's calls of its own functions are put in their place, within the bounds of docs/design.md, or
 * refused. */
#include "onnx/model.h"
#include "onnx/proto.h"
#include "passes/pass.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

enum { MOST_NODES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (oct_model_load_mem(data, size, "fuzz.onnx", &m, &err) != OCT_OK)
        return 0;
    const size_t before = m->graph->n_node;
    if (oct_infer_shapes(m->graph, &err) == OCT_OK && oct_passes_flatten(m->graph, &err) == OCT_OK) {
        if (oct_graph_check(m->graph, &err) != OCT_OK || m->graph->n_node > before + MOST_NODES)
            abort();
    }
    oct_model_free(m);
    return 0;
}
