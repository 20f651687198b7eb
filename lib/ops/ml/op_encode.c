/* Of ai.onnx.ml: OneHotEncoder, FeatureVectorizer, and ZipMap. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

#define ML "ai.onnx.ml"

/* ------------------------------------------------------------------ OneHotEncoder */

/* The categories: strings, or integers where strings is NULL. */
typedef struct categories {
    const char *const *strings;
    const int64_t *ints;
    int n;
} categories;

static oct_status read_categories(const oct_node *n, categories *c, oct_err *err)
{
    const oct_attr *s = oct_node_attr(n, "cats_strings"), *i = oct_node_attr(n, "cats_int64s");
    const bool strings = s && s->type == OCT_ATTR_STRINGS && s->n > 0, ints = i && i->type == OCT_ATTR_INTS && i->n > 0;
    if (strings == ints)
        return oct_fail(err, OCT_EMALFORMED, "%s of the lists 'cats_strings' and 'cats_int64s' is there",
                        strings ? "each" : "none");
    *c = (categories){ strings ? s->strings : NULL, strings ? NULL : i->ints, strings ? s->n : i->n };
    return OCT_OK;
}

static oct_status one_hot_infer(const oct_infer *c, oct_err *err)
{
    categories cats;
    oct_dim d[OCT_MAX_RANK];
    const oct_shape x = oct_in_shape(c, 0);
    OCT_TRY(read_categories(oct_in_node(c), &cats, err));
    oct_out_dtype(c, 0, OCT_F32);
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank >= OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "an input of %d dimensions", x.rank);
    for (int i = 0; i < x.rank; i++)
        d[i] = x.d[i];
    d[x.rank] = oct_dim_of(cats.n);
    return oct_out_shape(c, 0, x.rank + 1, d, err);
}

/* The place of an element among the categories; -1: it is none of them. Of a category that is there twice, the last
 * counts. */
static int place_of(const categories *c, const oct_operand *x, int64_t i)
{
    const oct_str *s = x->dtype == OCT_STRING ? (const oct_str *)x->data + i : NULL;
    const int64_t v = s ? 0 : oct_elem_int(x, i);
    for (int k = c->n; k-- > 0;)
        if (s ? strlen(c->strings[k]) == s->n && memcmp(c->strings[k], s->s, s->n) == 0 : c->ints[k] == v)
            return k;
    return -1;
}

static oct_status one_hot_exec(oct_exec *x, oct_err *err)
{
    const oct_datum *in = x->in[0];
    categories cats;
    int64_t dims[OCT_MAX_RANK];
    OCT_TRY(read_categories(x->node, &cats, err));
    if (!in || in->kind != OCT_DATUM_TENSOR || in->t.rank >= OCT_MAX_RANK)
        return oct_fail(err, OCT_EMALFORMED, "the input is no tensor of at most %d dimensions", OCT_MAX_RANK - 1);
    if ((in->t.dtype == OCT_STRING) != (cats.strings != NULL) ||
        (in->t.dtype != OCT_STRING && oct_dom_of(in->t.dtype) == OCT_DOM_NONE))
        return oct_fail(err, OCT_EMALFORMED, "an input of %s and categories of %s", oct_dtype_name(in->t.dtype),
                        cats.strings ? "string" : "int64");
    const oct_operand o = { .dtype = in->t.dtype, .count = in->t.count, .data = (void *)(uintptr_t)in->t.data };
    const bool zeros = oct_node_int(x->node, "zeros", 1) != 0;
    memcpy(dims, in->dims, sizeof dims);
    dims[in->t.rank] = cats.n;
    OCT_TRY(oct_datum_tensor(OCT_F32, in->t.rank + 1, dims, &x->out[0], err));
    float *to = oct_datum_data(x->out[0]);
    if (x->out[0]->t.bytes)
        memset(to, 0, x->out[0]->t.bytes);
    for (int64_t i = 0; i < o.count; i++) {
        const int at = place_of(&cats, &o, i);
        if (at < 0 && !zeros)
            return oct_fail(err, OCT_EMALFORMED, "element %lld is none of the %d categories, and 'zeros' is 0",
                            (long long)i, cats.n);
        if (at >= 0)
            to[i * cats.n + at] = 1.0f;
    }
    return OCT_OK;
}

const oct_op oct_op_one_hot_encoder = {
    OCT_SCHEMA("OneHotEncoder", ML, 1, 1, 1, 1, 1),
    .infer = one_hot_infer,
    .exec = one_hot_exec,
    .decision = OCT_DECIDES,
};

/* ------------------------------------------------------------------ FeatureVectorizer: features side by side */

