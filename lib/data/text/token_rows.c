/* lib/data/text/token_rows.c -- rows of token ids, and of the inputs beside them. */
#include "data/text/token_rows.h"

#include <string.h>

/* Inputs whose contents follow from the number of tokens. */
static const struct {
    const char *name;
    int64_t first, step; /* first, first + step, ... */
    oct_fill fill;
    const char *contents;
} made[] = {
    { "attention_mask", 1, 0, OCT_FILL_ZEROS, "ones" },  { "input_mask", 1, 0, OCT_FILL_ZEROS, "ones" },
    { "token_type_ids", 0, 0, OCT_FILL_ZEROS, "zeros" }, { "segment_ids", 0, 0, OCT_FILL_ZEROS, "zeros" },
    { "position_ids", 0, 1, OCT_FILL_COUNT, "counted" },
};

/* Whether an input has this name. What follows a colon is ignored (input_ids:0). */
static bool is_named(const char *input, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(input, name, n) == 0 && (input[n] == 0 || input[n] == ':');
}

static int made_as(const char *input)
{
    for (size_t i = 0; i < OCT_COUNT(made); i++)
        if (is_named(input, made[i].name))
            return (int)i;
    return -1;
}

bool oct_token_types(const oct_feed_ctx *ctx, size_t i)
{
    return is_named(ctx->inputs[i].name, "token_type_ids") || is_named(ctx->inputs[i].name, "segment_ids");
}

static oct_status check_rank(const oct_input_desc *in, oct_err *err)
{
    char text[96];
    if (in->rank < 0 || in->rank == 2)
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "holds token ids, for an input of [samples, tokens]; input '%s' is %s", in->name,
             oct_dims_text(text, in->rank, in->dims));
    oct_hint(err, "give other data as .npy or .npz");
    return OCT_EUNSUPPORTED;
}

oct_status oct_token_input(const oct_feed_ctx *ctx, size_t *at, oct_err *err)
{
    size_t others = 0;
    for (size_t i = 0; i < ctx->n; i++) {
        if (is_named(ctx->inputs[i].name, "input_ids")) {
            *at = i;
            return check_rank(&ctx->inputs[i], err);
        }
        if (made_as(ctx->inputs[i].name) < 0) {
            others++;
            *at = i;
        }
    }
    if (others == 1)
        return check_rank(&ctx->inputs[*at], err);
    oct_fail(err, OCT_EUNSUPPORTED,
             "holds token ids, for an input named input_ids or the only one; the model has %zu others", others);
    oct_hint(err,
             "give an .npz with one array per input; INPUT/value= gives an input a number, --state makes it a state");
    return OCT_EUNSUPPORTED;
}

oct_status oct_token_row(const oct_feed_ctx *ctx, size_t ids, size_t i, int64_t n, oct_part *part, oct_err *err)
{
    OCT_TRY(oct_array_create(&part->array, OCT_S64, 1, &n, err));
    part->kind = OCT_PART_ROW;
    part->fill = i == ids ? OCT_FILL_ID : OCT_FILL_ZEROS;
    part->length = ctx->steps[ids].length;
    part->pad_id = -1;
    return OCT_OK;
}

bool oct_token_follows(const oct_feed_ctx *ctx, size_t i, size_t *ids)
{
    return i < ctx->n && made_as(ctx->inputs[i].name) >= 0 && (ctx->inputs[i].rank < 0 || ctx->inputs[i].rank == 2) &&
           oct_token_input(ctx, ids, NULL) == OCT_OK;
}

const char *oct_token_contents(const char *input)
{
    return made[made_as(input)].contents;
}

oct_status oct_token_follow(const oct_input_desc *in, const oct_array *ids, int64_t past, oct_array *out, oct_err *err)
{
    const int as = made_as(in->name);
    const bool covers = made[as].first && past > 0;
    int64_t dims[2] = { ids->dims[0], ids->dims[1] };
    char have[96], want[96];
    if (ids->rank != 2 || (covers && __builtin_add_overflow(dims[1], past, &dims[1])))
        return oct_fail(err, OCT_EMALFORMED, "nothing for input '%s'", in->name);
    for (int d = 0; d < in->rank; d++)
        if (in->dims[d] >= 0 && in->dims[d] != dims[d])
            return oct_fail(err, OCT_EMALFORMED, "nothing for input '%s' of %s, and the token ids are %s", in->name,
                            oct_dims_text(want, in->rank, in->dims), oct_dims_text(have, 2, ids->dims));
    OCT_TRY(oct_array_create(out, in->dtype == OCT_UNDEFINED ? OCT_S64 : in->dtype, 2, dims, err));
    const int64_t first = made[as].first + (made[as].step ? past : 0), n = oct_array_count(out);
    const size_t size = n ? out->bytes / (size_t)n : 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t v = first + k % dims[1] * made[as].step;
        OCT_TRY(oct_array_convert(OCT_S64, &v, out->dtype, (char *)out->data + (size_t)k * size, 1, err));
    }
    return OCT_OK;
}

