/* lib/ops/tensor/op_bits.c -- BitwiseNot and BitCast. (BitwiseAnd, -Or, -Xor and BitShift are in op_binary.c.) */
#include "ops/core/elem.h"
#include "ops/core/infer.h"
#include "ops/core/nd.h"

#include <string.h>

static bool is_integer(oct_dtype t)
{
    return (oct_dom_of(t) == OCT_DOM_I && t != OCT_BOOL) || oct_dom_of(t) == OCT_DOM_U;
}

static oct_status not_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (!is_integer(s->in[0]->dtype))
        return oct_fail(err, OCT_EMALFORMED, "bits of %s, expected an integer", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

static void not_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const oct_step *s = arg;
    oct_dtype t = s->in[0]->dtype;
    oct_chunk x, y;
    const uint64_t *v = oct_elem_load(t, s->in[0]->data, o[1], st[1], n, &x);
    for (int64_t i = 0; i < n; i++)
        y.u[i] = ~v[i];
    oct_elem_store(t, s->out[0]->data, o[0], st[0], n, oct_dom_of(t), &y);
}

static oct_status not_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    oct_nd d;
    oct_nd_init(&d, s->out[0]);
    oct_nd_add(&d, s->in[0]);
    oct_nd_run(&d, r->pool, not_row, (void *)(uintptr_t)s);
    return OCT_OK;
}

const oct_op oct_op_bitwise_not = {
    OCT_SCHEMA("BitwiseNot", "", 18, 1, 1, 1, 1),
    .infer = oct_infer_like,
    .prepare = not_prepare,
    .run = not_run,
    .layout = OCT_RULE_ANY,
};

/* ------------------------------------------------------------------ BitCast */

static oct_status bitcast_infer(const oct_infer *c, oct_err *err)
{
    int64_t to = oct_node_int(oct_in_node(c), "to", 0);
    oct_dtype from = oct_in_dtype(c, 0);
    oct_shape in = oct_in_shape(c, 0);
    if (to <= 0 || to >= OCT_DTYPE_COUNT || to == OCT_STRING)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'to' is %lld", (long long)to);
    if (from != OCT_UNDEFINED && oct_dtype_bits(from) != oct_dtype_bits((oct_dtype)to))
        return oct_fail(err, OCT_EMALFORMED, "%s and %s have different sizes", oct_dtype_name(from),
                        oct_dtype_name((oct_dtype)to));
    oct_out_dtype(c, 0, (oct_dtype)to);
    return oct_out_shape(c, 0, in.rank, in.d, err);
}

static oct_status bitcast_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    size_t bytes;
    if (s->in[0]->count != s->out[0]->count || !oct_dtype_bytes(s->in[0]->dtype, s->in[0]->count, &bytes))
        return oct_fail(err, OCT_EMALFORMED, "the output has another number of elements");
    memcpy(s->out[0]->data, s->in[0]->data, bytes);
    return OCT_OK;
}

const oct_op oct_op_bitcast = {
    OCT_SCHEMA("BitCast", "", 26, 1, 1, 1, 1),
    .infer = bitcast_infer,
    .run = bitcast_run,
    .f16 = -1,
    .bf16 = -1, /* its result is the bits of the type that the model has */
};
