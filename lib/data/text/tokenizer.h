/* lib/data/text/tokenizer.h -- text to token ids, as the model's tokenizer.json says (the file of Hugging Face's
 * `tokenizers`): added tokens, normalizers, pre-tokenizers, the models WordPiece, BPE, Unigram and WordLevel, and the
 * special tokens around a text. Ids are those of that library. Private to lib/data.
 *
 * Unicode (normal forms, categories, graphemes) is utf8proc's, regular expressions are PCRE2's; without these two the
 * build refuses tokenizers by name. */
#ifndef OCT_DATA_TOKENIZER_H
#define OCT_DATA_TOKENIZER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct oct_tokenizer oct_tokenizer;

/* OCT_EIO, OCT_EMALFORMED; OCT_EUNSUPPORTED names the part that is not known here. */
oct_status oct_tokenizer_open(const char *path, oct_tokenizer **t, oct_err *err);
void oct_tokenizer_close(oct_tokenizer *t); /* NULL allowed */

/* A text and, unless NULL, its pair: UTF-8 of n bytes, which may hold NUL. */
typedef struct oct_tokenizer_text {
    const char *text, *pair;
    size_t n, n_pair;
} oct_tokenizer_text;

/* The ids of a text with its special tokens, and the number of the text that each belongs to (token types); borrowed
 * until the next call. most: what is longer is cut before the special tokens are added; 0: the length that the file
 * says, if it says one. Not thread-safe. OCT_EMALFORMED: not UTF-8. */
oct_status oct_tokenizer_encode(oct_tokenizer *t, const oct_tokenizer_text *in, size_t most, const int64_t **ids,
                                const int64_t **types, size_t *n, oct_err *err);

/* The id that fills short texts up: that of the file's padding, else of an added token [PAD] or <pad>; -1: none. */
int64_t oct_tokenizer_pad(const oct_tokenizer *t);

#endif
