/* lib/data/text/token_rows.h -- the inputs of a model of token ids for one text. Private to lib/data.
 *
 * The ids go to the input `input_ids`, or to the only one that has none of these other names. Inputs that are absent
 * from the data are generated: attention_mask and input_mask are 1 for each token, token_type_ids and segment_ids 0,
 * position_ids 0, 1, 2 and so on. A text is padded to its length with the id of pad-id=, with 0 in masks and types, and
 * with the next numbers in generated positions. Arrays of token ids (.npy, .npz, a folder of INPUT.npy) may leave the
 * same inputs out. */
#ifndef OCT_DATA_TOKEN_ROWS_H
#define OCT_DATA_TOKEN_ROWS_H

#include "data/readers/readers.h"

#define OCT_TOKENIZER_HINT \
    "tokenizer=tokenizer.json in --preprocess makes ids of text (in .jsonl, of \"text\"); without, a line holds ids as whole numbers, or as a JSON object with a list for each input"

/* Finds the input of the ids. OCT_EUNSUPPORTED if none or several are possible, or if it is not [samples, tokens]. */
oct_status oct_token_input(const oct_feed_ctx *ctx, size_t *at, oct_err *err);

/* A row for s64[n] of input i, to be filled by the caller: owned by the part. OCT_ENOMEM. */
oct_status oct_token_row(const oct_feed_ctx *ctx, size_t ids, size_t i, int64_t n, oct_part *part, oct_err *err);
/* Whether input i takes the number of the text that each token belongs to. */
bool oct_token_types(const oct_feed_ctx *ctx, size_t i);
/* Generates the rows that are missing in parts. OCT_EMALFORMED: there are no tokens, a row has not the length of the
 * ids, or an input cannot be generated. */
oct_status oct_token_complete(const oct_feed_ctx *ctx, size_t ids, oct_part *parts, oct_err *err);

/* Whether input i may have no array, because it follows from the ids: *ids is their input. */
bool oct_token_follows(const oct_feed_ctx *ctx, size_t i, size_t *ids);
/* That array beside ids [rows, tokens]. past: how many tokens a cache holds, which masks cover and after which
 * positions go on. OCT_EMALFORMED: the input takes another shape. */
oct_status oct_token_follow(const oct_input_desc *in, const oct_array *ids, int64_t past, oct_array *out, oct_err *err);
/* What it holds, for messages. */
const char *oct_token_contents(const char *input);

/* Number of tokens in a sample: length=, else the number that the model fixes; 0: any. */
int64_t oct_token_length(const oct_input_desc *in, int length);
/* The row of a part, cut or padded to its length, owned. *setup: a preprocessing step is missing, and the sample is not
 * at fault. */
oct_status oct_token_fit(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, oct_array *out,
                         bool *setup, oct_err *err);

#endif
