/* lib/data/readers/texts_table.c -- a CSV of texts, which a tokenizer makes ids of. */
#include "data/readers/texts_table.h"

#include "data/readers/csv_rows.h"
#include "data/text/text_rows.h"
#include "data/text/token_rows.h"

#include <string.h>

typedef struct texts {
    oct_csv_rows rows;
    size_t ids; /* the input that takes them */
    oct_tokenizer *tokenizer;
    int text, pair; /* columns; pair -1: none */
} texts;

bool oct_table_holds_texts(const oct_feed_ctx *ctx)
{
    oct_err ignored = OCT_ERR_INIT;
    size_t ids;
    return oct_token_input(ctx, &ids, &ignored) == OCT_OK && *ctx->steps[ids].tokenizer;
}

static void texts_close(void *self)
{
    if (self)
        oct_tokenizer_close(((texts *)self)->tokenizer);
    oct_csv_rows_close(self);
}

static oct_status open_rows(texts *t, oct_csv *c, oct_err *err)
{
    const oct_feed_ctx *ctx = t->rows.ctx;
    OCT_TRY_WITHIN(oct_token_input(ctx, &t->ids, err), err, "%s", t->rows.path);
    OCT_TRY(oct_tokenizer_open(ctx->steps[t->ids].tokenizer, &t->tokenizer, err));
    t->text = oct_csv_column(c, "text");
    t->pair = oct_csv_column(c, "text_pair");
    if (t->text < 0) {
        oct_csv_fault(c, err, "no column 'text' for the tokenizer");
        oct_hint(err, "the first line names the columns: text,label, or text,text_pair,label");
        return OCT_EMALFORMED;
    }
    return oct_csv_rows_read(&t->rows, c, err);
}

static oct_status encode(const void *self, char *const *field, oct_part *parts, oct_err *err)
{
    const texts *t = self;
    const char *text = field[t->text], *pair = t->pair >= 0 ? field[t->pair] : NULL;
    const oct_tokenizer_text both = { text, pair, strlen(text), pair ? strlen(pair) : 0 };
    OCT_TRY(oct_text_rows(t->rows.ctx, t->ids, t->tokenizer, &both, parts, err));
    return oct_token_complete(t->rows.ctx, t->ids, parts, err);
}

oct_status oct_texts_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err)
{
    oct_csv_rows *rows;
    OCT_TRY(oct_csv_rows_create(ctx, c, sizeof(texts), &rows, err));
    rows->fill = encode;
    const oct_status s = open_rows((texts *)rows, c, err);
    if (s == OCT_OK)
        *self = rows;
    else
        texts_close(rows);
    return s;
}

const oct_reader oct_read_texts = {
    .count = oct_csv_rows_count,
    .next = oct_csv_rows_next,
    .rewind = oct_csv_rows_rewind,
    .close = texts_close,
};
