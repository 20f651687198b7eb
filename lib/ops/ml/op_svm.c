/* Of ai.onnx.ml: SVMRegressor and SVMClassifier. Sums are taken in double and rounded once. */
#include "base/mem.h"
#include "kernels/math.h"
#include "ops/core/elem.h"
#include "ops/ml/class_scores.h"

#include <string.h>

#define ML "ai.onnx.ml"

typedef enum svm_kernel { SVM_LINEAR, SVM_POLY, SVM_RBF, SVM_SIGMOID, SVM_KERNELS } svm_kernel;

/* What is compared with: vectors [n][features]. */
typedef struct supports {
    svm_kernel kernel;
    double gamma, coef0;
    int degree;
    const float *vector;
    int64_t n, features;
} supports;

static oct_status read_kernel(const oct_node *node, supports *s, oct_err *err)
{
    enum { MOST_DEGREE = 64 };
    static const char *const names[SVM_KERNELS] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
    const char *word = oct_node_str(node, "kernel_type", "LINEAR");
    int count, kernel = 0;
    const float *p = oct_node_floats(node, "kernel_params", &count);
    while (kernel < SVM_KERNELS && strcmp(word, names[kernel]) != 0)
        kernel++;
    if (kernel == SVM_KERNELS)
        return oct_fail(err, OCT_EMALFORMED, "kernel_type is '%.40s'", word);
    s->kernel = (svm_kernel)kernel;
    if (kernel == SVM_LINEAR)
        return OCT_OK;
    if (count != 3)
        return oct_fail(err, OCT_EMALFORMED, "%d kernel_params, expected gamma, coef0 and degree", count);
    s->gamma = (double)p[0];
    s->coef0 = (double)p[1];
    if (kernel == SVM_POLY && !(p[2] >= 0.0f && p[2] <= (float)MOST_DEGREE && p[2] == (float)(int)p[2]))
        return oct_fail(err, OCT_EUNSUPPORTED, "the degree %g is no whole number from 0 to %d", (double)p[2],
                        MOST_DEGREE);
    s->degree = kernel == SVM_POLY ? (int)p[2] : 0;
    return OCT_OK;
}

static oct_status read_vectors(const oct_node *node, int64_t n, int64_t features, supports *s, oct_err *err)
{
    int count;
    s->vector = oct_node_floats(node, "support_vectors", &count);
    s->n = n;
    s->features = features;
    if (n < 1 || features < 1 || count % n != 0 || count / n != features)
        return oct_fail(err, OCT_EMALFORMED, "%d numbers for %lld support vectors of %lld features", count,
                        (long long)n, (long long)features);
    return read_kernel(node, s, err);
}

/* A row of x against n numbers: their product, or the square of their distance. */
static double compare(const oct_operand *x, int64_t at, const float *with, int64_t n, bool distance)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double a = oct_elem_double(x, at + i), b = (double)with[i];
        sum += distance ? (a - b) * (a - b) : a * b;
    }
    return sum;
}

static double kernel_of(const supports *s, const oct_operand *x, int64_t row, int64_t vector)
{
    const double v = compare(x, row * s->features, s->vector + vector * s->features, s->features, s->kernel == SVM_RBF);
    const double t = s->gamma * v + s->coef0;
    double power = 1.0;
    switch (s->kernel) {
    case SVM_POLY:
        for (int i = 0; i < s->degree; i++)
            power *= t;
        return power;
    case SVM_RBF: return oct_exp(-s->gamma * v);
    case SVM_SIGMOID: return oct_tanh(t);
    default: return v;
    }
}

/* ------------------------------------------------------------------ SVMRegressor */

/* Without support vectors the coefficients are those of the features. */
typedef struct regressor {
    supports s; /* n == 0: there are none */
    const float *coefficient;
    double rho;
    bool one_class;
} regressor;

static oct_status regressor_infer(const oct_infer *c, oct_err *err)
{
    return oct_ml_targets_infer(c, "n_targets", err);
}

