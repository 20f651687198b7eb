#include "data/text/json_values.h"

#include "base/json_tree.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* A value being read into an array, element by element. */
typedef struct taker {
    const oct_feed_ctx *ctx;
    const oct_input_desc *in;
    oct_array *a;
    int64_t at;
} taker;

/* The shape of nested lists, by their first elements. */
static oct_status shape_of(const oct_tree *t, const oct_input_desc *in, oct_array *a, oct_err *err)
{
    for (a->rank = 0; oct_tree_is_list(t); t = oct_tree_at(t, 0)) {
        if (a->rank == OCT_ARRAY_RANK)
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has lists of more than %d levels", in->name,
                            OCT_ARRAY_RANK);
        a->dims[a->rank++] = (int64_t)oct_tree_count(t);
        if (!oct_tree_count(t))
            break;
    }
    return OCT_OK;
}

static oct_status take_element(taker *k, const oct_tree *t, oct_err *err)
{
    const char *text = oct_tree_text(t);
    const int64_t i = k->at++;
    double v;
    bool yes = false;
    if (k->a->dtype == OCT_STRING)
        return text
                   ? oct_intern(k->ctx->texts, text, strlen(text), (oct_str *)k->a->data + i, err)
                   : oct_fail(err, OCT_EMALFORMED, "element %lld for input '%s' is no text", (long long)i, k->in->name);
    if (text || oct_tree_is_list(t) || oct_tree_is_object(t))
        return oct_fail(err, OCT_EMALFORMED, "element %lld for input '%s' is no number", (long long)i, k->in->name);
    if (!oct_tree_number(t, &v))
        v = oct_tree_bool(t, &yes) ? (double)yes : (double)NAN;
    if (k->a->dtype == OCT_F64) {
        ((double *)k->a->data)[i] = v;
        return OCT_OK;
    }
    if (!(fabs(v) <= 0x1p53) || v != floor(v))
        return oct_fail(err, OCT_EMALFORMED, "element %lld for input '%s' is no whole number", (long long)i,
                        k->in->name);
    ((int64_t *)k->a->data)[i] = (int64_t)v;
    return OCT_OK;
}

static oct_status take(taker *k, const oct_tree *t, int depth, oct_err *err)
{
    if (depth == k->a->rank)
        return take_element(k, t, err);
    if (!oct_tree_is_list(t) || (int64_t)oct_tree_count(t) != k->a->dims[depth])
        return oct_fail(err, OCT_EMALFORMED, "the lists for input '%s' differ in length", k->in->name);
    for (size_t i = 0; i < oct_tree_count(t); i++)
        OCT_TRY(take(k, oct_tree_at(t, i), depth + 1, err));
    return OCT_OK;
}

static bool is_single(const oct_input_desc *in)
{
    for (int d = 1; d < in->rank; d++)
        if (in->dims[d] != 1)
            return false;
    return in->rank > 0;
}

/* line: bytes of the text, of which every element takes some. */
static oct_status read_input(const oct_feed_ctx *ctx, const oct_input_desc *in, const oct_tree *t, size_t line,
                             oct_part *part, oct_err *err)
{
    const oct_dtype type = in->dtype == OCT_STRING                                      ? OCT_STRING
                           : oct_dtype_is_real(in->dtype) || in->dtype == OCT_UNDEFINED ? OCT_F64
                                                                                        : OCT_S64;
    oct_array shape = { .rank = 0 };
    if (!t)
        return oct_fail(err, OCT_EMALFORMED, "nothing for input '%s'", in->name);
    OCT_TRY(shape_of(t, in, &shape, err));
    int64_t count;
    if (!oct_count(shape.dims, shape.rank, &count) || (uint64_t)count > line)
        return oct_fail(err, OCT_EMALFORMED, "the lists for input '%s' differ in length", in->name);
    OCT_TRY(oct_array_create(&part->array, type, shape.rank, shape.dims, err));
    taker k = { ctx, in, &part->array, 0 };
    OCT_TRY(take(&k, t, 0, err));
    part->kind = in->rank >= 0 && shape.rank == in->rank ? OCT_PART_WHOLE : OCT_PART_ROW;
    for (int d = 1; shape.rank == 0 && is_single(in) && d < in->rank; d++)
        part->array.dims[part->array.rank++] = 1;
    return OCT_OK;
}

oct_status oct_json_values(const oct_feed_ctx *ctx, const char *t, size_t n, oct_item *item, oct_err *err)
{
    oct_tree *root;
    double label;
    OCT_TRY(oct_tree_parse(t, n, "JSON", &root, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; s == OCT_OK && i < ctx->n; i++)
        s = read_input(ctx, &ctx->inputs[i], oct_tree_member(root, ctx->inputs[i].name), n, &item->parts[i], err);
    if (oct_tree_number(oct_tree_member(root, "label"), &label) && label >= -1 && label <= 0x1p53 &&
        label == floor(label))
        item->label = (int64_t)label;
    oct_tree_free(root);
    return s;
}
