/* Of ai.onnx.ml: Scaler, Normalizer and Imputer, which prepare the features of samples. Numbers become float32. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

#define ML "ai.onnx.ml"

static oct_status floats_infer(const oct_infer *c, oct_err *err)
{
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_out_dtype(c, 0, OCT_F32);
    return OCT_OK;
}

static oct_status check_numbers(const oct_operand *x, oct_err *err)
{
    if (oct_dom_of(x->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    return x->rank < 1 ? oct_fail(err, OCT_EMALFORMED, "the input is a single number and has no features") : OCT_OK;
}

/* The numbers of an attribute: one for all features, or one for each. */
static oct_status feature_floats(const oct_step *s, const char *name, const float **v, int *count, oct_err *err)
{
    const oct_operand *x = s->in[0];
    *v = oct_node_floats(s->node, name, count);
    if (*count == 1 || *count == x->dims[x->rank - 1])
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "'%s' has %d values for %lld features", name, *count,
                    (long long)x->dims[x->rank - 1]);
}

/* ------------------------------------------------------------------ Scaler: (x - offset) * scale */

static oct_status scaler_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const float *v;
    int n;
    OCT_TRY(check_numbers(s->in[0], err));
    OCT_TRY(feature_floats(s, "offset", &v, &n, err));
    return feature_floats(s, "scale", &v, &n, err);
}

static oct_status scaler_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const int64_t features = x->dims[x->rank - 1];
    float *y = s->out[0]->data;
    int n_offset, n_scale;
    const float *offset = oct_node_floats(s->node, "offset", &n_offset),
                *scale = oct_node_floats(s->node, "scale", &n_scale);
    for (int64_t i = 0; i < x->count; i++) {
        const float o = offset[n_offset > 1 ? i % features : 0], c = scale[n_scale > 1 ? i % features : 0];
        const double v = oct_elem_double(x, i);
        y[i] = x->dtype == OCT_F64 ? (float)((v - (double)o) * (double)c) : ((float)v - o) * c;
    }
    return OCT_OK;
}

const oct_op oct_op_scaler = {
    OCT_SCHEMA("Scaler", ML, 1, 1, 1, 1, 1),
    .infer = floats_infer,
    .prepare = scaler_prepare,
    .run = scaler_run,
};

/* ------------------------------------------------------------------ Normalizer: each sample by its largest value or a
 * norm */

static oct_status normalizer_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const char *norm = oct_node_str(s->node, "norm", "MAX");
    if (strcmp(norm, "MAX") != 0 && strcmp(norm, "L1") != 0 && strcmp(norm, "L2") != 0)
        return oct_fail(err, OCT_EMALFORMED, "'norm' is '%.40s', neither MAX, L1 nor L2", norm);
    return check_numbers(s->in[0], err);
}

/* What the values of a sample are divided by; samples of which it is zero stay as they are. */
static double norm_of(const oct_operand *x, int64_t from, int64_t n, char kind)
{
    double norm = kind == 'M' && n ? oct_elem_double(x, from) : 0;
    for (int64_t i = from; i < from + n; i++) {
        const double v = oct_elem_double(x, i);
        norm = kind == 'M' ? fmax(norm, v) : norm + (kind == '1' ? fabs(v) : v * v);
    }
    return kind == '2' ? sqrt(norm) : norm;
}

static oct_status normalizer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const int64_t n = x->dims[x->rank - 1];
    const char *norm = oct_node_str(s->node, "norm", "MAX"), kind = norm[0] == 'M' ? 'M' : norm[1];
    float *y = s->out[0]->data;
    for (int64_t from = 0; from < x->count; from += n) {
        const double by = norm_of(x, from, n, kind);
        for (int64_t i = from; i < from + n; i++)
            y[i] = (float)(by != 0 ? oct_elem_double(x, i) / by : oct_elem_double(x, i));
    }
    return OCT_OK;
}

const oct_op oct_op_normalizer = {
    OCT_SCHEMA("Normalizer", ML, 1, 1, 1, 1, 1),
    .infer = floats_infer,
    .prepare = normalizer_prepare,
    .run = normalizer_run,
};

/* ------------------------------------------------------------------ Imputer: a value for those that are missing */

static oct_status imputer_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const float *v;
    int n;
    OCT_TRY(check_numbers(s->in[0], err));
    if (oct_dom_of(s->in[0]->dtype) != OCT_DOM_F)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    return feature_floats(s, "imputed_value_floats", &v, &n, err);
}

static oct_status imputer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const int64_t features = x->dims[x->rank - 1];
    const float missing = oct_node_float(s->node, "replaced_value_float", 0.0f);
    int n;
    const float *value = oct_node_floats(s->node, "imputed_value_floats", &n);
    for (int64_t i = 0; i < x->count; i++) {
        float v = (float)oct_elem_double(x, i);
        if (v == missing || (isnan(missing) && isnan(v)))
            v = value[n > 1 ? i % features : 0];
        oct_elem_store(x->dtype, s->out[0]->data, i, 1, 1, OCT_DOM_F, &v);
    }
    return OCT_OK;
}

const oct_op oct_op_imputer = {
    OCT_SCHEMA("Imputer", ML, 1, 1, 1, 1, 1),
    .infer = oct_infer_like,
    .prepare = imputer_prepare,
    .takes_nan = true,
    .run = imputer_run,
};
