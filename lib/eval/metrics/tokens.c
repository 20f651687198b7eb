/* The tokens that logits predict: the ids of the input, shifted by one position. */
#include "eval/metrics/tokens.h"

#include "base/mem.h"

#include <string.h>

static bool fits(const oct_array *a, const int64_t *dims)
{
    return (a->dtype == OCT_S64 || a->dtype == OCT_S32) && a->rank == 2 && a->dims[0] == dims[0] &&
           a->dims[1] == dims[1];
}

/* How likely an input holds the ids; the smallest is the likeliest. */
typedef enum likelihood { DECODER_IDS, DECODER, INPUT_IDS, SAME_SYMBOL, ANY, OTHER } likelihood;

static bool names_other(const char *name)
{
    static const char *const words[] = { "mask", "position", "type", "segment", "length", "past" };
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* The symbol of the second dimension of a value; NULL: it has none. */
static const char *symbol_of(const oct_graph *g, int v)
{
    return v >= 0 && g->value[v].shape.rank >= 2 && g->value[v].shape.d[1].n < 0 ? g->value[v].shape.d[1].sym : NULL;
}

static likelihood likelihood_of(const oct_graph *g, const char *name)
{
    const char *at = symbol_of(g, oct_graph_find(g, name)), *out = symbol_of(g, g->output[0]);
    if (names_other(name))
        return OTHER;
    if (strcmp(name, "decoder_input_ids") == 0)
        return DECODER_IDS;
    if (strstr(name, "decoder"))
        return DECODER;
    return strcmp(name, "input_ids") == 0 ? INPUT_IDS : at && out && strcmp(at, out) == 0 ? SAME_SYMBOL : ANY;
}

/* The input that holds the ids. *ids is -1 if there is none: also where a decoder's ids have another shape than the
 * logits, which are then not about them. */
static oct_status find_ids(const oct_graph *g, const oct_input_desc *inputs, const oct_batch *b, const int64_t *dims,
                           bool asked, int *ids, bool *decoder, oct_err *err)
{
    likelihood best = OTHER;
    int second = -1;
    *ids = -1;
    for (size_t i = 0; i < b->n_tensors; i++) {
        const likelihood l = likelihood_of(g, inputs[i].name);
        const bool whole = b->tensors[i].dtype == OCT_S64 || b->tensors[i].dtype == OCT_S32;
        if (!whole || (l > DECODER && !fits(&b->tensors[i], dims)) || l == OTHER || l > best)
            continue;
        second = l == best ? (int)i : -1;
        *ids = l == best ? *ids : (int)i;
        best = l;
    }
    *decoder = best <= DECODER;
    if (*ids >= 0 && !fits(&b->tensors[*ids], dims))
        *ids = -1;
    if (*ids < 0 || second < 0)
        return OCT_OK;
    if (asked) {
        oct_fail(err, OCT_EUSAGE, "the logits may be about the tokens of input '%s' or of '%s'", inputs[*ids].name,
                 inputs[second].name);
        oct_hint(
            err,
            "perplexity takes an input named decoder_input_ids or input_ids, or the one whose length has the symbol of the logits' length");
        return OCT_EUSAGE;
    }
    *ids = -1;
    return OCT_OK;
}

static int find_mask(const oct_input_desc *inputs, const oct_batch *b, const char *name, const int64_t *dims)
{
    for (size_t i = 0; i < b->n_tensors; i++)
        if (strcmp(inputs[i].name, name) == 0 && fits(&b->tensors[i], dims))
            return (int)i;
    return -1;
}

static oct_status reserve(oct_tokens *t, size_t n, oct_err *err)
{
    if (n <= t->cap)
        return OCT_OK;
    oct_free(t->next);
    oct_free(t->made);
    t->next = oct_calloc(n, sizeof *t->next);
    t->made = oct_calloc(n, sizeof *t->made);
    t->cap = t->next && t->made ? n : 0;
    return t->cap ? OCT_OK : oct_nomem(err);
}

void oct_tokens_free(oct_tokens *t)
{
    oct_free(t->next);
    oct_free(t->made);
    oct_free(t->present);
    *t = (oct_tokens){ 0 };
}

/* Computes `next` from the ids of one row. */
static oct_status shift_row(const int64_t *ids, int64_t *next, int64_t length, int64_t words, oct_err *err)
{
    for (int64_t i = 0; i < length; i++) {
        const int64_t id = i + 1 < length ? ids[i + 1] : -1;
        if (id >= words) {
            oct_fail(err, OCT_EMALFORMED, "token %lld at position %lld, but the logits are of %lld", (long long)id,
                     (long long)i + 1, (long long)words);
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

oct_status oct_tokens_take(oct_tokens *t, const oct_graph *g, const oct_input_desc *inputs, const oct_batch *b,
                           int rank, const int64_t *dims, bool asked, oct_err *err)
{
    int ids = -1;
    bool decoder = false, beyond = false;
    t->length = 0;
    if (rank == 3)
        OCT_TRY(find_ids(g, inputs, b, dims, asked, &ids, &decoder, err));
    const int mask = ids >= 0 ? find_mask(inputs, b, decoder ? "decoder_attention_mask" : "attention_mask", dims) : -1;
    if (ids < 0 || dims[1] < 1)
        return OCT_OK;
    const size_t n = (size_t)(dims[0] * dims[1]);
    OCT_TRY(reserve(t, n, err));
    OCT_TRY(oct_array_convert(b->tensors[ids].dtype, b->tensors[ids].data, OCT_S64, t->made, n, err));
    for (size_t i = 0; i < n; i++)
        beyond |= t->made[i] >= dims[2];
    if (beyond && !asked)
        return OCT_OK;
    t->length = (size_t)dims[1];
    for (int64_t r = 0; r < dims[0]; r++)
        OCT_TRY(shift_row(t->made + r * dims[1], t->next + r * dims[1], dims[1], dims[2], err));
    if (mask >= 0) {
        OCT_TRY(oct_array_convert(b->tensors[mask].dtype, b->tensors[mask].data, OCT_S64, t->made, n, err));
        for (int64_t r = 0; r < dims[0]; r++)
            mask_row(t->made + r * dims[1], t->next + r * dims[1], dims[1]);
    }
    return OCT_OK;
}

oct_status oct_tokens_find_present(oct_tokens *t, const oct_input_desc *inputs, const oct_batch *b, int rank,
                                   const int64_t *dims, oct_err *err)
{
    int mask = rank == 3 ? find_mask(inputs, b, "decoder_attention_mask", dims) : -1;
    if (rank == 3 && mask < 0)
        mask = find_mask(inputs, b, "attention_mask", dims);
    t->n_present = 0;
    if (mask < 0)
        return OCT_OK;
    const size_t n = (size_t)(dims[0] * dims[1]);
    if (n > t->cap_present) {
        oct_free(t->present);
        t->present = oct_calloc(n, sizeof *t->present);
        t->cap_present = t->present ? n : 0;
    }
    if (n && !t->present)
        return oct_nomem(err);
    OCT_TRY(oct_array_convert(b->tensors[mask].dtype, b->tensors[mask].data, OCT_S64, t->present, n, err));
    t->n_present = n;
    return OCT_OK;
}
