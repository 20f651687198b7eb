/* lib/data/readers/read_csv.c -- reader: CSV with a header line; column `file` (or one per input, named as it) and
 * `label`; or a table of values (value_table.h) or texts (texts_table.h). */
#include "data/arrays/csv.h"
#include "data/readers/list.h"
#include "data/readers/texts_table.h"
#include "data/readers/value_table.h"

#include <string.h>

typedef struct columns {
    int label;
    int *input; /* column of each input, then of each extra one; -1: there is none of an extra one */
} columns;

static oct_status find_columns(const oct_feed_ctx *ctx, const oct_csv *c, columns *at, oct_err *err)
{
    at->label = oct_csv_column(c, "label");
    for (size_t i = 0; i < ctx->n; i++) {
        at->input[i] = oct_csv_column(c, ctx->inputs[i].name);
        if (at->input[i] < 0 && ctx->n == 1)
            at->input[i] = oct_csv_column(c, "file");
        if (at->input[i] < 0) {
            if (ctx->n == 1)
                oct_csv_fault(c, err, "no column 'file'");
            else
                oct_csv_fault(c, err, "no column for input '%.200s'", ctx->inputs[i].name);
            const oct_input_desc *in = &ctx->inputs[0];
            if (ctx->n == 1 && in->rank == 2 && in->dims[1] > 1)
                oct_hint(
                    err,
                    "a table for input '%.200s' has a line of names, then %lld numbers and perhaps a label between "
                    "commas, and this one has %d column%s; a list of files has the column 'file'",
                    in->name, (long long)in->dims[1], c->columns, c->columns == 1 ? "" : "s");
            else
                oct_hint(err, "the first line names the columns: file,label (paths are relative to the CSV)");
            return OCT_EMALFORMED;
        }
    }
    for (size_t i = 0; i < ctx->n_extra; i++)
        at->input[ctx->n + i] = oct_csv_column(c, ctx->extra[i].name);
    return OCT_OK;
}

/* A path relative to the folder of the CSV, which takes `dir` bytes including its slash. */
static char *join(oct_arena *a, const char *csv, size_t dir, const char *path)
{
    return path[0] == '/' ? oct_arena_strdup(a, path) : oct_arena_printf(a, "%.*s%s", (int)dir, csv, path);
}

static oct_status read_row(oct_list *l, const columns *at, const oct_csv *c, size_t dir, oct_err *err)
{
    oct_entry *e = NULL;
    for (size_t i = 0; i < l->n_all; i++) {
        if (at->input[i] < 0)
            continue;
        const char *file = c->field[at->input[i]];
        if (!*file)
            return oct_csv_fault(c, err, "no file name");
        char *path = join(l->arena, c->path, dir, file);
        if (!path || (!e && !(e = oct_list_add(l, path))))
            return oct_nomem(err);
        e->paths[i] = path;
    }
    return at->label >= 0 && e ? oct_csv_label(c, at->label, &e->label, err) : OCT_OK;
}

static oct_status read_rows(oct_list *l, const oct_feed_ctx *ctx, oct_csv *c, oct_err *err)
{
    const char *slash = strrchr(c->path, '/');
    const size_t dir = slash ? (size_t)(slash + 1 - c->path) : 0;
    columns at = { .input = oct_arena_calloc(l->arena, ctx->n + ctx->n_extra + 1, sizeof *at.input) };
    if (!at.input)
        return oct_nomem(err);
    OCT_TRY(find_columns(ctx, c, &at, err));
    for (;;) {
        bool end;
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            return OCT_OK;
        OCT_TRY(read_row(l, &at, c, dir, err));
    }
}

/* A list of files, or a table of values or texts. */
typedef struct csv {
    const oct_reader *as;
    void *self;
} csv;

/* The reader's functions for a list. */
static const oct_reader list = {
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .stamp = oct_list_stamp,
    .close = oct_list_close,
};

static void csv_close(void *self)
{
    csv *r = self;
    if (r && r->self)
        r->as->close(r->self);
    oct_free(r);
}

static oct_status open_as(csv *r, const oct_feed_ctx *ctx, oct_csv *c, oct_list *l, oct_err *err)
{
    if (oct_table_holds_texts(ctx)) {
        oct_list_close(l);
        r->as = &oct_read_texts;
        return oct_texts_open(ctx, c, &r->self, err);
    }
    if (oct_table_holds_values(ctx, c)) {
        oct_list_close(l);
        r->as = &oct_read_table;
        return oct_table_open(ctx, c, &r->self, err);
    }
    r->as = &list;
    r->self = l;
    return read_rows(l, ctx, c, err);
}

static oct_status csv_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    oct_csv c = { .text = NULL };
    csv *r = oct_calloc(1, sizeof *r);
    oct_arena *head = oct_arena_create(); /* the names of the columns, where the rows go elsewhere */
    oct_list *l = r && head ? oct_list_create(ctx) : NULL;
    oct_status s = l ? oct_csv_open(&c, path, head, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = open_as(r, ctx, &c, l, err);
    else if (l)
        oct_list_close(l);
    oct_csv_close(&c);
    if (head)
        oct_arena_destroy(head);
    if (s == OCT_OK)
        *self = r;
    else
        csv_close(r);
    return s;
}

static int64_t csv_count(void *self)
{
    const csv *r = self;
    return r->as->count(r->self);
}

static oct_status csv_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    const csv *r = self;
    return r->as->next(r->self, want, item, end, err);
}

static oct_status csv_rewind(void *self, oct_err *err)
{
    const csv *r = self;
    return r->as->rewind(r->self, err);
}

static uint64_t csv_stamp(void *self, uint64_t h)
{
    const csv *r = self;
    return r->as->stamp ? r->as->stamp(r->self, h) : h;
}

static bool csv_claims(const char *path, bool is_folder)
{
    return oct_has_suffix(path, ".csv") && !is_folder;
}

/* A CSV with columns file and label, paths relative to it, or one of values or texts. */
const oct_reader oct_read_csv = {
    .claims = csv_claims,
    .open = csv_open,
    .count = csv_count,
    .next = csv_next,
    .rewind = csv_rewind,
    .stamp = csv_stamp,
    .close = csv_close,
};
