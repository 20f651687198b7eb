/* Fuzz target: any model that loads is planned and run on small inputs of every kind, or refused. */
#include "fuzz_small.h"

#include "onnx/model.h"
#include "onnx/proto.h"
#include "ops/core/elem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

/* A tensor of small numbers, some negative, or of short strings. */
static oct_status fill(oct_dtype type, const oct_plan_input *in, oct_datum **out, oct_err *err)
{
    static const oct_str words[] = { { "", 0 }, { "a", 1 }, { "b c", 3 }, { "1", 1 } };
    OCT_TRY(oct_datum_tensor(type, in->rank, in->dims, out, err));
    oct_datum *x = *out;
    if (type == OCT_STRING) {
        oct_str *s = oct_datum_data(x);
        for (int64_t i = 0; i < x->t.count; i++)
            s[i] = words[i % 4];
        return OCT_OK;
    }
    if (oct_elem_size(type) == 0 || oct_dom_of(type) == OCT_DOM_NONE) {
        memset(oct_datum_data(x), 0, x->t.bytes);
        return OCT_OK;
    }
    for (int64_t i = 0; i < x->t.count; i++) {
        int64_t v = i % 5 - 1;
        oct_elem_store(type, oct_datum_data(x), i, 1, 1, OCT_DOM_I, &v);
    }
    return OCT_OK;
}

/* A sequence of two tensors. */
static oct_status fill_sequence(oct_dtype type, oct_datum **out, oct_err *err)
{
    const oct_plan_input shape = { .rank = 2, .dims = { 2, 3 } };
    oct_datum *x = NULL;
    OCT_TRY(oct_datum_sequence(type, out, err));
    OCT_TRY(fill(type, &shape, &x, err));
    oct_status s = oct_datum_push(*out, x, err);
    if (s == OCT_OK)
        s = oct_datum_push(*out, x, err);
    oct_datum_unref(x);
    return s;
}

static oct_status make_input(const oct_value *v, const oct_plan_input *in, oct_datum **out, oct_err *err)
{
    const oct_dtype elem = v->elem == OCT_UNDEFINED ? OCT_F32 : v->elem;
    switch (v->kind) {
    case OCT_VALUE_SEQUENCE: return fill_sequence(elem, out, err);
    case OCT_VALUE_OPTIONAL_SEQUENCE:
    case OCT_VALUE_OPTIONAL: return oct_datum_none(out, err);
    default: return fill(v->dtype == OCT_UNDEFINED ? OCT_F32 : v->dtype, in, out, err);
    }
}

static void run(oct_plan *p, const oct_graph *g, const oct_plan_input *in)
{
    oct_datum *data[MOST_INPUTS] = { NULL };
    oct_err err = OCT_ERR_INIT;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < g->n_input && s == OCT_OK; i++)
        s = make_input(&g->value[g->input[i]], &in[i], &data[i], &err);
    for (int i = 0; i < 2 && s == OCT_OK; i++) /* the second time with the first's state */
        s = oct_plan_run_data(p, data, &err);
    for (size_t i = 0; i < g->n_input; i++)
        oct_datum_unref(data[i]);
    if (s == OCT_EINTERNAL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const oct_plan_opts opts = { .max_trips = MOST_TRIPS };
    oct_plan_input in[MOST_INPUTS];
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    oct_plan *p = NULL;
    if (size > (4u << 20) || oct_model_load_mem(data, size, "", &m, &err) != OCT_OK)
        return 0;
    if (small_shapes(m->graph, in) && oct_plan_create(m->graph, in, &opts, &p, &err) == OCT_OK) {
        if (is_affordable(p))
            run(p, m->graph, in);
        oct_plan_destroy(p);
    }
    oct_model_free(m);
    return 0;
}
