/* lib/data/readers/texts_table.h -- a CSV of texts for a tokenizer: a row is a sample. Private to lib/data. */
#ifndef OCT_DATA_TEXTS_TABLE_H
#define OCT_DATA_TEXTS_TABLE_H

#include "data/arrays/csv.h"
#include "data/readers/readers.h"

/* Whether a CSV holds texts: the steps of the ids name a tokenizer. */
bool oct_table_holds_texts(const oct_feed_ctx *ctx);

/* Takes the rows of a CSV after its header, whose columns are `text`, `text_pair` and `label`; *self is for the
 * functions of oct_read_texts. */
oct_status oct_texts_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err);

extern const oct_reader oct_read_texts;

#endif
