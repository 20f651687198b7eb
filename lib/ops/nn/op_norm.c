/* BatchNormalization, InstanceNormalization, LRN. */
#include "kernels/math.h"
#include "kernels/reduce.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ BatchNormalization */

static oct_status batch_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    for (int i = 1; i < 5 && x.rank >= 2; i++) {
        oct_shape v = oct_in_shape(c, i);
        if (v.rank >= 0 && (v.rank != 1 || (v.d[0].n >= 0 && x.d[1].n >= 0 && v.d[0].n != x.d[1].n)))
            return oct_fail(err, OCT_EMALFORMED, "input '%s' does not have one value for each of %lld channels",
                            oct_in_value(c, i)->name, (long long)x.d[1].n);
    }
    for (int i = 1; i < 5; i++) {
        oct_shape v = oct_in_shape(c, i < 3 ? i + 2 : i);
        oct_out_dtype(c, i, oct_in_dtype(c, i < 3 ? i + 2 : i));
        OCT_TRY(oct_out_shape(c, i, v.rank, v.d, err));
    }
    return oct_out_like(c, 0, 0, err);
}

typedef struct batch_state {
    float *scale, *shift; /* f32[c] */
    double *sum;          /* training: f64[2][c], mean and variance of the batch */
    bool fixed, training;
} batch_state;

/* y = (x - mean) / sqrt(var + eps) * gamma + beta = x * s + b. */
static void fold(const oct_step *s, const batch_state *st)
{
    float eps = oct_node_float(s->node, "epsilon", 1e-5f);
    const float *gamma = s->in[1]->data, *beta = s->in[2]->data, *mean = s->in[3]->data, *var = s->in[4]->data;
    for (int64_t i = 0; i < s->in[1]->count; i++) {
        st->scale[i] = gamma[i] / sqrtf(var[i] + eps);
        st->shift[i] = fmaf(-mean[i], st->scale[i], beta[i]);
    }
}

/* Mean and (population) variance of each channel of channels-last data, in double, row by row. */
static void batch_statistics(const oct_operand *x, size_t c, double *mean, double *var)
{
    const float *v = x->data;
    size_t rows = (size_t)x->count / c;
    for (size_t k = 0; k < 2 * c; k++)
        mean[k] = 0; /* var follows */
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < c; k++)
            mean[k] += v[i * c + k];
    for (size_t k = 0; k < c; k++)
        mean[k] /= (double)rows;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < c; k++)
            var[k] += (v[i * c + k] - mean[k]) * (v[i * c + k] - mean[k]);
    for (size_t k = 0; k < c; k++)
        var[k] /= (double)rows;
}

/* Training: statistics of this batch normalize; outputs 1 and 2 are the running ones (BatchNormalization-15). */
static void batch_train(const oct_step *s, const batch_state *st)
{
    size_t c = (size_t)s->in[1]->count;
    double *mean = st->sum, *var = st->sum + c;
    float eps = oct_node_float(s->node, "epsilon", 1e-5f), keep = oct_node_float(s->node, "momentum", 0.9f);
    const float *gamma = s->in[1]->data, *beta = s->in[2]->data;
    batch_statistics(s->in[0], c, mean, var);
    for (size_t k = 0; k < c; k++) {
        st->scale[k] = gamma[k] / sqrtf((float)var[k] + eps);
        st->shift[k] = fmaf(-(float)mean[k], st->scale[k], beta[k]);
    }
    for (int o = 1; o < 3 && o < s->n_out; o++)
        for (size_t k = 0; s->out[o] && k < c; k++) {
            const float *was = s->in[o + 2]->data;
            ((float *)s->out[o]->data)[k] = was[k] * keep + (float)(o == 1 ? mean : var)[k] * (1.0f - keep);
        }
}

