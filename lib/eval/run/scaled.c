/* Lines have the form "AXIS F,F,... NAME". The name is last because it may contain spaces. */
#include "eval/run/scaled.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool fits_line(const char *name)
{
    size_t len;
    bool fits = *name;
    for (const char *c = name; *c; c += len) {
        const uint32_t code = oct_utf8_char(c, strlen(c), &len);
        fits &= code >= ' ' && (code != OCT_BAD_CHAR || len > 1);
    }
    return fits;
}

void oct_scaled_put(oct_buf *b, const oct_scaled_channels *s)
{
    if (!fits_line(s->name))
        return;
    oct_buf_printf(b, "%d ", s->axis);
    for (size_t c = 0; c < s->n; c++)
        oct_buf_printf(b, "%s%.9g", c ? "," : "", (double)s->factor[c]);
    oct_buf_printf(b, " %s\n", s->name);
}

static oct_status read_line(const char *at, size_t size, oct_arena *a, oct_scaled_channels *s, bool *good, oct_err *err)
{
    char *line = oct_arena_memdup(a, at, size + 1), *end;
    if (!line)
        return oct_nomem(err);
    line[size] = '\0';
    const long axis = strtol(line, &end, 10);
    *good = end > line && *end == ' ' && axis >= 0 && axis < 64;
    if (!*good)
        return OCT_OK;
    char *text = end + 1;
    size_t n = 1;
    for (const char *c = text; *c && *c != ' '; c++)
        n += *c == ',';
    float *factor = oct_arena_calloc(a, n, sizeof *factor);
    if (!factor)
        return oct_nomem(err);
    for (size_t c = 0; c < n && *good; c++) {
        factor[c] = strtof(text, &end);
        *good = end > text && isfinite(factor[c]) && factor[c] > 0 && *end == (c + 1 < n ? ',' : ' ');
        text = end + 1;
    }
    *good = *good && *text;
    *s = (oct_scaled_channels){ text, (int)axis, n, factor };
    return OCT_OK;
}

oct_status oct_scaled_read(const char *text, oct_arena *arena, oct_scaled_channels **list, size_t *n, oct_err *err)
{
    size_t lines = 0;
    *n = 0;
    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    if (!(*list = oct_arena_calloc(arena, lines + 1, sizeof **list)))
        return oct_nomem(err);
    for (const char *end; lines && (end = strchr(text, '\n')); text = end + 1) {
        bool good;
        OCT_TRY(read_line(text, (size_t)(end - text), arena, &(*list)[*n], &good, err));
        *n += good;
    }
    return OCT_OK;
}

const oct_scaled_channels *oct_scaled_find(const oct_scaled_channels *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

void oct_scaled_undo(const oct_scaled_channels *s, int rank, const int64_t *dims, bool again, float *x)
{
    size_t inner = 1, outer = 1;
    if (s->axis >= rank || dims[s->axis] != (int64_t)s->n)
        return;
    for (int d = 0; d < rank; d++)
        *(d < s->axis ? &outer : &inner) *= d == s->axis ? 1 : (size_t)dims[d];
    for (size_t o = 0; o < outer; o++)
        for (size_t c = 0; c < s->n; c++)
            for (size_t i = 0; i < inner; i++, x++)
                *x = again ? *x * s->factor[c] : *x / s->factor[c];
}
