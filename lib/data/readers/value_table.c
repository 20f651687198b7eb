#include "data/readers/value_table.h"

#include "base/words.h"

#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct table {
    oct_arena *arena;
    const oct_feed_ctx *ctx;
    char *path;
    int *from, *n; /* of each input: its first column, and how many */
    char ***row;   /* [n_rows][columns] */
    int64_t *label;
    size_t *line;
    size_t n_rows, cap_rows, cap_labels, cap_lines, at;
} table;

/* ---- which columns ---- */

static bool is_single(const oct_input_desc *in)
{
    return in->rank == 1 || (in->rank == 2 && in->dims[1] == 1);
}

/* All columns but the label, for a single input; they must stand side by side. */
static bool takes_all(const oct_feed_ctx *ctx, const oct_csv *c, int *from, int *n)
{
    const int label = oct_csv_column(c, "label");
    const oct_input_desc *in = &ctx->inputs[0];
    *from = label == 0;
    *n = c->columns - (label >= 0);
    return ctx->n == 1 && in->rank == 2 && *n > 0 && (label <= 0 || label == c->columns - 1) &&
           (in->dims[1] == *n || (in->dims[1] < 0 && *n > 1)) && oct_csv_column(c, "file") < 0;
}

static bool columns_of(const oct_feed_ctx *ctx, const oct_csv *c, size_t i, int *from, int *n)
{
    *from = oct_csv_column(c, ctx->inputs[i].name);
    *n = 1;
    return *from >= 0 ? is_single(&ctx->inputs[i]) : takes_all(ctx, c, from, n);
}

/* Whether a field is a number, or nothing, which is NaN. */
static bool number_of(const char *text, double *v)
{
    *v = (double)NAN;
    return !*text || strcasecmp(text, "nan") == 0 || oct_word_number((oct_word){ text, strlen(text) }, v);
}

bool oct_table_holds_values(const oct_feed_ctx *ctx, const oct_csv *c)
{
    oct_csv first = *c; /* the rows are read again */
    oct_err ignored = OCT_ERR_INIT;
    bool end = true, values = ctx->n > 0;
    int from, n;
    double v;
    for (size_t i = 0; i < ctx->n && values; i++)
        values = columns_of(ctx, c, i, &from, &n);
    if (!values || oct_csv_row(&first, &end, &ignored) != OCT_OK || end)
        return values;
    for (size_t i = 0; i < ctx->n && values; i++) {
        columns_of(ctx, c, i, &from, &n);
        for (int k = 0; k < n && ctx->inputs[i].dtype != OCT_STRING; k++)
            values &= number_of(first.field[from + k], &v);
    }
    return values;
}

/* ---- opening ---- */

static void table_close(void *self)
{
    if (self)
        oct_arena_destroy(((table *)self)->arena);
}

static oct_status take_row(table *t, const oct_csv *c, int label, oct_err *err)
{
    if (!OCT_GROW(t->arena, t->row, t->n_rows, t->cap_rows) ||
        !OCT_GROW(t->arena, t->label, t->n_rows, t->cap_labels) ||
        !OCT_GROW(t->arena, t->line, t->n_rows, t->cap_lines))
        return oct_nomem(err);
    char **row = oct_arena_memdup(t->arena, c->field, (size_t)c->columns * sizeof *row);
    if (!row)
        return oct_nomem(err);
    t->row[t->n_rows] = row;
    t->line[t->n_rows] = c->line;
    t->label[t->n_rows] = -1;
    return label >= 0 ? oct_csv_label(c, label, &t->label[t->n_rows], err) : OCT_OK;
}

static oct_status read_rows(table *t, oct_csv *c, oct_err *err)
{
    const int label = oct_csv_column(c, "label");
    for (size_t i = 0; i < t->ctx->n; i++)
        columns_of(t->ctx, c, i, &t->from[i], &t->n[i]);
    c->arena = t->arena; /* the rows stay */
    for (bool end;; t->n_rows++) {
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            return OCT_OK;
        OCT_TRY(take_row(t, c, label, err));
    }
}

oct_status oct_table_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    table *t = a ? oct_arena_calloc(a, 1, sizeof *t) : NULL;
    if (!t) {
        if (a)
            oct_arena_destroy(a);
        return oct_nomem(err);
    }
    t->arena = a;
    t->ctx = ctx;
    t->path = oct_arena_strdup(a, c->path);
    t->from = oct_arena_calloc(a, ctx->n + 1, sizeof *t->from);
    t->n = oct_arena_calloc(a, ctx->n + 1, sizeof *t->n);
    const oct_status s = t->path && t->from && t->n ? read_rows(t, c, err) : oct_nomem(err);
    if (s == OCT_OK)
        *self = t;
    else
        table_close(t);
    return s;
}

/* ---- reading ---- */

static int64_t table_count(void *self)
{
    return (int64_t)((table *)self)->n_rows;
}

/* A field for an input: a text, a whole number or a real number. */
static oct_status take_field(const table *t, const oct_input_desc *in, const char *field, oct_array *a, int k,
                             oct_err *err)
{
    double v;
    if (a->dtype == OCT_STRING)
        return oct_intern(t->ctx->texts, field, strlen(field), (oct_str *)a->data + k, err);
    if (a->dtype == OCT_S64 && (strcasecmp(field, "true") == 0 || strcasecmp(field, "false") == 0)) {
        ((int64_t *)a->data)[k] = strcasecmp(field, "true") == 0;
        return OCT_OK;
    }
    if (!number_of(field, &v))
        return oct_fail(err, OCT_EMALFORMED, "'%.40s' for input '%s' is no number", field, in->name);
    if (a->dtype == OCT_F64) {
        ((double *)a->data)[k] = v;
        return OCT_OK;
    }
    if (!(fabs(v) <= 0x1p53) || v != floor(v))
        return oct_fail(err, OCT_EMALFORMED, "'%.40s' for input '%s' is no whole number", field, in->name);
    ((int64_t *)a->data)[k] = (int64_t)v;
    return OCT_OK;
}

static oct_status fill(const table *t, size_t i, oct_part *part, oct_err *err)
{
    const oct_input_desc *in = &t->ctx->inputs[i];
    const oct_dtype type = in->dtype == OCT_STRING                                      ? OCT_STRING
                           : oct_dtype_is_real(in->dtype) || in->dtype == OCT_UNDEFINED ? OCT_F64
                                                                                        : OCT_S64;
    oct_status s = OCT_OK;
    part->kind = OCT_PART_ROW;
    OCT_TRY(oct_array_create(&part->array, type, in->rank - 1, (const int64_t[]){ t->n[i] }, err));
    for (int k = 0; k < t->n[i] && s == OCT_OK; k++)
        s = take_field(t, in, t->row[t->at][t->from[i] + k], &part->array, k, err);
    return s;
}

static oct_status table_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    table *t = self;
    oct_status s = OCT_OK;
    *end = t->at >= t->n_rows;
    if (*end)
        return OCT_OK;
    if (!(item->name = oct_strprintf("%s:%zu", t->path, t->line[t->at])))
        return oct_nomem(err);
    item->label = t->label[t->at];
    for (size_t i = 0; i < t->ctx->n && want && s == OCT_OK; i++)
        s = fill(t, i, &item->parts[i], err);
    if (s != OCT_OK)
        oct_within(err, "%s", item->name);
    t->at++;
    return s;
}

static oct_status table_rewind(void *self, oct_err *err)
{
    ((table *)self)->at = 0;
    return OCT_OK;
}

const oct_reader oct_read_table = {
    .count = table_count,
    .next = table_next,
    .rewind = table_rewind,
    .close = table_close,
};
