/* Fuzz target: any bytes as an ONNX model. What loads must satisfy the graph's invariants and save. */
#include "onnx/model.h"
#include "onnx/proto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (oct_model_load_mem(data, size, "fuzz.onnx", &m, &err) != OCT_OK)
        return 0;
    if (oct_graph_check(m->graph, &err) != OCT_OK)
        abort();
    m->graph->changed = true;
    for (size_t i = 0; i < m->graph->n_node; i++)
        m->graph->node[i].changed = true;
    if (oct_model_save(m, "/dev/null", NULL, &err) == OCT_EINTERNAL)
        abort();
    oct_model_free(m);
    return 0;
}
