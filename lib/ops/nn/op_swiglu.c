/* lib/ops/nn/op_swiglu.c -- SwiGLU: a * sigmoid(alpha * a) * b. */
#include "kernels/binary.h"
#include "kernels/math.h"
#include "kernels/unary.h"
#include "ops/core/infer.h"

#include <string.h>

static oct_status swiglu_infer(const oct_infer *c, oct_err *err)
{
    oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 1);
    bool same = a.rank < 0 || b.rank < 0 || a.rank == b.rank;
    for (int i = 0; same && i < a.rank && i < b.rank; i++)
        same = a.d[i].n < 0 || b.d[i].n < 0 || a.d[i].n == b.d[i].n;
    if (!same)
        return oct_fail(err, OCT_EMALFORMED, "the inputs have different shapes");
    return oct_out_like(c, 0, 0, err);
}

static oct_status swiglu_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    oct_dtype t = s->in[0]->dtype;
    if ((t != OCT_F32 && t != OCT_F64) || s->in[1]->dtype != t || s->in[1]->count != s->in[0]->count)
        return oct_fail(err, OCT_EUNSUPPORTED, "types %s and %s", oct_dtype_name(t), oct_dtype_name(s->in[1]->dtype));
    return OCT_OK;
}

static double swish(double x, double alpha)
{
    double e = oct_exp(-fabs(alpha * x));
    return x * ((alpha * x < 0 ? e : 1.0) / (1.0 + e));
}

static oct_status swiglu_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const size_t n = (size_t)s->out[0]->count;
    const oct_unary f = { OCT_UNARY_SWISH, oct_node_float(s->node, "alpha", 1.0f), 0 };
    if (s->in[0]->dtype == OCT_F32) {
        oct_unary_f32(r->pool, &f, s->in[0]->data, s->out[0]->data, n);
        oct_binary_f32(r->pool, OCT_BINARY_MUL, s->out[0]->data, 1, s->in[1]->data, 1, s->out[0]->data, n);
        return OCT_OK;
    }
    const double *a = s->in[0]->data, *b = s->in[1]->data;
    for (size_t i = 0; i < n; i++)
        ((double *)s->out[0]->data)[i] = swish(a[i], (double)f.a) * b[i];
    return OCT_OK;
}

const oct_op oct_op_swiglu = {
    OCT_SCHEMA("SwiGLU", "", 28, 2, 2, 1, 1),
    .infer = swiglu_infer,
    .prepare = swiglu_prepare,
    .run = swiglu_run,
    .widens = true,
};
