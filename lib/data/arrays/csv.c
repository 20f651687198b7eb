/* lib/data/arrays/csv.c -- cutting comma-separated text into fields. */
#include "data/arrays/csv.h"

#include "base/io.h"
#include "base/words.h"
#include "data/readers/readers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 1 << 30 };

/* The end of a field that starts at i, quotes included. False when its quotes do not close. */
static bool field_end(const char *t, size_t size, size_t *i)
{
    if (*i < size && t[*i] == '"') {
        for (++*i;; ++*i) {
            if (*i >= size)
                return false;
            if (t[*i] != '"')
                continue;
            if (*i + 1 < size && t[*i + 1] == '"')
                ++*i;
            else
                break;
        }
        ++*i;
    }
    while (*i < size && t[*i] != ',' && t[*i] != '\n')
        ++*i;
    return true;
}

/* Copies a field without its quotes and the carriage return of a line end. */
static char *copy(oct_arena *arena, const char *t, size_t n)
{
    if (n && t[n - 1] == '\r')
        n--;
    char *out = oct_arena_alloc(arena, n + 1);
    if (!out)
        return NULL;
    size_t k = 0;
    bool quoted = n >= 2 && t[0] == '"' && t[n - 1] == '"';
    for (size_t i = quoted; i < n - quoted; i++) {
        out[k++] = t[i];
        if (quoted && t[i] == '"' && i + 1 < n - 1 && t[i + 1] == '"')
            i++;
    }
    out[k] = 0;
    return out;
}

/* Cuts one line into fields. n is 0 for an empty one. */
static oct_status read_line(oct_csv *c, oct_err *err)
{
    const char *text = c->text;
    size_t i = c->at;
    c->n = 0;
    c->line = ++c->next_line;
    for (;;) {
        const size_t start = i;
        if (!field_end(text, c->size, &i))
            return oct_csv_fault(c, err, "a quote that does not close");
        if (memchr(text + start, 0, i - start))
            return oct_csv_fault(c, err, "not text");
        if (c->n == OCT_CSV_FIELDS)
            return oct_csv_fault(c, err, "more than %d fields", OCT_CSV_FIELDS);
        if (!(c->field[c->n++] = copy(c->arena, text + start, i - start)))
            return oct_nomem(err);
        for (size_t k = start; k < i; k++)
            c->next_line += text[k] == '\n';
        if (i >= c->size || text[i] == '\n')
            break;
        i++;
    }
    c->at = i < c->size ? i + 1 : c->size;
    if (c->n == 1 && !*c->field[0])
        c->n = 0;
    return OCT_OK;
}

/* The next line that is not empty; n is 0 at the end. */
static oct_status next_line(oct_csv *c, oct_err *err)
{
    c->n = 0;
    while (c->n == 0 && c->at < c->size)
        OCT_TRY(read_line(c, err));
    return OCT_OK;
}

oct_status oct_csv_open(oct_csv *c, const char *path, oct_arena *arena, oct_err *err)
{
    *c = (oct_csv){ .path = path, .arena = arena };
    OCT_TRY(oct_read_all(path, MOST_TEXT, &c->text, &c->size, err));
    if (c->size >= 3 && memcmp(c->text, "\xef\xbb\xbf", 3) == 0)
        c->at = 3;
    oct_status s = next_line(c, err);
    if (s == OCT_OK && c->n == 0)
        s = oct_fail(err, OCT_EMALFORMED, "%s: empty, expected a line with the names of the columns", path);
    c->columns = c->n;
    if (s != OCT_OK)
        oct_csv_close(c);
    return s;
}

void oct_csv_close(oct_csv *c)
{
    oct_free(c->text);
    c->text = NULL;
}

int oct_csv_column(const oct_csv *c, const char *name)
{
    int i = c->columns;
    while (--i >= 0 && strcmp(c->field[i], name) != 0)
        ;
    return i;
}

oct_status oct_csv_row(oct_csv *c, bool *end, oct_err *err)
{
    OCT_TRY(next_line(c, err));
    *end = c->n == 0;
    return *end || c->n >= c->columns ? OCT_OK
                                      : oct_csv_fault(c, err, "%d fields, the header has %d", c->n, c->columns);
}

/* ---- fields ---- */

oct_status oct_csv_fault(const oct_csv *c, oct_err *err, const char *fmt, ...)
{
    char reason[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return oct_fail(err, OCT_EMALFORMED, "%s:%zu: %s", c->path, c->line, reason);
}

oct_status oct_csv_number(const oct_csv *c, int field, const char *what, double *v, oct_err *err)
{
    const char *text = c->field[field];
    return oct_word_number((oct_word){ text, strlen(text) }, v)
               ? OCT_OK
               : oct_csv_fault(c, err, "%s '%.40s' is no number", what, text);
}

oct_status oct_csv_whole(const oct_csv *c, int field, const char *what, double most, int64_t *v, oct_err *err)
{
    double x;
    OCT_TRY(oct_csv_number(c, field, what, &x, err));
    if (x < 0 || x > most || x != floor(x))
        return oct_csv_fault(c, err, "%s '%.40s' is no whole number from 0 to %g", what, c->field[field], most);
    *v = (int64_t)x;
    return OCT_OK;
}

oct_status oct_csv_label(const oct_csv *c, int field, int64_t *label, oct_err *err)
{
    if (!*c->field[field] || oct_label_parse(c->field[field], label))
        return OCT_OK;
    oct_csv_fault(c, err, "label '%.40s' is not a class number", c->field[field]);
    oct_hint(err, OCT_LABEL_HINT);
    return OCT_EMALFORMED;
}