static oct_status batch_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    batch_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    if (!st)
        return oct_nomem(err);
    s->state = st;
    st->training = s->opset >= 14 && oct_node_int(s->node, "training_mode", 0);
    if (s->opset < 7 && !oct_node_int(s->node, "is_test", 0))
        return oct_fail(err, OCT_EUNSUPPORTED, "BatchNormalization in training mode of opset %lld cannot be run",
                        (long long)s->opset);
    for (int i = 1; i < s->n_out && !st->training; i++)
        if (s->out[i])
            return oct_fail(err, OCT_EUNSUPPORTED,
                            "output %d of BatchNormalization cannot be computed without training mode", i);
    if (oct_node_int(s->node, "spatial", 1) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "BatchNormalization with spatial = 0 cannot be run");
    int64_t c = s->in[0]->rank > 1 ? s->in[0]->dims[1] : 1;
    st->fixed = true;
    for (int i = 0; i < 5; i++) {
        const bool doubles = s->in[0]->dtype == OCT_F64 && !st->training;
        if (s->in[i]->dtype != (doubles ? OCT_F64 : OCT_F32))
            return oct_fail(err, OCT_EUNSUPPORTED, "BatchNormalization of %s cannot be run",
                            oct_dtype_name(s->in[i]->dtype));
        if (i && s->in[i]->count != c)
            return oct_fail(err, OCT_EMALFORMED, "input %d has %lld values for %lld channels", i,
                            (long long)s->in[i]->count, (long long)c);
        st->fixed &= i == 0 || s->in[i]->constant;
    }
    if (s->in[0]->dtype == OCT_F64)
        return OCT_OK;
    st->scale = oct_arena_alloc(p->arena, (size_t)c * sizeof(float));
    st->shift = oct_arena_alloc(p->arena, (size_t)c * sizeof(float));
    if (!st->scale || !st->shift)
        return oct_nomem(err);
    if (st->training && !(st->sum = oct_arena_calloc(p->arena, 2 * (size_t)c, sizeof *st->sum)))
        return oct_nomem(err);
    if (st->training)
        st->fixed = false;
    if (st->fixed)
        fold(s, st);
    return OCT_OK;
}

/* Channels are last, or all there is besides the batch. */
static void batch_f64(const oct_step *s)
{
    const double *x = s->in[0]->data, *scale = s->in[1]->data, *shift = s->in[2]->data, *mean = s->in[3]->data,
                 *var = s->in[4]->data;
    const double eps = (double)oct_node_float(s->node, "epsilon", 1e-5f);
    const int64_t c = s->in[1]->count;
    double *y = s->out[0]->data;
    for (int64_t i = 0; i < s->in[0]->count; i++)
        y[i] = (x[i] - mean[i % c]) / sqrt(var[i % c] + eps) * scale[i % c] + shift[i % c];
}

static oct_status batch_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const batch_state *st = s->state;
    const oct_operand *x = s->in[0];
    for (int o = 1; o < 3 && o < s->n_out && x->count == 0; o++)
        if (s->out[o]) /* nothing was seen: the running statistics stay */
            memcpy(s->out[o]->data, s->in[o + 2]->data, (size_t)s->out[o]->count * sizeof(float));
    if (x->count == 0)
        return OCT_OK;
    if (x->dtype == OCT_F64) {
        batch_f64(s);
        return OCT_OK;
    }
    if (st->training)
        batch_train(s, st);
    else if (!st->fixed)
        fold(s, st);
    size_t c = (size_t)s->in[1]->count, n = (size_t)x->dims[0], inner = (size_t)x->count / n / c;
    if (x->layout == OCT_LAYOUT_CHANNELS_LAST)
        oct_scale_shift_f32(r->pool, x->data, n * inner, c, 1, st->scale, st->shift, s->out[0]->data);
    else
        oct_scale_shift_f32(r->pool, x->data, n, c, inner, st->scale, st->shift, s->out[0]->data);
    return OCT_OK;
}

/* Opset 14 dropped the extra outputs of inference; they must be unused by then. */
static oct_status batch_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from + 1 == 9)
        oct_node_drop_attr(g, node, "spatial");
    if (from + 1 == 14) {
        for (int i = 1; i < g->node[node].n_out; i++)
            OCT_TRY(oct_graph_set_output(g, node, i, -1, err));
        if (g->node[node].n_out > 1)
            g->node[node].n_out = 1;
    }
    return OCT_OK;
}

/* ------------------------------------------------------------------ InstanceNormalization */

static oct_status instance_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    for (int i = 0; i < 3; i++)
        if (s->in[i]->dtype != (s->in[0]->dtype == OCT_F64 ? OCT_F64 : OCT_F32))
            return oct_fail(err, OCT_EUNSUPPORTED, "InstanceNormalization of %s cannot be run",
                            oct_dtype_name(s->in[i]->dtype));
    if (s->in[0]->rank < 3 || s->in[1]->count != s->in[0]->dims[1] || s->in[2]->count != s->in[0]->dims[1])
        return oct_fail(err, OCT_EMALFORMED,
                        "InstanceNormalization needs 3-D or more and one scale and bias a channel");
    s->scratch = (size_t)(s->in[0]->dims[0] * 2 * s->in[0]->dims[1]) * sizeof(float);
    return OCT_OK;
}

static void instance_f64(const oct_step *s, int64_t n, int64_t hw, int64_t c)
{
    const double *scale = s->in[1]->data, *shift = s->in[2]->data,
                 eps = (double)oct_node_float(s->node, "epsilon", 1e-5f);
    for (int64_t k = 0; k < n * c; k++) {
        const double *x = (const double *)s->in[0]->data + k / c * hw * c + k % c;
        double *y = (double *)s->out[0]->data + k / c * hw * c + k % c, mean = 0.0, var = 0.0;
        for (int64_t i = 0; i < hw; i++)
            mean += x[i * c];
        mean /= (double)hw;
        for (int64_t i = 0; i < hw; i++)
            var += (x[i * c] - mean) * (x[i * c] - mean);
        for (int64_t i = 0; i < hw; i++)
            y[i * c] = (x[i * c] - mean) / sqrt(var / (double)hw + eps) * scale[k % c] + shift[k % c];
    }
}