static oct_status regressor_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int64_t rows, features;
    int count, terms;
    oct_ml_transform transform;
    const int64_t vectors = oct_node_int(s->node, "n_supports", 0);
    regressor *r = oct_arena_calloc(p->arena, 1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    s->state = r;
    OCT_TRY(oct_ml_rows(s->in[0], &rows, &features, err));
    OCT_TRY(oct_ml_transform_of(s->node, &transform, err));
    if (transform != OCT_ML_NONE) /* which runtimes do not apply */
        return oct_fail(err, OCT_EUNSUPPORTED, "post_transform of a regressor");
    if (vectors)
        OCT_TRY(read_vectors(s->node, vectors, features, &r->s, err));
    r->coefficient = oct_node_floats(s->node, "coefficients", &count);
    if (count != (vectors ? vectors : features))
        return oct_fail(err, OCT_EMALFORMED, "%d coefficients, expected %lld", count,
                        (long long)(vectors ? vectors : features));
    const float *rho = oct_node_floats(s->node, "rho", &terms);
    if (terms != 1 || s->out[0]->dims[1] != 1)
        return oct_fail(err, OCT_EMALFORMED, "%d numbers rho for %lld targets, expected one", terms,
                        (long long)s->out[0]->dims[1]);
    r->rho = (double)rho[0];
    r->one_class = oct_node_int(s->node, "one_class", 0) != 0;
    r->s.features = features;
    return OCT_OK;
}

static oct_status regressor_run(const oct_step *s, const oct_run *run, oct_err *err)
{
    const regressor *r = s->state;
    for (int64_t row = 0; row < s->out[0]->dims[0]; row++) {
        double v = r->rho;
        if (!r->s.n)
            v += compare(s->in[0], row * r->s.features, r->coefficient, r->s.features, false);
        for (int64_t i = 0; i < r->s.n; i++)
            v += (double)r->coefficient[i] * kernel_of(&r->s, s->in[0], row, i);
        if (r->one_class)
            v = v > 0.0 ? 1.0 : -1.0;
        oct_elem_store(OCT_F32, s->out[0]->data, row, 1, 1, OCT_DOM_D, &v);
    }
    return OCT_OK;
}

const oct_op oct_op_svm_regressor = {
    OCT_SCHEMA("SVMRegressor", ML, 1, 1, 1, 1, 1),
    .infer = regressor_infer,
    .prepare = regressor_prepare,
    .run = regressor_run,
};

/* ------------------------------------------------------------------ SVMClassifier */

/* Each pair of classes i < j has a decision: the vectors of i weighted by row j - 1 of the coefficients [classes -
 * 1][n], those of j by row i, and rho. Its sign votes for i or j. */
typedef struct classifier {
    supports s;
    int64_t classes, pairs;
    const float *coefficient, *rho, *a, *b; /* a: NULL without probabilities */
    const int64_t *per_class;
    oct_ml_transform transform;
    /* of a row: s.n kernels, `pairs` decisions, `classes` votes; with probabilities also r and q [classes][classes],
     * and q p */
    double *kernel, *decision, *vote, *r, *q, *qp;
} classifier;

static bool has_probabilities(const oct_node *node)
{
    int count;
    oct_node_floats(node, "prob_a", &count);
    return count > 0;
}

static oct_status scores_of(const oct_node *node, oct_ml_labels *l, int64_t *n, oct_err *err)
{
    OCT_TRY(oct_ml_labels_read(node, "classlabels_ints", l, err));
    if (l->n < 2)
        return oct_fail(err, OCT_EUNSUPPORTED, "a classifier of one class");
    *n = has_probabilities(node) || l->n == 2 ? l->n : l->n * (l->n - 1) / 2;
    return OCT_OK;
}

static oct_status classifier_infer(const oct_infer *c, oct_err *err)
{
    oct_ml_labels labels;
    int64_t n;
    OCT_TRY(scores_of(oct_in_node(c), &labels, &n, err));
    return oct_ml_classes_infer(c, &labels, n, err);
}

