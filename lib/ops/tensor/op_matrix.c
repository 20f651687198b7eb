/* lib/ops/tensor/op_matrix.c -- square matrices: EyeLike, Det. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ EyeLike */

static oct_status eye_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    int64_t t = oct_node_int(oct_in_node(c), "dtype", 0);
    if (t < 0 || t >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'dtype' is %lld", (long long)t);
    if (x.rank >= 0 && x.rank != 2)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 2", x.rank);
    oct_out_dtype(c, 0, t != 0 ? (oct_dtype)t : oct_in_dtype(c, 0));
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static oct_status eye_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_dom_of(s->out[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->out[0]->dtype));
    return OCT_OK;
}

static oct_status eye_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *y = s->out[0];
    const int64_t rows = y->dims[0], cols = y->dims[1], one = 1;
    int64_t k = oct_node_int(s->node, "k", 0);
    k = k < -rows ? -rows : k > cols ? cols : k;
    memset(y->data, 0, (size_t)y->count * oct_elem_size(y->dtype));
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < cols; i++)
        oct_elem_store(y->dtype, y->data, i * cols + i + k, 1, 1, OCT_DOM_I, &one);
    return OCT_OK;
}

const oct_op oct_op_eye_like = {
    OCT_SCHEMA("EyeLike", "", 9, 1, 1, 1, 1),
    .infer = eye_infer,
    .prepare = eye_prepare,
    .run = eye_run,
};

/* ------------------------------------------------------------------ Det */

static oct_status det_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 2 || (x.d[x.rank - 1].n >= 0 && x.d[x.rank - 2].n >= 0 && x.d[x.rank - 1].n != x.d[x.rank - 2].n)) {
        char text[128];
        return oct_fail(err, OCT_EMALFORMED, "the determinant of %s: the matrices are not square",
                        oct_shape_text(&x, text, sizeof text));
    }
    return oct_out_shape(c, 0, x.rank - 2, x.d, err);
}

static oct_status det_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0];
    oct_dom dom = oct_dom_of(x->dtype);
    if (dom != OCT_DOM_F && dom != OCT_DOM_D)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    size_t n = (size_t)x->dims[x->rank - 1], count;
    if (!oct_mul_size(n, n, &count) || !oct_mul_size(count, sizeof(double), &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

/* Elimination with the largest pivot of each column. a: f64[n][n], overwritten. */
static double determinant(double *a, int64_t n)
{
    double det = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        for (int64_t j = 0; j < n && pivot != k; j++) {
            double t = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = t;
        }
        det *= pivot != k ? -a[k * n + k] : a[k * n + k];
        if (det == 0.0)
            return 0.0;
        for (int64_t i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
    return det;
}

static oct_status det_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const int64_t n = x->dims[x->rank - 1], count = n * n;
    double *a = r->scratch;
    for (int64_t m = 0; m < y->count; m++) {
        for (int64_t first = 0; first < count; first += 1024) {
            oct_chunk c;
            int64_t part = count - first < 1024 ? count - first : 1024;
            const void *v = oct_elem_load(x->dtype, x->data, m * count + first, 1, part, &c);
            oct_elem_store(OCT_F64, a, first, 1, part, oct_dom_of(x->dtype), v);
        }
        double det = determinant(a, n);
        oct_elem_store(y->dtype, y->data, m, 1, 1, OCT_DOM_D, &det);
    }
    return OCT_OK;
}

const oct_op oct_op_det = {
    OCT_SCHEMA("Det", "", 11, 1, 1, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = det_infer,
    .prepare = det_prepare,
    .run = det_run,
};
