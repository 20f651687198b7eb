/* passes_dump MODEL OUT [OPSET]: runs all passes over a model, or raises its opset, and saves it. For tests. */
#include "onnx/model.h"
#include "passes/opset.h"

#include <stdio.h>
#include <stdlib.h>

static void note(void *arg, const char *pass, const char *what, const char *node)
{
    printf("%s: %s '%s'\n", pass, what, node);
}

static oct_status change(oct_model *m, int64_t opset, oct_err *err)
{
    oct_pass_log log = { note, NULL };
    OCT_TRY(oct_infer_shapes(m->graph, err));
    if (opset)
        OCT_TRY(oct_raise_opset(m->graph, opset, err));
    else
        OCT_TRY(oct_passes_run(m->graph, NULL, 0, &log, err));
    return oct_graph_check(m->graph, err);
}

int main(int argc, char **argv)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: passes_dump MODEL OUT [OPSET]\n");
        return OCT_EUSAGE;
    }
    oct_status s = oct_model_load(argv[1], &m, &err);
    if (s == OCT_OK)
        s = change(m, argc > 3 ? atoll(argv[3]) : 0, &err);
    if (s == OCT_OK)
        s = oct_model_save(m, argv[2], NULL, &err);
    if (s != OCT_OK)
        fprintf(stderr, "%s\n", err.text);
    oct_model_free(m);
    return (int)s;
}
