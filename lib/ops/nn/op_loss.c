/* lib/ops/nn/op_loss.c -- NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include "kernels/math.h"
#include "kernels/reduce.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

enum { SCORES, LABELS, WEIGHTS };

typedef enum reduction { NONE, SUM, MEAN } reduction;

static oct_status read_reduction(const oct_node *n, reduction *r, oct_err *err)
{
    const char *name = oct_node_str(n, "reduction", "mean");
    *r = strcmp(name, "none") == 0 ? NONE : strcmp(name, "sum") == 0 ? SUM : MEAN;
    if (*r == MEAN && strcmp(name, "mean") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'reduction' is '%s'", name);
    return OCT_OK;
}

static oct_status loss_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, SCORES), t = oct_in_shape(c, LABELS), w = oct_in_shape(c, WEIGHTS);
    reduction r;
    OCT_TRY(read_reduction(oct_in_node(c), &r, err));
    oct_out_dtype(c, 0, oct_in_dtype(c, SCORES));
    OCT_TRY(oct_out_like(c, 1, SCORES, err));
    bool ok = x.rank < 0 || x.rank >= 2;
    if (ok && x.rank >= 0 && t.rank >= 0)
        ok = t.rank == x.rank - 1;
    for (int i = 0; ok && x.rank >= 0 && i < t.rank; i++) {
        const oct_dim d = x.d[i == 0 ? 0 : i + 1];
        ok = d.n < 0 || t.d[i].n < 0 || d.n == t.d[i].n;
    }
    if (ok && w.rank >= 0)
        ok = w.rank == 1 && (x.rank < 0 || x.d[1].n < 0 || w.d[0].n < 0 || x.d[1].n == w.d[0].n);
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED,
                        "scores [N, C, ...], labels [N, ...] and weights [C] do not fit each other");
    return r != NONE ? oct_out_shape(c, 0, 0, NULL, err) : oct_out_shape(c, 0, t.rank, t.d, err);
}

static oct_status loss_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[SCORES], *t = s->in[LABELS], *w = s->n_in > WEIGHTS ? s->in[WEIGHTS] : NULL;
    if ((x->dtype != OCT_F32 && x->dtype != OCT_F64) || (w != NULL && w->dtype != x->dtype))
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    if (t->dtype != OCT_S32 && t->dtype != OCT_S64)
        return oct_fail(err, OCT_EMALFORMED, "labels of %s", oct_dtype_name(t->dtype));
    if (s->op->type[0] == 'S' && (s->n_out < 2 || s->out[1] == NULL) &&
        !oct_mul_size((size_t)x->count, oct_elem_size(x->dtype), &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

static double value_at(const oct_operand *t, const void *data, int64_t i)
{
    return t->dtype == OCT_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* Loss of log-probabilities p, laid out as the scores. */
static oct_status lose(const oct_step *s, const void *p, oct_err *err)
{
    const oct_operand *x = s->in[SCORES], *t = s->in[LABELS], *w = s->n_in > WEIGHTS ? s->in[WEIGHTS] : NULL,
                      *y = s->out[0];
    const int64_t classes = x->dims[1], inner = t->count > 0 ? t->count / x->dims[0] : 1;
    const bool ignores = oct_node_attr(s->node, "ignore_index") != NULL;
    const int64_t ignored = oct_node_int(s->node, "ignore_index", 0);
    double sum = 0.0, total = 0.0;
    reduction r;
    OCT_TRY(read_reduction(s->node, &r, err));
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t label = oct_elem_int(t, i);
        double weight = 0.0, loss = 0.0;
        if (!ignores || label != ignored) {
            if (label < 0 || label >= classes)
                return oct_fail(err, OCT_EMALFORMED, "label %lld of %lld classes", (long long)label,
                                (long long)classes);
            weight = w != NULL ? value_at(w, w->data, label) : 1.0;
            loss = -value_at(x, p, (i / inner * classes + label) * inner + i % inner) * weight;
        }
        sum += loss;
        total += weight;
        if (r == NONE)
            oct_elem_store(y->dtype, y->data, i, 1, 1, OCT_DOM_D, &loss);
    }
    if (r == MEAN)
        sum /= total;
    if (r != NONE)
        oct_elem_store(y->dtype, y->data, 0, 1, 1, OCT_DOM_D, &sum);
    return OCT_OK;
}

static oct_status nll_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    return lose(s, s->in[SCORES]->data, err);
}

static void log_softmax_f64(const double *x, int64_t outer, int64_t n, int64_t inner, double *y)
{
    for (int64_t row = 0; row < outer * inner; row++) {
        const int64_t base = row / inner * n * inner + row % inner;
        double most = -(double)INFINITY, sum = 0.0;
        for (int64_t k = 0; k < n; k++)
            most = x[base + k * inner] > most ? x[base + k * inner] : most;
        for (int64_t k = 0; k < n; k++)
            sum += oct_exp(x[base + k * inner] - most);
        for (int64_t k = 0; k < n; k++)
            y[base + k * inner] = x[base + k * inner] - most - oct_log(sum);
    }
}

static oct_status sce_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[SCORES];
    void *p = s->n_out > 1 && s->out[1] != NULL ? s->out[1]->data : r->scratch;
    const int64_t inner = x->count > 0 ? x->count / x->dims[0] / x->dims[1] : 1;
    if (x->count > 0 && x->dtype == OCT_F32)
        oct_softmax_f32(r->pool, true, x->data, (size_t)x->dims[0], (size_t)x->dims[1], (size_t)inner, p);
    else if (x->count > 0)
        log_softmax_f64(x->data, x->dims[0], x->dims[1], inner, p);
    return lose(s, p, err);
}

const oct_op oct_op_nll_loss = {
    OCT_SCHEMA("NegativeLogLikelihoodLoss", "", 12, 2, 3, 1, 1),
    .infer = loss_infer,
    .prepare = loss_prepare,
    .run = nll_run,
    .widens = true,
};
const oct_op oct_op_softmax_cross_entropy_loss = {
    OCT_SCHEMA("SoftmaxCrossEntropyLoss", "", 12, 2, 3, 1, 2),
    .infer = loss_infer,
    .prepare = loss_prepare,
    .run = sce_run,
    .widens = true,
};
