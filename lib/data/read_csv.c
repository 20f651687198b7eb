/* lib/data/read_csv.c -- reader: CSV with a header line; column `file` (or one per input, named as it) and `label`. */
#include "data/csv.h"
#include "data/list.h"

#include "base/io.h"

#include <string.h>

enum { MAX_CSV = 1 << 30 };

typedef struct columns {
    int label, file;
    int *input; /* column of each input, -1 */
    int n;
} columns;

static int find_column(char *const *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i], name) == 0)
            return i;
    return -1;
}

static oct_status read_header(const oct_feed_ctx *ctx, char *const *fields, int n, columns *c, oct_err *err)
{
    c->n = n;
    c->label = find_column(fields, n, "label");
    c->file = find_column(fields, n, "file");
    for (size_t i = 0; i < ctx->n; i++) {
        c->input[i] = find_column(fields, n, ctx->inputs[i].name);
        if (c->input[i] < 0 && ctx->n == 1)
            c->input[i] = c->file;
        if (c->input[i] < 0) {
            if (ctx->n == 1)
                oct_fail(err, OCT_EMALFORMED, "line 1: no column 'file'");
            else
                oct_fail(err, OCT_EMALFORMED, "line 1: no column for input '%s'", ctx->inputs[i].name);
            oct_hint(err, "the first line names the columns: file,label (paths are relative to the CSV)");
            return OCT_EMALFORMED;
        }
    }
    return OCT_OK;
}

/* path relative to the CSV's folder, of `dir` bytes with its slash. */
static char *join(oct_arena *a, const char *csv, size_t dir, const char *path)
{
    return path[0] == '/' ? oct_arena_strdup(a, path) : oct_arena_printf(a, "%.*s%s", (int)dir, csv, path);
}

static oct_status read_row(oct_list *l, const columns *c, const char *csv, size_t dir, char *const *fields, int n,
                           size_t line, oct_err *err)
{
    if (n < c->n)
        return oct_fail(err, OCT_EMALFORMED, "line %zu: %d fields, the header has %d", line, n, c->n);
    oct_entry *e = NULL;
    for (size_t i = 0; i < l->n_inputs; i++) {
        const char *file = fields[c->input[i]];
        if (!*file)
            return oct_fail(err, OCT_EMALFORMED, "line %zu: no file name", line);
        char *path = join(l->arena, csv, dir, file);
        if (!path || (!e && !(e = oct_list_add(l, path))))
            return oct_nomem(err);
        e->paths[i] = path;
    }
    if (c->label >= 0 && fields[c->label][0] && !oct_label_parse(fields[c->label], &e->label)) {
        oct_fail(err, OCT_EMALFORMED, "line %zu: label '%.40s' is not a class number", line, fields[c->label]);
        oct_hint(err, OCT_LABEL_HINT);
        return OCT_EMALFORMED;
    }
    return OCT_OK;
}

static oct_status read_text(oct_list *l, const oct_feed_ctx *ctx, const char *path, const char *text, size_t size,
                            oct_err *err)
{
    char *fields[OCT_CSV_FIELDS];
    size_t at = 0, line = 0;
    const char *slash = strrchr(path, '/');
    const size_t dir = slash ? (size_t)(slash + 1 - path) : 0;
    columns c = { .input = oct_arena_calloc(l->arena, ctx->n + 1, sizeof *c.input) };
    if (!c.input)
        return oct_nomem(err);
    bool header = false;
    while (at < size) {
        int n;
        OCT_TRY(oct_csv_line(text, size, &at, &line, l->arena, fields, &n, err));
        if (n == 0)
            continue;
        if (header)
            OCT_TRY(read_row(l, &c, path, dir, fields, n, line, err));
        else
            OCT_TRY(read_header(ctx, fields, n, &c, err));
        header = true;
    }
    return header ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "empty, expected a line with the names of the columns");
}

static oct_status csv_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    char *text;
    size_t size;
    OCT_TRY(oct_read_all(path, MAX_CSV, &text, &size, err));
    oct_list *l = oct_list_create(ctx);
    oct_status s = l ? read_text(l, ctx, path, text, size, err) : oct_nomem(err);
    oct_free(text);
    if (s != OCT_OK) {
        oct_list_close(l);
        oct_within(err, "%s", path);
        return s;
    }
    *self = l;
    return OCT_OK;
}

static bool csv_claims(const char *path, bool is_folder)
{
    return oct_has_suffix(path, ".csv") && !is_folder;
}

/* A CSV with columns file and label, paths relative to it. */
const oct_reader oct_read_csv = {
    .claims = csv_claims,
    .open = csv_open,
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .stamp = oct_list_stamp,
    .close = oct_list_close,
};
