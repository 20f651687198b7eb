/* lib/ops/nn/op_layer_norm.c -- LayerNormalization and RMSNormalization over the axes from `axis` on, and
 * SimplifiedLayerNormalization, by which ONNX Runtime spelled the latter before it had a standard: its second output is
 * the factor of each row. */
#include "kernels/reduce.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"

#include <math.h>
#include <string.h>

static bool is_simplified(const oct_step *s)
{
    return s->op->type[0] == 'S';
}

static bool is_rms(const oct_step *s)
{
    return s->op->type[0] == 'R' || is_simplified(s);
}

static oct_status norm_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    int axis;
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_dtype stash = (oct_dtype)oct_node_int(oct_in_node(c), "stash_type", OCT_F32);
    oct_out_dtype(c, 1, stash);
    oct_out_dtype(c, 2, stash);
    if (in.rank < 0)
        return OCT_OK;
    OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", -1), in.rank, &axis, err));
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0; i < in.rank; i++)
        d[i] = i < axis ? in.d[i] : oct_dim_of(1);
    OCT_TRY(oct_out_shape(c, 1, in.rank, d, err));
    return oct_out_shape(c, 2, in.rank, d, err);
}

/* Rows, elements of a row, and where the normalised dimensions begin. */
static oct_status rows_of(const oct_step *s, int *axis, int64_t *rows, int64_t *n, oct_err *err)
{
    const oct_operand *x = s->in[0];
    *rows = *n = 1;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", -1), x->rank, axis, err));
    for (int i = 0; i < x->rank; i++)
        *(i < *axis ? rows : n) *= x->dims[i];
    return OCT_OK;
}

/* gamma and beta must not vary over the rows. */
static oct_status check_factor(const oct_operand *t, const oct_operand *x, int axis, oct_err *err)
{
    bool ok = t->rank <= x->rank;
    for (int i = 0; ok && i < t->rank; i++) {
        int at = x->rank - t->rank + i;
        ok = t->dims[i] == 1 || (at >= axis && t->dims[i] == x->dims[at]);
    }
    return ok ? OCT_OK : oct_fail(err, OCT_EUNSUPPORTED, "a scale or bias that does not fit the normalised dimensions");
}

static oct_status norm_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int64_t rows, n;
    int axis;
    size_t bytes;
    OCT_TRY(rows_of(s, &axis, &rows, &n, err));
    const oct_dom dom = s->in[0]->dtype == OCT_F64 ? OCT_DOM_D : OCT_DOM_F;
    for (int i = 0; i < s->n_in; i++) {
        if (s->in[i] == NULL)
            continue;
        if (oct_dom_of(s->in[i]->dtype) != dom)
            return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[i]->dtype));
        if (i > 0)
            OCT_TRY(check_factor(s->in[i], s->in[0], axis, err));
    }
    if (oct_dom_of(s->out[0]->dtype) != dom)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->out[0]->dtype));
    for (int i = 1; i < s->n_out; i++)
        if (s->out[i] != NULL && s->out[i]->dtype != OCT_F32 && dom != OCT_DOM_D)
            return oct_fail(err, OCT_EUNSUPPORTED, "stash_type %s", oct_dtype_name(s->out[i]->dtype));
    if (dom == OCT_DOM_D) { /* gamma and beta as rows */
        if (!oct_mul_size((size_t)n, 2 * sizeof(double), &s->scratch))
            return oct_nomem(err);
        return OCT_OK;
    }
    /* gamma and beta as f32 rows; the data as f32 when it is not. */
    int64_t floats = 2 * n + (s->in[0]->dtype == OCT_F32 && s->out[0]->dtype == OCT_F32 ? 0 : s->in[0]->count);
    if (!oct_dtype_bytes(OCT_F32, floats, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "the tensor is too large");
    s->scratch = bytes;
    return OCT_OK;
}

typedef struct walk {
    const oct_operand *x;
    oct_dtype type; /* of dst: float32 or float64 */
    void *dst;
} walk;

static void spread_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    oct_chunk c;
    const void *v = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &c);
    oct_elem_store(w->type, w->dst, o[0], st[0], n, oct_dom_of(w->x->dtype), v);
}

/* t broadcast to the normalised dimensions, as n values of `type` in dst; NULL without it. */
static const void *factor(const oct_step *s, int slot, int axis, oct_dtype type, void *dst, const oct_run *r)
{
    const oct_operand *t = slot < s->n_in ? s->in[slot] : NULL, *x = s->in[0];
    if (t == NULL)
        return NULL;
    oct_operand row = { .rank = x->rank - axis, .dims = { 0 } }, part = *t;
    memcpy(row.dims, x->dims + axis, (size_t)row.rank * sizeof *row.dims);
    while (part.rank > row.rank) { /* leading dimensions of 1 */
        memmove(part.dims, part.dims + 1, (size_t)(part.rank - 1) * sizeof *part.dims);
        part.rank--;
    }
    oct_nd d;
    oct_nd_init(&d, &row);
    oct_nd_add(&d, &part);
    walk w = { &part, type, dst };
    oct_nd_run(&d, r->pool, spread_row, &w);
    return dst;
}

