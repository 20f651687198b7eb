/* Fuzz target: any model that loads goes through the plug-in of provider/ in the stand-in of ONNX Runtime: it is
 * claimed or left, compiled, and run on zeros. Where nothing is claimed, the plug-in gets it as a whole all the same.
 */
#include "fuzz_small.h"

#include "../../provider/graph_bytes.h"
#include "../provider/standin.h"
#include "onnx/proto.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

/* Whether a run of the model ends soon, which only a run can tell that is bounded. */
static bool ends_soon(const oct_graph *g, const oct_plan_input *in)
{
    const oct_plan_opts opts = { .max_trips = MOST_TRIPS };
    oct_datum *data[MOST_INPUTS] = { NULL };
    oct_err err = OCT_ERR_INIT;
    oct_plan *p = NULL;
    if (oct_plan_create(g, in, &opts, &p, &err) != OCT_OK)
        return false;
    oct_status s = is_affordable(p) ? OCT_OK : OCT_EUNSUPPORTED;
    for (size_t i = 0; i < g->n_input && s == OCT_OK; i++) {
        s = oct_datum_tensor(g->value[g->input[i]].dtype, in[i].rank, in[i].dims, &data[i], &err);
        if (s == OCT_OK)
            memset(oct_datum_data(data[i]), 0, data[i]->t.bytes);
    }
    if (s == OCT_OK)
        s = oct_plan_run_data(p, data, &err);
    for (size_t i = 0; i < g->n_input; i++)
        oct_datum_unref(data[i]);
    oct_plan_destroy(p);
    return s == OCT_OK;
}

/* Zeros for the inputs; false: it has others than arrays. The data are released by free. */
static bool make_inputs(const oct_graph *g, const oct_plan_input *in, octet_array *a)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        size_t size;
        a[i] = (octet_array){ .type = (octet_type)v->dtype, .rank = in[i].rank };
        memcpy(a[i].dims, in[i].dims, sizeof a[i].dims);
        if (v->kind != OCT_VALUE_TENSOR || !array_size(&a[i], &size) || !(a[i].data = calloc(size + 1, 1)))
            return false;
    }
    return true;
}

/* Whether something was claimed. */
static bool drive(const uint8_t *data, size_t size, bool whole)
{
    const standin_options options = { .lanes = 2, .whole = whole };
    oct_plan_input in[MOST_INPUTS];
    octet_array a[MOST_INPUTS] = { { 0 } };
    char error[STANDIN_TEXT];
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    standin_outputs out;
    if (oct_model_load_mem(data, size, "", &m, &err) != OCT_OK)
        return true;
    ort_ep_factory *f = standin_register(error);
    const size_t n = m->graph->n_input;
    const bool runs = small_shapes(m->graph, in) && make_inputs(m->graph, in, a) && ends_soon(m->graph, in);
    standin_session *s = standin_open(f, m, &options, error);
    const bool claimed = s && standin_facts_of(s).n_claimed;
    if (s && runs && standin_run(s, a, n, &out, error))
        standin_outputs_free(&out);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        free((void *)(uintptr_t)a[i].data);
    standin_close(s);
    standin_unregister(f);
    if (standin_live())
        abort();
    return claimed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= (4u << 20) && !drive(data, size, false))
        drive(data, size, true);
    return 0;
}
