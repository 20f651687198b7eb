/* lib/data/readers/texts_table.c -- a CSV of texts, which a tokenizer makes ids of. */
#include "data/readers/texts_table.h"

#include "data/text/text_rows.h"
#include "data/text/token_rows.h"

#include <string.h>

typedef struct row {
    const char *text, *pair; /* pair NULL: none */
    int64_t label;
    size_t line;
} row;

typedef struct texts {
    oct_arena *arena;
    const oct_feed_ctx *ctx;
    char *path;
    size_t ids; /* the input that takes them */
    oct_tokenizer *tokenizer;
    row *v;
    size_t n, cap, at;
} texts;

bool oct_table_holds_texts(const oct_feed_ctx *ctx)
{
    oct_err ignored = OCT_ERR_INIT;
    size_t ids;
    return oct_token_input(ctx, &ids, &ignored) == OCT_OK && *ctx->steps[ids].tokenizer;
}

static void texts_close(void *self)
{
    texts *t = self;
    if (!t)
        return;
    oct_tokenizer_close(t->tokenizer);
    oct_arena_destroy(t->arena);
}

static oct_status read_rows(texts *t, oct_csv *c, oct_err *err)
{
    const int text = oct_csv_column(c, "text"), pair = oct_csv_column(c, "text_pair"),
              label = oct_csv_column(c, "label");
    if (text < 0) {
        oct_csv_fault(c, err, "no column 'text' for the tokenizer");
        oct_hint(err, "the first line names the columns: text,label, or text,text_pair,label");
        return OCT_EMALFORMED;
    }
    c->arena = t->arena; /* the rows stay */
    for (bool end;; t->n++) {
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            return OCT_OK;
        if (!OCT_GROW(t->arena, t->v, t->n, t->cap))
            return oct_nomem(err);
        row *r = &t->v[t->n];
        *r = (row){ c->field[text], pair >= 0 ? c->field[pair] : NULL, -1, c->line };
        if (label >= 0)
            OCT_TRY(oct_csv_label(c, label, &r->label, err));
    }
}

static oct_status open_rows(texts *t, oct_csv *c, oct_err *err)
{
    if (!(t->path = oct_arena_strdup(t->arena, c->path)))
        return oct_nomem(err);
    OCT_TRY_WITHIN(oct_token_input(t->ctx, &t->ids, err), err, "%s", t->path);
    OCT_TRY(oct_tokenizer_open(t->ctx->steps[t->ids].tokenizer, &t->tokenizer, err));
    return read_rows(t, c, err);
}

oct_status oct_texts_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    texts *t = a ? oct_arena_calloc(a, 1, sizeof *t) : NULL;
    if (!t) {
        if (a)
            oct_arena_destroy(a);
        return oct_nomem(err);
    }
    t->arena = a;
    t->ctx = ctx;
    const oct_status s = open_rows(t, c, err);
    if (s == OCT_OK)
        *self = t;
    else
        texts_close(t);
    return s;
}

static int64_t texts_count(void *self)
{
    return (int64_t)((texts *)self)->n;
}

static oct_status encode(const texts *t, const row *r, oct_part *parts, oct_err *err)
{
    const oct_tokenizer_text text = { r->text, r->pair, strlen(r->text), r->pair ? strlen(r->pair) : 0 };
    OCT_TRY(oct_text_rows(t->ctx, t->ids, t->tokenizer, &text, parts, err));
    return oct_token_complete(t->ctx, t->ids, parts, err);
}

static oct_status texts_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    texts *t = self;
    *end = t->at >= t->n;
    if (*end)
        return OCT_OK;
    const row *r = &t->v[t->at++];
    if (!(item->name = oct_strprintf("%s:%zu", t->path, r->line)))
        return oct_nomem(err);
    item->label = r->label;
    const oct_status s = want ? encode(t, r, item->parts, err) : OCT_OK;
    if (s != OCT_OK)
        oct_within(err, "%s", item->name);
    return s;
}

static oct_status texts_rewind(void *self, oct_err *err)
{
    ((texts *)self)->at = 0;
    return OCT_OK;
}

const oct_reader oct_read_texts = {
    .count = texts_count,
    .next = texts_next,
    .rewind = texts_rewind,
    .close = texts_close,
};