static void put(const oct_step *s, int slot, int64_t i, double v)
{
    if (slot < s->n_out && s->out[slot] != NULL)
        oct_elem_store(s->out[slot]->dtype, s->out[slot]->data, i, 1, 1, OCT_DOM_D, &v);
}

static void run_f64(const oct_step *s, const oct_run *r, int axis, int64_t rows, int64_t n)
{
    const double *x = s->in[0]->data, eps = (double)oct_node_float(s->node, "epsilon", 1e-5f);
    double *y = s->out[0]->data, *rest = r->scratch;
    const double *gamma = factor(s, 1, axis, OCT_F64, rest, r), *beta = factor(s, 2, axis, OCT_F64, rest + n, r);
    const bool rms = is_rms(s);
    const int rate_at = is_simplified(s) ? 1 : 2;
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        double mean = 0.0, var = 0.0;
        for (int64_t i = 0; i < n && !rms; i++)
            mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            var += (x[i] - mean) * (x[i] - mean) / (double)n;
        const double rate = 1.0 / sqrt(var + eps);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rate * (gamma != NULL ? gamma[i] : 1.0) + (beta != NULL ? beta[i] : 0.0);
        if (!is_simplified(s))
            put(s, 1, row, mean);
        put(s, rate_at, row, rate);
    }
}

static oct_status norm_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    int64_t rows, n;
    int axis;
    OCT_TRY(rows_of(s, &axis, &rows, &n, err));
    if (x->count == 0)
        return OCT_OK;
    if (x->dtype == OCT_F64) {
        run_f64(s, r, axis, rows, n);
        return OCT_OK;
    }
    float *gamma = r->scratch, *beta = gamma + n, *wide = beta + n;
    bool direct = x->dtype == OCT_F32 && y->dtype == OCT_F32;
    oct_layer_norm p = {
        .rows = (size_t)rows, .n = (size_t)n, .eps = oct_node_float(s->node, "epsilon", 1e-5f), .rms = is_rms(s)
    };
    p.gamma = factor(s, 1, axis, OCT_F32, gamma, r);
    p.beta = factor(s, 2, axis, OCT_F32, beta, r);
    const float *from = x->data;
    if (!direct) {
        oct_chunk c;
        for (int64_t at = 0; at < x->count; at += OCT_ND_CHUNK) {
            int64_t m = x->count - at < OCT_ND_CHUNK ? x->count - at : OCT_ND_CHUNK;
            oct_elem_store(OCT_F32, wide, at, 1, m, OCT_DOM_F, oct_elem_load(x->dtype, x->data, at, 1, m, &c));
        }
        from = wide;
    }
    const int rate_at = is_simplified(s) ? 1 : 2;
    float *mean = !is_simplified(s) && s->n_out > 1 && s->out[1] != NULL ? s->out[1]->data : NULL;
    float *rstd = s->n_out > rate_at && s->out[rate_at] != NULL ? s->out[rate_at]->data : NULL;
    oct_layer_norm_f32(r->pool, &p, from, direct ? y->data : wide, mean, rstd);
    if (!direct)
        oct_elem_store(y->dtype, y->data, 0, 1, y->count, OCT_DOM_F, wide);
    return OCT_OK;
}

static bool norm_by_rows(const oct_step *s)
{
    int axis;
    const int rank = s->in[0]->rank;
    return oct_axis(oct_node_int(s->node, "axis", -1), rank, &axis, NULL) == OCT_OK && axis == rank - 1;
}

/* ONNX has it from opset 17 on; ONNX Runtime, whose optimizer writes it into models of older opsets, from 1 on. */
const oct_op oct_op_layer_norm = {
    OCT_SCHEMA("LayerNormalization", "", 1, 2, 3, 1, 3),
    .infer = norm_infer,
    .prepare = norm_prepare,
    .run = norm_run,
    .by_rows = norm_by_rows,
    .homogeneous = 1 << 1 | 1 << 2,
    .compresses = true,
};

const oct_op oct_op_rms_norm = {
    OCT_SCHEMA("RMSNormalization", "", 23, 2, 2, 1, 1),
    .infer = norm_infer,
    .prepare = norm_prepare,
    .run = norm_run,
    .by_rows = norm_by_rows,
    .homogeneous = 1 << 1,
    .compresses = true,
};

const oct_op oct_op_simplified_layer_norm = {
    OCT_SCHEMA("SimplifiedLayerNormalization", "", 1, 2, 2, 1, 2),
    .infer = norm_infer,
    .prepare = norm_prepare,
    .run = norm_run,
    .by_rows = norm_by_rows,
    .homogeneous = 1 << 1,
};
