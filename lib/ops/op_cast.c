/* lib/ops/op_cast.c -- Cast and CastLike between all types with whole bytes, except 8-bit floats and strings. */
#include "ops/args.h"
#include "ops/elem.h"
#include "ops/nd.h"

static oct_status cast_infer(const oct_infer *c, oct_err *err)
{
    int64_t to = oct_node_int(oct_in_node(c), "to", 0);
    if (to <= 0 || to >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'to' is %lld", (long long)to);
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_out_dtype(c, 0, (oct_dtype)to);
    return oct_known_copy(c, 0, err);
}

static oct_status like_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 1));
    OCT_TRY(oct_out_shape(c, 0, in.rank, in.d, err));
    return oct_known_copy(c, 0, err);
}

typedef struct walk {
    const oct_operand *x, *y;
} walk;

static void row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    oct_chunk c;
    const void *v = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &c);
    oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, oct_dom_of(w->x->dtype), v);
}

static oct_status cast_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE || oct_dom_of(s->out[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "from %s to %s", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->out[0]->dtype));
    return OCT_OK;
}

static oct_status cast_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    walk w = { s->in[0], s->out[0] };
    oct_nd d;
    oct_nd_init(&d, s->out[0]);
    oct_nd_add(&d, s->in[0]);
    oct_nd_run(&d, r->pool, row, &w);
    return OCT_OK;
}

const oct_op oct_op_cast = {
    .type = "Cast", .domain = "", .since = 6, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
    .infer = cast_infer, .prepare = cast_prepare, .run = cast_run, .layout = OCT_RULE_ANY,
};

const oct_op oct_op_cast_like = {
    .type = "CastLike", .domain = "", .since = 15, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
    .infer = like_infer, .prepare = cast_prepare, .run = cast_run, .layout = OCT_RULE_ANY,
};
