/* Optionals. One that holds something is that thing; an empty one is a datum of its own kind. */
#include "ops/core/infer.h"

static oct_status optional_infer(const oct_infer *c, oct_err *err)
{
    const oct_value *v = oct_in_value(c, 0);
    if (!v)
        oct_out_kind(c, 0, OCT_VALUE_OPTIONAL, OCT_UNDEFINED);
    else if (v->kind == OCT_VALUE_SEQUENCE)
        oct_out_kind(c, 0, OCT_VALUE_OPTIONAL_SEQUENCE, v->elem);
    else
        oct_out_kind(c, 0, OCT_VALUE_OPTIONAL, v->dtype);
    return OCT_OK;
}

static oct_status optional_exec(oct_exec *x, oct_err *err)
{
    if (x->node->n_in < 1 || !x->in[0])
        return oct_datum_none(&x->out[0], err);
    x->out[0] = oct_datum_ref(x->in[0]);
    return OCT_OK;
}

const oct_op oct_op_optional = {
    OCT_SCHEMA("Optional", "", 15, 0, 1, 1, 1),
    .infer = optional_infer,
    .exec = optional_exec,
};

static oct_status has_infer(const oct_infer *c, oct_err *err)
{
    oct_out_dtype(c, 0, OCT_BOOL);
    return oct_out_shape(c, 0, 0, NULL, err);
}

static oct_status has_exec(oct_exec *x, oct_err *err)
{
    OCT_TRY(oct_datum_tensor(OCT_BOOL, 0, NULL, &x->out[0], err));
    *(uint8_t *)oct_datum_data(x->out[0]) = x->node->n_in > 0 && x->in[0] && x->in[0]->kind != OCT_DATUM_NONE;
    return OCT_OK;
}

const oct_op oct_op_optional_has_element = {
    OCT_SCHEMA("OptionalHasElement", "", 15, 0, 1, 1, 1),
    .infer = has_infer,
    .exec = has_exec,
};

static oct_status get_infer(const oct_infer *c, oct_err *err)
{
    const oct_value *v = oct_in_value(c, 0);
    if (v->kind == OCT_VALUE_OPTIONAL)
        oct_out_dtype(c, 0, v->elem);
    else if (v->kind == OCT_VALUE_OPTIONAL_SEQUENCE)
        oct_out_kind(c, 0, OCT_VALUE_SEQUENCE, v->elem);
    else
        return oct_out_like(c, 0, 0, err);
    return OCT_OK;
}

static oct_status get_exec(oct_exec *x, oct_err *err)
{
    if (x->in[0]->kind == OCT_DATUM_NONE)
        return oct_fail(err, OCT_EMALFORMED, "the optional is empty");
    x->out[0] = oct_datum_ref(x->in[0]);
    return OCT_OK;
}

const oct_op oct_op_optional_get_element = {
    OCT_SCHEMA("OptionalGetElement", "", 15, 1, 1, 1, 1),
    .infer = get_infer,
    .exec = get_exec,
};
