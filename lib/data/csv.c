/* lib/data/csv.c -- cutting comma-separated text into fields. */
#include "data/csv.h"

#include <string.h>

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

oct_status oct_csv_line(const char *text, size_t size, size_t *at, size_t *line, oct_arena *arena,
                        char *fields[OCT_CSV_FIELDS], int *n, oct_err *err)
{
    *n = 0;
    ++*line;
    if (*at == 0 && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        *at = 3;
    size_t i = *at;
    for (;;) {
        size_t start = i;
        if (!field_end(text, size, &i))
            return oct_fail(err, OCT_EMALFORMED, "line %zu: a quote that does not close", *line);
        if (memchr(text + start, 0, i - start))
            return oct_fail(err, OCT_EMALFORMED, "line %zu: not text", *line);
        if (*n == OCT_CSV_FIELDS)
            return oct_fail(err, OCT_EMALFORMED, "line %zu: more than %d fields", *line, OCT_CSV_FIELDS);
        if (!(fields[*n] = copy(arena, text + start, i - start)))
            return oct_nomem(err);
        ++*n;
        if (i >= size || text[i] == '\n')
            break;
        i++;
    }
    *at = i < size ? i + 1 : size;
    if (*n == 1 && fields[0][0] == 0)
        *n = 0;
    return OCT_OK;
}
