#include "ops/ml/class_scores.h"

#include "kernels/math.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

/* ---- scores ---- */

oct_status oct_ml_transform_of(const oct_node *n, oct_ml_transform *t, oct_err *err)
{
    static const char *const names[OCT_ML_TRANSFORMS] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO" };
    const char *word = oct_node_str(n, "post_transform", "NONE");
    for (int i = 0; i < OCT_ML_TRANSFORMS; i++)
        if (strcmp(word, names[i]) == 0) {
            *t = (oct_ml_transform)i;
            return OCT_OK;
        }
    return oct_fail(err, strcmp(word, "PROBIT") == 0 ? OCT_EUNSUPPORTED : OCT_EMALFORMED, "post_transform is '%.40s'",
                    word);
}

/* exp(x - most) over their sum; zeros stay where `keep_zeros`. */
static void softmax(double *v, int64_t n, bool keep_zeros)
{
    double most = -(double)INFINITY, sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    for (int64_t i = 0; i < n; i++) {
        v[i] = keep_zeros && v[i] == 0.0 ? 0.0 : oct_exp(v[i] - most);
        sum += v[i];
    }
    for (int64_t i = 0; i < n && sum > 0.0; i++)
        v[i] /= sum;
}

void oct_ml_transform_scores(oct_ml_transform t, double *v, int64_t n)
{
    if (t == OCT_ML_SOFTMAX || t == OCT_ML_SOFTMAX_ZERO)
        softmax(v, n, t == OCT_ML_SOFTMAX_ZERO);
    for (int64_t i = 0; t == OCT_ML_LOGISTIC && i < n; i++)
        v[i] = 1.0 / (1.0 + oct_exp(-v[i]));
}

/* ---- labels ---- */

oct_status oct_ml_labels_read(const oct_node *n, const char *ints, oct_ml_labels *l, oct_err *err)
{
    const oct_attr *s = oct_node_attr(n, "classlabels_strings"), *i = oct_node_attr(n, ints);
    const bool strings = s && s->type == OCT_ATTR_STRINGS && s->n > 0,
               numbers = i && i->type == OCT_ATTR_INTS && i->n > 0;
    *l = (oct_ml_labels){ NULL };
    if (strings == numbers)
        return oct_fail(err, OCT_EMALFORMED, "%s of the lists 'classlabels_strings' and '%s' is there",
                        strings ? "each" : "none", ints);
    l->strings = strings ? s->strings : NULL;
    l->ints = strings ? NULL : i->ints;
    l->n = strings ? s->n : i->n;
    return OCT_OK;
}

oct_status oct_ml_rows(const oct_operand *x, int64_t *rows, int64_t *features, oct_err *err)
{
    if (oct_dom_of(x->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    if (x->rank < 1 || x->rank > 2)
        return oct_fail(err, OCT_EMALFORMED, "an input of %d dimensions, expected 1 or 2", x->rank);
    *rows = x->rank == 2 ? x->dims[0] : 1;
    *features = x->dims[x->rank - 1];
    return OCT_OK;
}

oct_status oct_ml_targets_infer(const oct_infer *c, const char *count, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0);
    const int64_t targets = oct_node_int(oct_in_node(c), count, 1);
    oct_out_dtype(c, 0, OCT_F32);
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 1 || x.rank > 2 || targets < 1)
        return oct_fail(err, OCT_EMALFORMED, "%lld targets of an input of %d dimensions, expected 1 or 2",
                        (long long)targets, x.rank);
    return oct_out_shape(c, 0, 2, (oct_dim[]){ x.rank == 2 ? x.d[0] : oct_dim_of(1), oct_dim_of(targets) }, err);
}

oct_status oct_ml_classes_infer(const oct_infer *c, const oct_ml_labels *l, int64_t n_scores, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, l->strings ? OCT_STRING : OCT_S64);
    oct_out_dtype(c, 1, OCT_F32);
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 1 || x.rank > 2)
        return oct_fail(err, OCT_EMALFORMED, "an input of %d dimensions, expected 1 or 2", x.rank);
    const oct_dim rows = x.rank == 2 ? x.d[0] : oct_dim_of(1);
    OCT_TRY(oct_out_shape(c, 0, 1, &rows, err));
    return oct_out_shape(c, 1, 2, (oct_dim[]){ rows, oct_dim_of(n_scores) }, err);
}

static oct_status pick_strings(const oct_ml_labels *l, const int64_t *at, int64_t rows, oct_datum **out, oct_err *err)
{
    size_t bytes;
    oct_str *s = oct_mul_size((size_t)rows + 1, sizeof *s, &bytes) ? oct_alloc(bytes) : NULL;
    if (!s)
        return oct_nomem(err);
    for (int64_t i = 0; i < rows; i++)
        s[i] = (oct_str){ l->strings[at[i]], strlen(l->strings[at[i]]) };
    const oct_status st = oct_datum_strings(1, &rows, s, out, err);
    oct_free(s);
    return st;
}

/* The labels at at[rows] as a tensor [rows]. */
static oct_status pick_labels(const oct_ml_labels *l, const int64_t *at, int64_t rows, oct_datum **out, oct_err *err)
{
    if (l->strings)
        return pick_strings(l, at, rows, out, err);
    OCT_TRY(oct_datum_tensor(OCT_S64, 1, &rows, out, err));
    int64_t *to = oct_datum_data(*out);
    for (int64_t i = 0; i < rows; i++)
        to[i] = l->ints[at[i]];
    return OCT_OK;
}

oct_status oct_ml_features_of(const oct_exec *x, int64_t *features, oct_err *err)
{
    const oct_datum *in = x->in[0];
    if (!in || in->kind != OCT_DATUM_TENSOR || in->t.rank < 1)
        return oct_fail(err, OCT_EMALFORMED, "the input is no tensor with features");
    *features = in->dims[in->t.rank - 1];
    return OCT_OK;
}

oct_status oct_ml_classify(oct_exec *x, const oct_ml_labels *l, int64_t n_scores, oct_ml_score_fn score,
                           const void *state, oct_err *err)
{
    const oct_datum *in = x->in[0];
    int64_t rows, features, *at;
    double *v;
    size_t bytes, more;
    oct_datum *spare = NULL, **scores = x->node->n_out > 1 ? &x->out[1] : &spare;
    oct_operand o = {
        .dtype = in->t.dtype, .rank = in->t.rank, .count = in->t.count, .data = (void *)(uintptr_t)in->t.data
    };
    memcpy(o.dims, in->dims, sizeof o.dims);
    OCT_TRY(oct_ml_rows(&o, &rows, &features, err));
    OCT_TRY(oct_datum_tensor(OCT_F32, 2, (int64_t[]){ rows, n_scores }, scores, err));
    if (!oct_mul_size((size_t)rows, sizeof *at, &bytes) || !oct_mul_size((size_t)n_scores, sizeof *v, &more) ||
        !oct_add_size(bytes, more, &bytes) || !(v = oct_alloc(bytes + 1))) {
        oct_datum_unref(spare);
        return oct_nomem(err);
    }
    at = (int64_t *)(v + n_scores);
    oct_status s = OCT_OK;
    for (int64_t r = 0; r < rows && s == OCT_OK; r++)
        if ((s = score(state, &o, r, v, &at[r], err)) == OCT_OK)
            oct_elem_store(OCT_F32, oct_datum_data(*scores), r * n_scores, 1, n_scores, OCT_DOM_D, v);
    if (s == OCT_OK)
        s = pick_labels(l, at, rows, &x->out[0], err);
    oct_free(v);
    oct_datum_unref(spare);
    return s;
}
