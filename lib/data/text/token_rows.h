/* lib/data/text/token_rows.h -- what the inputs of a model of token ids hold for one text. Private to lib/data.
 *
 * The ids go to the input `input_ids`, or to the only one that has none of these other names. Where the data say
 * nothing of them, attention_mask and input_mask are 1 for each token, token_type_ids and segment_ids 0, position_ids
 * 0, 1, 2 and so on. What fills a text up to its length is the id of pad-id=, 0 in the masks and types, and in
 * positions that were made the next ones. */
#ifndef OCT_DATA_TOKEN_ROWS_H
#define OCT_DATA_TOKEN_ROWS_H

#include "data/readers/readers.h"

#define OCT_TOKENIZER_HINT \
    "the model's tokenizer makes ids of text; a line holds them as whole numbers, or as a JSON object with a list for each input"

/* Finds the input of the ids. OCT_EUNSUPPORTED when no input, or more than one, can be meant, or it is not
 * [samples, tokens]. */
oct_status oct_token_input(const oct_feed_ctx *ctx, size_t *at, oct_err *err);
/* Whether an input is called so; what follows a colon does not count (input_ids:0). */
bool oct_token_named(const char *input, const char *name);

/* A row for s64[n] of input i, to be filled by the caller: owned by the part. OCT_ENOMEM. */
oct_status oct_token_row(const oct_feed_ctx *ctx, size_t ids, size_t i, int64_t n, oct_part *part, oct_err *err);
/* Makes the rows that parts has not. OCT_EMALFORMED: no tokens, a row that is not as long as that of the ids, an input
 * that nothing is known of. */
oct_status oct_token_complete(const oct_feed_ctx *ctx, size_t ids, oct_part *parts, oct_err *err);

/* Tokens of a sample: those of length=, else as many as the model fixes; 0: any number. */
int64_t oct_token_length(const oct_input_desc *in, int length);
/* The row of a part, cut or filled up to its length, owned. *setup: a step is missing, and no sample is at fault. */
oct_status oct_token_fit(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, oct_array *out,
                         bool *setup, oct_err *err);

#endif