static oct_status read_list(const oct_node *node, const char *name, int64_t n, const float **list, oct_err *err)
{
    int count;
    *list = oct_node_floats(node, name, &count);
    return count == n ? OCT_OK
                      : oct_fail(err, OCT_EMALFORMED, "%d numbers '%s', expected %lld", count, name, (long long)n);
}

static oct_status read_classifier(const oct_node *node, int64_t classes, int64_t features, classifier *c, oct_err *err)
{
    const oct_attr *per = oct_node_attr(node, "vectors_per_class");
    int64_t n = 0;
    *c = (classifier){ .classes = classes, .pairs = classes * (classes - 1) / 2 };
    OCT_TRY(oct_ml_transform_of(node, &c->transform, err));
    if (!per || per->type != OCT_ATTR_INTS || per->n != classes)
        return oct_fail(err, OCT_EUNSUPPORTED, "a classifier without support vectors of each class");
    c->per_class = per->ints;
    for (int64_t i = 0; i < classes; i++) {
        if (per->ints[i] < 0 || per->ints[i] > INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "%lld support vectors of a class", (long long)per->ints[i]);
        n += per->ints[i];
    }
    OCT_TRY(read_vectors(node, n, features, &c->s, err));
    OCT_TRY(read_list(node, "coefficients", (classes - 1) * n, &c->coefficient, err));
    OCT_TRY(read_list(node, "rho", c->pairs, &c->rho, err));
    if (has_probabilities(node)) {
        OCT_TRY(read_list(node, "prob_a", c->pairs, &c->a, err));
        return read_list(node, "prob_b", c->pairs, &c->b, err);
    }
    if (classes == 2 && c->transform != OCT_ML_NONE && c->transform != OCT_ML_LOGISTIC)
        return oct_fail(err, OCT_EUNSUPPORTED, "post_transform of one decision, of which runtimes give other scores");
    return OCT_OK;
}

/* The decisions and the votes of a row; the class with most votes, the first of equals. */
static int64_t decide(const classifier *c, const oct_operand *x, int64_t row)
{
    int64_t from_i = 0, most = 0;
    double *to = c->decision;
    const float *rho = c->rho;
    for (int64_t i = 0; i < c->s.n; i++)
        c->kernel[i] = kernel_of(&c->s, x, row, i);
    memset(c->vote, 0, (size_t)c->classes * sizeof *c->vote);
    for (int64_t i = 0; i < c->classes; from_i += c->per_class[i++]) {
        int64_t from_j = from_i + c->per_class[i];
        for (int64_t j = i + 1; j < c->classes; from_j += c->per_class[j++]) {
            const float *of_i = c->coefficient + (j - 1) * c->s.n, *of_j = c->coefficient + i * c->s.n;
            double v = (double)*rho++;
            for (int64_t k = from_i; k < from_i + c->per_class[i]; k++)
                v += (double)of_i[k] * c->kernel[k];
            for (int64_t k = from_j; k < from_j + c->per_class[j]; k++)
                v += (double)of_j[k] * c->kernel[k];
            *to++ = v;
            c->vote[v > 0.0 ? i : j] += 1.0;
        }
    }
    for (int64_t i = 1; i < c->classes; i++)
        most = c->vote[i] > c->vote[most] ? i : most;
    return most;
}

/* r[i][j]: the probability of i among i and j, from its decision by Platt's sigmoid. */
static void pair_probabilities(const classifier *c)
{
    const double least = 1e-7;
    const int64_t n = c->classes;
    for (int64_t i = 0, at = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, at++) {
            double p = 1.0 / (1.0 + oct_exp((double)c->a[at] * c->decision[at] + (double)c->b[at]));
            p = p > least ? p : least;
            p = p < 1.0 - least ? p : 1.0 - least;
            c->r[i * n + j] = p;
            c->r[j * n + i] = 1.0 - p;
        }
}

