/* The tokens that logits predict: the ids of the input, shifted by one position. */
#include "eval/tokens.h"

#include "base/mem.h"

#include <string.h>

static bool fits(const oct_array *a, const int64_t *dims)
{
    return (a->dtype == OCT_S64 || a->dtype == OCT_S32) && a->rank == 2 && a->dims[0] == dims[0] && a->dims[1] == dims[1];
}

/* The input of that name; else, if `any` is true, the first that fits; -1: there is none. */
static int find_input(const oct_input_desc *inputs, const oct_batch *b, const char *name, bool any, const int64_t *dims)
{
    int found = -1;
    for (size_t i = b->n_tensors; i-- > 0;)
        if (fits(&b->tensors[i], dims) && (any || strcmp(inputs[i].name, name) == 0))
            found = (int)i;
    for (size_t i = 0; i < b->n_tensors && any; i++)
        if (fits(&b->tensors[i], dims) && strcmp(inputs[i].name, name) == 0)
            found = (int)i;
    return found;
}

static oct_status reserve(oct_tokens *t, size_t n, oct_err *err)
{
    if (n <= t->cap)
        return OCT_OK;
    oct_tokens_free(t);
    t->next = oct_calloc(n, sizeof *t->next);
    t->made = oct_calloc(n, sizeof *t->made);
    t->cap = t->next && t->made ? n : 0;
    return t->cap ? OCT_OK : oct_nomem(err);
}

void oct_tokens_free(oct_tokens *t)
{
    oct_free(t->next);
    oct_free(t->made);
    *t = (oct_tokens){ 0 };
}

/* Computes `next` from the ids of one row. */
static oct_status shift_row(const int64_t *ids, int64_t *next, int64_t length, int64_t words, oct_err *err)
{
    for (int64_t i = 0; i < length; i++) {
        const int64_t id = i + 1 < length ? ids[i + 1] : -1;
        if (id >= words) {
            oct_fail(err, OCT_EMALFORMED, "token %lld at position %lld, but the logits are of %lld", (long long)id, (long long)i + 1, (long long)words);
            oct_hint(err, "perplexity is for models whose first output predicts the next token");
            return OCT_EMALFORMED;
        }
        next[i] = id < 0 ? -1 : id;
    }
    return OCT_OK;
}

static void mask_row(const int64_t *mask, int64_t *next, int64_t length)
{
    for (int64_t i = 0; i + 1 < length; i++)
        next[i] = mask[i] && mask[i + 1] ? next[i] : -1;
}

oct_status oct_tokens_take(oct_tokens *t, const oct_input_desc *inputs, const oct_batch *b, int rank, const int64_t *dims, oct_err *err)
{
    t->length = 0;
    const int ids = rank == 3 ? find_input(inputs, b, "input_ids", true, dims) : -1;
    const int mask = ids >= 0 ? find_input(inputs, b, "attention_mask", false, dims) : -1;
    if (ids < 0 || dims[1] < 1)
        return OCT_OK;
    const size_t n = (size_t)(dims[0] * dims[1]);
    OCT_TRY(reserve(t, n, err));
    t->length = (size_t)dims[1];
    OCT_TRY(oct_array_convert(b->tensors[ids].dtype, b->tensors[ids].data, OCT_S64, t->made, n, err));
    for (int64_t r = 0; r < dims[0]; r++)
        OCT_TRY(shift_row(t->made + r * dims[1], t->next + r * dims[1], dims[1], dims[2], err));
    if (mask >= 0) {
        OCT_TRY(oct_array_convert(b->tensors[mask].dtype, b->tensors[mask].data, OCT_S64, t->made, n, err));
        for (int64_t r = 0; r < dims[0]; r++)
            mask_row(t->made + r * dims[1], t->next + r * dims[1], dims[1]);
    }
    return OCT_OK;
}
