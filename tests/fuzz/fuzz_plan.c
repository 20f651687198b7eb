/* Fuzz target: any model that loads is planned and run, or refused; raising and passes included. */
#include "onnx/model.h"
#include "passes/opset.h"
#include "runtime/plan.h"

#include <string.h>

enum { MOST_INPUTS = 8 };
static const int64_t most_elements = 1 << 16;

/* Small concrete shapes: what the model says where that is small, else 2. */
static bool small_shapes(const oct_graph *g, oct_input_shape *in)
{
    if (g->n_input > MOST_INPUTS)
        return false;
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        int64_t count;
        if (v->shape.rank < 0 || v->shape.rank > OCT_MAX_RANK || v->dtype == OCT_STRING)
            return false;
        in[i] = (oct_input_shape){ .name = v->name, .rank = v->shape.rank };
        for (int k = 0; k < v->shape.rank; k++)
            in[i].dims[k] = v->shape.d[k].n >= 0 ? v->shape.d[k].n : 2;
        if (!oct_count(in[i].dims, in[i].rank, &count) || count > most_elements)
            return false;
    }
    return true;
}

static void plan_and_run(const oct_graph *g)
{
    static const uint64_t zeros[1 << 16]; /* 8 bytes for each element */
    oct_input_shape in[MOST_INPUTS];
    const void *data[MOST_INPUTS];
    oct_err err = OCT_ERR_INIT;
    oct_plan *p = NULL;
    for (size_t i = 0; i < MOST_INPUTS; i++)
        data[i] = zeros;
    if (!small_shapes(g, in) || oct_plan_create(g, in, g->n_input, NULL, &p, &err) != OCT_OK)
        return;
    (void)oct_plan_run(p, data, &err);
    oct_plan_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (size > (4u << 20) || oct_model_load_mem(data, size, "", &m, &err) != OCT_OK)
        return 0;
    plan_and_run(m->graph);
    if (oct_infer_shapes(m->graph, &err) == OCT_OK)
        (void)oct_raise_opset(m->graph, 13, &err);
    oct_model_free(m);
    return 0;
}
