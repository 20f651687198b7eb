/* Fuzz target: bytes that may be a .tflite file become a graph that holds, or an error with a remedy. */
#include "passes/pass.h"
#include "tflite/read/tflite_read.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_buf notes = OCT_BUF_INIT;
    const char *maker;
    oct_graph *g = oct_graph_create();
    if (!g)
        return 0;
    oct_status s = oct_tflite_read(data, size, g, &maker, &notes, &err);
    const bool refused = s != OCT_OK;
    if (!refused)
        s = oct_graph_check(g, &err);
    if (s == OCT_EINTERNAL || (refused && s != OCT_ENOMEM && s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED)) {
        fprintf(stderr, "status %d: %s\n", (int)s, err.text);
        abort();
    }
    oct_buf_free(&notes);
    oct_graph_destroy(g);
    return 0;
}