static oct_status make_row(const oct_feed_ctx *ctx, size_t ids, size_t i, int64_t n, oct_part *part, oct_err *err)
{
    const int as = made_as(ctx->inputs[i].name);
    if (as < 0) {
        oct_fail(err, OCT_EMALFORMED, "nothing for input '%s'", ctx->inputs[i].name);
        oct_hint(
            err,
            "lists have the names of the inputs; attention_mask, token_type_ids and position_ids are made where they are missing");
        return OCT_EMALFORMED;
    }
    OCT_TRY(oct_token_row(ctx, ids, i, n, part, err));
    part->fill = made[as].fill;
    int64_t *v = part->array.data;
    for (int64_t k = 0; k < n; k++)
        v[k] = made[as].first + k * made[as].step;
    return OCT_OK;
}

oct_status oct_token_complete(const oct_feed_ctx *ctx, size_t ids, oct_part *parts, oct_err *err)
{
    const int64_t n = parts[ids].kind == OCT_PART_NONE ? 0 : parts[ids].array.dims[0];
    if (parts[ids].kind == OCT_PART_NONE) {
        oct_fail(err, OCT_EMALFORMED, "no list of token ids for input '%s'", ctx->inputs[ids].name);
        oct_hint(err, OCT_TOKENIZER_HINT);
        return OCT_EMALFORMED;
    }
    if (n == 0)
        return oct_fail(err, OCT_EMALFORMED, "no tokens");
    for (size_t i = 0; i < ctx->n; i++)
        if (parts[i].kind == OCT_PART_NONE)
            OCT_TRY(make_row(ctx, ids, i, n, &parts[i], err));
        else if (parts[i].array.dims[0] != n)
            return oct_fail(err, OCT_EMALFORMED, "%lld token ids, and %lld numbers for input '%s'", (long long)n,
                            (long long)parts[i].array.dims[0], ctx->inputs[i].name);
    return OCT_OK;
}

int64_t oct_token_length(const oct_input_desc *in, int length)
{
    return length ? length : in->rank == 2 && in->dims[1] > 0 ? in->dims[1] : 0;
}

static oct_status check_length(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, int64_t n,
                               int64_t want, oct_err *err)
{
    const int64_t fixed = oct_token_length(in, 0);
    if (fixed && fixed != want) {
        oct_fail(err, OCT_EMALFORMED, "length=%d, input '%s' takes %lld tokens", part->length, in->name,
                 (long long)fixed);
        oct_hint(err, "leave length= out, or write length=%lld", (long long)fixed);
        return OCT_EMALFORMED;
    }
    if (n > want && !part->length) {
        oct_fail(err, OCT_EMALFORMED, "%lld tokens, input '%s' takes %lld", (long long)n, in->name, (long long)want);
        if (want == 1)
            oct_hint(err, "--generate N lets a decoder with a cache read texts token by token");
        else
            oct_hint(err, "length=%lld in --preprocess cuts longer texts", (long long)want);
        return OCT_EMALFORMED;
    }
    if (n < want && part->fill == OCT_FILL_ID && !steps->has_pad_id && part->pad_id < 0) {
        oct_fail(err, OCT_EMALFORMED, "%lld tokens, a sample for input '%s' has %lld", (long long)n, in->name,
                 (long long)want);
        oct_hint(err, "pad-id=N in --preprocess fills shorter texts up with that id, and attention_mask with zeros");
        return OCT_EMALFORMED;
    }
    return OCT_OK;
}

oct_status oct_token_fit(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, oct_array *out,
                         bool *setup, oct_err *err)
{
    const int64_t *from = part->array.data, n = part->array.dims[0], fixed = oct_token_length(in, part->length),
                  want = fixed ? fixed : n;
    *setup = true;
    OCT_TRY(check_length(in, steps, part, n, want, err));
    *setup = false;
    OCT_TRY(oct_array_create(out, OCT_S64, 1, &want, err));
    int64_t *to = out->data;
    const int64_t pad_id = steps->has_pad_id ? steps->pad_id : part->pad_id;
    for (int64_t k = 0; k < want; k++)
        to[k] = k < n ? from[k] : part->fill == OCT_FILL_ID ? pad_id : part->fill == OCT_FILL_COUNT ? to[k - 1] + 1 : 0;
    return OCT_OK;
}
