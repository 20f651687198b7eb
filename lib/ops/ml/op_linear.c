/* Of ai.onnx.ml: LinearClassifier and LinearRegressor. Sums are taken in double and rounded once. */
#include "ops/core/elem.h"
#include "ops/ml/class_scores.h"

#include <string.h>

#define ML "ai.onnx.ml"

/* What a linear model multiplies by: coefficients [n][features], and a term for each of n. */
typedef struct linear {
    const float *coefficient, *term;
    int64_t n, features;
    oct_ml_transform transform;
} linear;

static oct_status read_linear(const oct_node *node, int64_t n, int64_t features, linear *l, oct_err *err)
{
    int count, terms;
    *l = (linear){ .n = n, .features = features };
    OCT_TRY(oct_ml_transform_of(node, &l->transform, err));
    l->coefficient = oct_node_floats(node, "coefficients", &count);
    l->term = oct_node_floats(node, "intercepts", &terms);
    if (n < 1 || features < 0 || count % n != 0 || count / n != features)
        return oct_fail(err, OCT_EMALFORMED, "%d coefficients for %lld results of %lld features", count, (long long)n,
                        (long long)features);
    if (terms && terms != n)
        return oct_fail(err, OCT_EMALFORMED, "%d intercepts for %lld results", terms, (long long)n);
    l->term = terms ? l->term : NULL;
    return OCT_OK;
}

static void multiply(const linear *l, const oct_operand *x, int64_t row, double *v)
{
    for (int64_t k = 0; k < l->n; k++) {
        v[k] = l->term ? (double)l->term[k] : 0.0;
        for (int64_t i = 0; i < l->features; i++)
            v[k] += oct_elem_double(x, row * l->features + i) * (double)l->coefficient[k * l->features + i];
    }
}

/* ------------------------------------------------------------------ LinearRegressor */

static oct_status regressor_infer(const oct_infer *c, oct_err *err)
{
    return oct_ml_targets_infer(c, "targets", err);
}

static oct_status regressor_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int64_t rows, features;
    linear *l = oct_arena_calloc(p->arena, 1, sizeof *l);
    if (!l)
        return oct_nomem(err);
    s->state = l;
    OCT_TRY(oct_ml_rows(s->in[0], &rows, &features, err));
    OCT_TRY(read_linear(s->node, oct_node_int(s->node, "targets", 1), features, l, err));
    return oct_mul_size((size_t)l->n, sizeof(double), &s->scratch) ? OCT_OK : oct_nomem(err);
}

static oct_status regressor_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const linear *l = s->state;
    double *v = r->scratch;
    for (int64_t row = 0; row < s->out[0]->dims[0]; row++) {
        multiply(l, s->in[0], row, v);
        oct_ml_transform_scores(l->transform, v, l->n);
        oct_elem_store(OCT_F32, s->out[0]->data, row * l->n, 1, l->n, OCT_DOM_D, v);
    }
    return OCT_OK;
}

const oct_op oct_op_linear_regressor = {
    OCT_SCHEMA("LinearRegressor", ML, 1, 1, 1, 1, 1),
    .infer = regressor_infer,
    .prepare = regressor_prepare,
    .run = regressor_run,
};

/* ------------------------------------------------------------------ LinearClassifier */

/* The number of products: one for each class, or one alone that tells two classes apart. */
static oct_status products_of(const oct_node *node, const oct_ml_labels *labels, int64_t *n, oct_err *err)
{
    int terms;
    oct_node_floats(node, "intercepts", &terms);
    *n = terms ? terms : labels->n;
    if (*n == labels->n || (*n == 1 && labels->n == 2))
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "%lld intercepts for %lld classes", (long long)*n, (long long)labels->n);
}

static oct_status classifier_infer(const oct_infer *c, oct_err *err)
{
    oct_ml_labels labels;
    int64_t n;
    OCT_TRY(oct_ml_labels_read(oct_in_node(c), "classlabels_ints", &labels, err));
    OCT_TRY(products_of(oct_in_node(c), &labels, &n, err));
    return oct_ml_classes_infer(c, &labels, labels.n, err);
}

/* One product alone is the score of the second class, whose counterpart belongs to the first; only LOGISTIC changes
 * it. */
static oct_status score(const void *state, const oct_operand *x, int64_t row, double *v, int64_t *label, oct_err *err)
{
    const linear *l = state;
    multiply(l, x, row, v);
    if (l->n > 1) {
        *label = 0;
        for (int64_t k = 1; k < l->n; k++)
            *label = v[k] > v[*label] ? k : *label;
        oct_ml_transform_scores(l->transform, v, l->n);
        return OCT_OK;
    }
    *label = v[0] > 0.0;
    v[1] = v[0];
    if (l->transform == OCT_ML_LOGISTIC)
        oct_ml_transform_scores(l->transform, v + 1, 1);
    v[0] = 1.0 - v[1];
    return OCT_OK;
}

static oct_status classifier_exec(oct_exec *x, oct_err *err)
{
    oct_ml_labels labels;
    linear l;
    int64_t n, features;
    OCT_TRY(oct_ml_features_of(x, &features, err));
    OCT_TRY(oct_ml_labels_read(x->node, "classlabels_ints", &labels, err));
    OCT_TRY(products_of(x->node, &labels, &n, err));
    OCT_TRY(read_linear(x->node, n, features, &l, err));
    return oct_ml_classify(x, &labels, labels.n, score, &l, err);
}

const oct_op oct_op_linear_classifier = {
    OCT_SCHEMA("LinearClassifier", ML, 1, 1, 1, 2, 2),
    .infer = classifier_infer,
    .exec = classifier_exec,
    .decision = OCT_CLASSIFIES,
};
