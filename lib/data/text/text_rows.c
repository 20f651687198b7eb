/* lib/data/text/text_rows.c -- a text as rows of token ids and types. */
#include "data/text/text_rows.h"

#include "data/text/token_rows.h"

#include <string.h>

oct_status oct_text_rows(const oct_feed_ctx *ctx, size_t ids, oct_tokenizer *t, const oct_tokenizer_text *text,
                         oct_part *parts, oct_err *err)
{
    const int64_t *id, *type, most = oct_token_length(&ctx->inputs[ids], ctx->steps[ids].length);
    size_t n;
    OCT_TRY(oct_tokenizer_encode(t, text, (size_t)most, &id, &type, &n, err));
    for (size_t i = 0; i < ctx->n; i++) {
        oct_part *part = &parts[i];
        if ((i != ids && !oct_token_types(ctx, i)) || part->kind != OCT_PART_NONE)
            continue;
        OCT_TRY(oct_token_row(ctx, ids, i, (int64_t)n, part, err));
        if (n)
            memcpy(part->array.data, i == ids ? id : type, n * sizeof *id);
        if (i == ids)
            part->pad_id = oct_tokenizer_pad(t);
    }
    return OCT_OK;
}