static oct_status sizes_of(const oct_node *n, const int64_t **size, int64_t *sum, oct_err *err)
{
    int count;
    *size = oct_node_ints(n, "inputdimensions", &count);
    *sum = 0;
    if (count != n->n_in)
        return oct_fail(err, OCT_EMALFORMED, "'inputdimensions' has %d values for %d inputs", count, n->n_in);
    for (int i = 0; i < count; i++)
        if ((*size)[i] < 0 || __builtin_add_overflow(*sum, (*size)[i], sum) || *sum > OCT_MAX_DIM)
            return oct_fail(err, OCT_EMALFORMED, "'inputdimensions' has %lld for input %d", (long long)(*size)[i], i);
    return OCT_OK;
}

static oct_status vectorizer_infer(const oct_infer *c, oct_err *err)
{
    const int64_t *size;
    int64_t sum;
    const oct_shape x = oct_in_shape(c, 0);
    OCT_TRY(sizes_of(oct_in_node(c), &size, &sum, err));
    oct_out_dtype(c, 0, OCT_F32);
    if (x.rank < 0)
        return OCT_OK;
    return oct_out_shape(c, 0, 2, (oct_dim[]){ x.rank > 1 ? x.d[0] : oct_dim_of(1), oct_dim_of(sum) }, err);
}

static oct_status vectorizer_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const int64_t *size, rows = s->out[0]->dims[0];
    int64_t sum;
    OCT_TRY(sizes_of(s->node, &size, &sum, err));
    for (int i = 0; i < s->n_in; i++) {
        const oct_operand *x = s->in[i];
        if (!x || oct_dom_of(x->dtype) == OCT_DOM_NONE)
            return oct_fail(err, OCT_EUNSUPPORTED, "input %d is not of numbers", i);
        if (x->rank < 1 || (x->rank > 1 ? x->dims[0] : 1) != rows)
            return oct_fail(err, OCT_EMALFORMED, "input %d has not the %lld rows of input 0", i, (long long)rows);
    }
    return OCT_OK;
}

/* Of inputs with more features the first are taken; those with fewer are filled up with zeros. */
static oct_status vectorizer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const int64_t *size, rows = s->out[0]->dims[0];
    int64_t sum, at = 0;
    OCT_TRY(sizes_of(s->node, &size, &sum, err));
    float *to = s->out[0]->data;
    for (int i = 0; i < s->n_in; at += size[i++]) {
        const oct_operand *x = s->in[i];
        const int64_t have = rows ? x->count / rows : 0;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t k = 0; k < size[i]; k++)
                to[row * sum + at + k] = k < have ? (float)oct_elem_double(x, row * have + k) : 0.0f;
    }
    return OCT_OK;
}

const oct_op oct_op_feature_vectorizer = {
    OCT_SCHEMA("FeatureVectorizer", ML, 1, 1, -1, 1, 1),
    .infer = vectorizer_infer,
    .prepare = vectorizer_prepare,
    .run = vectorizer_run,
};

/* ------------------------------------------------------------------ ZipMap: a sequence of maps from classes to scores
 *
 * Its value is held as the table of scores that the maps have; the classes are the node's attributes. So what a model
 * ends in can be compared, and nothing else reads maps. */

static oct_status zip_infer(const oct_infer *c, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, 0);
    if (x.rank == 0 || x.rank > 2)
        return oct_fail(err, OCT_EMALFORMED, "scores of %d dimensions, expected 1 or 2", x.rank);
    return oct_infer_like(c, err);
}

static oct_status zip_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_attr *a = oct_node_attr(s->node, "classlabels_strings"),
                   *b = oct_node_attr(s->node, "classlabels_int64s");
    const int names = a && a->type == OCT_ATTR_STRINGS ? a->n : 0, numbers = b && b->type == OCT_ATTR_INTS ? b->n : 0;
    const oct_operand *x = s->in[0];
    if (x->dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "scores of %s", oct_dtype_name(x->dtype));
    if ((names > 0) == (numbers > 0))
        return oct_fail(err, OCT_EMALFORMED, "%s of the lists 'classlabels_strings' and 'classlabels_int64s' is there",
                        names ? "each" : "none");
    if (x->rank < 1 || x->dims[x->rank - 1] != names + numbers)
        return oct_fail(err, OCT_EMALFORMED, "%d class labels for %lld scores", names + numbers,
                        (long long)(x->rank ? x->dims[x->rank - 1] : 1));
    return OCT_OK;
}

static oct_status zip_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    if (s->in[0]->count)
        memcpy(s->out[0]->data, s->in[0]->data, (size_t)s->in[0]->count * sizeof(float));
    return OCT_OK;
}

const oct_op oct_op_zip_map = {
    OCT_SCHEMA("ZipMap", ML, 1, 1, 1, 1, 1),
    .infer = zip_infer,
    .widens = true,
    .makes_maps = true,
    .prepare = zip_prepare,
    .run = zip_run,
};
