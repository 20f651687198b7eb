#include "data/readers/value_table.h"

#include "base/words.h"
#include "data/readers/csv_rows.h"

#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct table {
    oct_csv_rows rows;
    int *from, *n; /* of each input: its first column, and how many */
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

/* A field for an input: a text, a whole number or a real number. */
static oct_status take_field(oct_interned *texts, const oct_input_desc *in, const char *field, oct_array *a, int k,
                             oct_err *err)
{
    double v;
    if (a->dtype == OCT_STRING)
        return oct_intern(texts, field, strlen(field), (oct_str *)a->data + k, err);
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

static oct_status fill(const void *self, char *const *field, oct_part *parts, oct_err *err)
{
    const table *t = self;
    const oct_feed_ctx *ctx = t->rows.ctx;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < ctx->n && s == OCT_OK; i++) {
        const oct_input_desc *in = &ctx->inputs[i];
        const oct_dtype type = in->dtype == OCT_STRING                                      ? OCT_STRING
                               : oct_dtype_is_real(in->dtype) || in->dtype == OCT_UNDEFINED ? OCT_F64
                                                                                            : OCT_S64;
        parts[i].kind = OCT_PART_ROW;
        OCT_TRY(oct_array_create(&parts[i].array, type, in->rank - 1, (const int64_t[]){ t->n[i] }, err));
        for (int k = 0; k < t->n[i] && s == OCT_OK; k++)
            s = take_field(ctx->texts, in, field[t->from[i] + k], &parts[i].array, k, err);
    }
    return s;
}

oct_status oct_table_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err)
{
    oct_csv_rows *rows;
    OCT_TRY(oct_csv_rows_create(ctx, c, sizeof(table), &rows, err));
    table *t = (table *)rows;
    rows->fill = fill;
    t->from = oct_arena_calloc(rows->arena, ctx->n + 1, sizeof *t->from);
    t->n = oct_arena_calloc(rows->arena, ctx->n + 1, sizeof *t->n);
    for (size_t i = 0; i < ctx->n && t->from && t->n; i++)
        columns_of(ctx, c, i, &t->from[i], &t->n[i]);
    const oct_status s = t->from && t->n ? oct_csv_rows_read(rows, c, err) : oct_nomem(err);
    if (s == OCT_OK)
        *self = rows;
    else
        oct_csv_rows_close(rows);
    return s;
}

const oct_reader oct_read_table = {
    .count = oct_csv_rows_count,
    .next = oct_csv_rows_next,
    .rewind = oct_csv_rows_rewind,
    .close = oct_csv_rows_close,
};
