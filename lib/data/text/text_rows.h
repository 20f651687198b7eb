/* lib/data/text/text_rows.h -- the rows of a model's inputs for a text, by its tokenizer. Private to lib/data. */
#ifndef OCT_DATA_TEXT_ROWS_H
#define OCT_DATA_TEXT_ROWS_H

#include "data/readers/readers.h"
#include "data/text/tokenizer.h"

/* Fills the parts of the ids and of the token types; others are made by oct_token_complete. What is given already
 * stays. Texts are cut to the length that the steps or the model say. */
oct_status oct_text_rows(const oct_feed_ctx *ctx, size_t ids, oct_tokenizer *t, const oct_tokenizer_text *text,
                         oct_part *parts, oct_err *err);

#endif