static oct_status instance_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    if (x->count == 0)
        return OCT_OK;
    size_t n = (size_t)x->dims[0], c = (size_t)x->dims[1], hw = (size_t)x->count / n / c;
    if (x->dtype == OCT_F64) {
        instance_f64(s, (int64_t)n, (int64_t)hw, (int64_t)c);
        return OCT_OK;
    }
    oct_instance_norm_nhwc_f32(r->pool, x->data, n, hw, c, oct_node_float(s->node, "epsilon", 1e-5f), s->in[1]->data,
                               s->in[2]->data, r->scratch, s->out[0]->data);
    return OCT_OK;
}

/* ------------------------------------------------------------------ LRN */

static oct_status lrn_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if ((s->in[0]->dtype != OCT_F32 && s->in[0]->dtype != OCT_F64) || s->in[0]->rank < 3)
        return oct_fail(err, OCT_EUNSUPPORTED, "LRN of a %d-D tensor of %s cannot be run", s->in[0]->rank,
                        oct_dtype_name(s->in[0]->dtype));
    if (oct_node_int(s->node, "size", 0) < 1)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'size' is missing or below 1");
    return OCT_OK;
}

typedef struct lrn {
    const float *x;
    float *y, alpha, beta, bias;
    int64_t c, before, after;
} lrn;

static void lrn_pixels(void *arg, size_t begin, size_t end, size_t thread)
{
    const lrn *l = arg;
    for (size_t i = begin; i < end; i++) {
        const float *x = l->x + (int64_t)i * l->c;
        float *y = l->y + (int64_t)i * l->c;
        for (int64_t k = 0; k < l->c; k++) {
            int64_t lo = k - l->before < 0 ? 0 : k - l->before, hi = k + l->after >= l->c ? l->c - 1 : k + l->after;
            float sum = 0.0f;
            for (int64_t j = lo; j <= hi; j++)
                sum = fmaf(x[j], x[j], sum);
            y[k] = x[k] / oct_powf(fmaf(l->alpha, sum, l->bias), l->beta);
        }
    }
}

static void lrn_f64(const lrn *l, const double *x, double *y, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, x += l->c, y += l->c)
        for (int64_t k = 0; k < l->c; k++) {
            const int64_t lo = k - l->before < 0 ? 0 : k - l->before,
                          hi = k + l->after >= l->c ? l->c - 1 : k + l->after;
            double sum = 0.0;
            for (int64_t j = lo; j <= hi; j++)
                sum += x[j] * x[j];
            y[k] = x[k] / oct_exp((double)l->beta * oct_log((double)l->bias + (double)l->alpha * sum));
        }
}

static oct_status lrn_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    int64_t size = oct_node_int(s->node, "size", 1), c = x->dims[1];
    if (x->count == 0)
        return OCT_OK;
    lrn l = { x->data,
              s->out[0]->data,
              oct_node_float(s->node, "alpha", 1e-4f) / (float)size,
              oct_node_float(s->node, "beta", 0.75f),
              oct_node_float(s->node, "bias", 1.0f),
              c,
              (size - 1) / 2,
              size - 1 - (size - 1) / 2 };
    if (x->dtype == OCT_F64)
        lrn_f64(&l, x->data, s->out[0]->data, x->count / c);
    else
        oct_pool_for(r->pool, (size_t)(x->count / c), 64, lrn_pixels, &l);
    return OCT_OK;
}

const oct_op oct_op_batch_norm = {
    OCT_SCHEMA("BatchNormalization", "", 1, 5, 5, 1, 5),
    .infer = batch_infer,
    .prepare = batch_prepare,
    .run = batch_run,
    .layout = OCT_RULE_SPATIAL,
    .raise = batch_raise,
    .widens = true,
};
const oct_op oct_op_instance_norm = {
    OCT_SCHEMA("InstanceNormalization", "", 1, 3, 3, 1, 1),
    .infer = oct_infer_like,
    .prepare = instance_prepare,
    .run = instance_run,
    .layout = OCT_RULE_SPATIAL,
    .widens = true,
    .compresses = true,
};
const oct_op oct_op_lrn = {
    OCT_SCHEMA("LRN", "", 1, 1, 1, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = oct_infer_like,
    .prepare = lrn_prepare,
    .run = lrn_run,
    .layout = OCT_RULE_SPATIAL,
    .widens = true,
};