/* The probabilities p of classes that fit those of pairs best: the minimum of sum (r_ji p_i - r_ij p_j)^2 (Wu, Lin and
 * Weng 2004, section 4.2). p is updated in turn until q p is the same for all classes. */
static void couple(const classifier *c, double *p)
{
    const int64_t n = c->classes, most = n > 100 ? n : 100;
    const double enough = 0.005 / (double)n;
    for (int64_t i = 0; i < n; i++) {
        p[i] = 1.0 / (double)n;
        c->q[i * n + i] = 0.0;
        for (int64_t j = 0; j < n; j++)
            if (j != i) {
                c->q[i * n + i] += c->r[j * n + i] * c->r[j * n + i];
                c->q[i * n + j] = -c->r[j * n + i] * c->r[i * n + j];
            }
    }
    for (int64_t round = 0; round < most; round++) {
        double pqp = 0.0, off = 0.0;
        for (int64_t i = 0; i < n; i++) {
            c->qp[i] = 0.0;
            for (int64_t j = 0; j < n; j++)
                c->qp[i] += c->q[i * n + j] * p[j];
            pqp += p[i] * c->qp[i];
        }
        for (int64_t i = 0; i < n; i++)
            off = fabs(c->qp[i] - pqp) > off ? fabs(c->qp[i] - pqp) : off;
        if (off < enough)
            return;
        for (int64_t i = 0; i < n; i++) {
            const double own = c->q[i * n + i], d = (pqp - c->qp[i]) / own, all = 1.0 + d;
            p[i] += d;
            pqp = (pqp + d * (d * own + 2.0 * c->qp[i])) / (all * all);
            for (int64_t j = 0; j < n; j++) {
                c->qp[j] = (c->qp[j] + d * c->q[i * n + j]) / all;
                p[j] /= all;
            }
        }
    }
}

static oct_status score(const void *state, const oct_operand *x, int64_t row, double *v, int64_t *label, oct_err *err)
{
    const classifier *c = state;
    *label = decide(c, x, row);
    if (c->a) {
        pair_probabilities(c);
        couple(c, v);
    } else if (c->classes == 2) { /* by now it speaks for the first class, and scores are of the second */
        v[0] = -c->decision[0];
        v[1] = c->decision[0];
    } else {
        memcpy(v, c->decision, (size_t)c->pairs * sizeof *v);
    }
    oct_ml_transform_scores(c->transform, v, c->a || c->classes == 2 ? c->classes : c->pairs);
    return OCT_OK;
}

static oct_status classifier_exec(oct_exec *x, oct_err *err)
{
    oct_ml_labels labels;
    classifier c;
    int64_t n, features;
    size_t squares;
    OCT_TRY(oct_ml_features_of(x, &features, err));
    OCT_TRY(scores_of(x->node, &labels, &n, err));
    OCT_TRY(read_classifier(x->node, labels.n, features, &c, err));
    const size_t classes = (size_t)c.classes, rest = (size_t)c.s.n + (size_t)c.pairs + 2 * classes;
    if (!oct_mul_size(classes, 2 * classes, &squares))
        return oct_nomem(err);
    double *room = oct_calloc(rest + (c.a ? squares : 0), sizeof *room);
    if (!room)
        return oct_nomem(err);
    c.kernel = room;
    c.decision = c.kernel + c.s.n;
    c.vote = c.decision + c.pairs;
    c.qp = c.vote + classes;
    c.r = c.qp + classes;
    c.q = c.a ? c.r + squares / 2 : c.r;
    const oct_status s = oct_ml_classify(x, &labels, n, score, &c, err);
    oct_free(room);
    return s;
}

const oct_op oct_op_svm_classifier = {
    OCT_SCHEMA("SVMClassifier", ML, 1, 1, 1, 2, 2),
    .infer = classifier_infer,
    .exec = classifier_exec,
    .decision = OCT_CLASSIFIES,
};
