/* lib/cli: tables for people. */
#include "cli/text_table.h"

#include "base/mem.h"
#include "cli/textfmt.h"

#include <string.h>

enum { MAX_COLUMNS = 32, GAP = 2, LEAST_CUT = 8 };

typedef struct row {
    const char *cell[MAX_COLUMNS]; /* NULL: empty */
    int n;
} row;

struct oct_table {
    oct_arena *arena;
    const char *title[MAX_COLUMNS];
    oct_align align[MAX_COLUMNS];
    int columns;
    row **rows;
    size_t n, cap;
    bool failed;
};

oct_table *oct_table_create(void)
{
    oct_table *t = oct_calloc(1, sizeof *t);
    if (t && !(t->arena = oct_arena_create())) {
        oct_free(t);
        return NULL;
    }
    return t;
}

void oct_table_destroy(oct_table *t)
{
    if (!t)
        return;
    oct_arena_destroy(t->arena);
    oct_free(t);
}

/* A copy that is safe to print. */
static const char *keep(oct_table *t, const char *s, bool ascii)
{
    oct_buf b = OCT_BUF_INIT;
    oct_text_clean(&b, s, ascii);
    const char *copy = b.failed ? NULL : oct_arena_strdup(t->arena, oct_buf_str(&b));
    oct_buf_free(&b);
    t->failed |= !copy;
    return copy;
}

void oct_table_column(oct_table *t, const char *title, oct_align align)
{
    if (!t || t->columns == MAX_COLUMNS || t->n > 0)
        return;
    t->title[t->columns] = keep(t, title, false);
    t->align[t->columns++] = align;
}

void oct_table_row(oct_table *t)
{
    if (!t)
        return;
    row *r = oct_arena_calloc(t->arena, 1, sizeof *r);
    if (!r || !OCT_GROW(t->arena, t->rows, t->n, t->cap)) {
        t->failed = true;
        return;
    }
    t->rows[t->n++] = r;
}

oct_table *oct_table_of(const char *align, const char *const *titles)
{
    oct_table *t = oct_table_create();
    for (size_t i = 0; align[i]; i++)
        oct_table_column(t, titles[i], align[i] == 'r' ? OCT_RIGHT : OCT_LEFT);
    return t;
}

void oct_table_texts(oct_table *t, const char *const *texts)
{
    oct_table_row(t);
    for (size_t i = 0; t && (int)i < t->columns; i++)
        oct_table_cell(t, "%s", texts[i] ? texts[i] : "");
}

void oct_table_cell(oct_table *t, const char *fmt, ...)
{
    if (!t || t->failed || t->n == 0 || t->rows[t->n - 1]->n == t->columns)
        return;
    row *r = t->rows[t->n - 1];
    va_list ap;
    va_start(ap, fmt);
    char text[1024];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->cell[r->n++] = keep(t, text, false);
}

static void natural_widths(const oct_table *t, int *w)
{
    for (int c = 0; c < t->columns; c++) {
        w[c] = oct_utf8_width(t->title[c]);
        for (size_t i = 0; i < t->n; i++) {
            const row *r = t->rows[i];
            int cell = c < r->n ? oct_utf8_width(r->cell[c]) : 0;
            w[c] = cell > w[c] ? cell : w[c];
        }
    }
}

/* Takes columns from the widest left-aligned column until the table fits or none can give. */
static void fit(const oct_table *t, int *w, int width)
{
    int all = GAP * (t->columns - 1);
    for (int c = 0; c < t->columns; c++)
        all += w[c];
    while (all > width) {
        int widest = -1;
        for (int c = 0; c < t->columns; c++)
            if (t->align[c] == OCT_LEFT && w[c] > LEAST_CUT && (widest < 0 || w[c] > w[widest]))
                widest = c;
        if (widest < 0)
            return;
        w[widest]--;
        all--;
    }
}

static void pad(oct_buf *b, int n)
{
    if (n > 0)
        oct_buf_printf(b, "%*s", n, "");
}

/* Whether each word of s fits into so many columns. */
static bool wraps(const char *s, int width)
{
    for (size_t n; *s; s += n + (s[n] == ' ')) {
        char word[256];
        n = strcspn(s, " ");
        snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : (int)sizeof word - 1, s);
        if (oct_utf8_width(word) > width)
            return false;
    }
    return true;
}

/* at: the column where the cell begins. In the last column, text that is too wide continues in the next line. */
static void put_cell(const oct_table *t, oct_buf *b, const char *s, int c, int at_column, int width, bool utf8)
{
    const char *dots = utf8 ? "…" : "..";
    int w = oct_utf8_width(s), dw = utf8 ? 1 : 2;
    bool last = c + 1 == t->columns;
    if (t->align[c] == OCT_RIGHT)
        pad(b, width - w);
    if (last && t->align[c] == OCT_LEFT && w > width && wraps(s, width)) {
        oct_text_wrap(b, s, at_column, at_column, at_column + width);
        return;
    }
    if (w <= width || t->align[c] == OCT_RIGHT) {
        oct_buf_puts(b, s);
    } else {
        size_t n = oct_utf8_fit(s, width - dw);
        oct_buf_add(b, s, n);
        oct_buf_puts(b, dots);
        w = dw;
        for (size_t at = 0; at < n;) { /* a wide character may leave a column free */
            char one[5] = { 0 };
            uint32_t cp;
            int len = oct_utf8_next(s + at, &cp);
            memcpy(one, s + at, (size_t)len);
            w += oct_utf8_width(one);
            at += (size_t)len;
        }
    }
    if (t->align[c] == OCT_LEFT && !last)
        pad(b, width - w);
    if (!last)
        pad(b, GAP);
}

static void trim(oct_buf *b)
{
    while (b->len > 0 && !b->failed && b->data[b->len - 1] == ' ')
        b->data[--b->len] = 0;
}

/* Cells that are empty to the end of the row are left out, so that no line ends in spaces. */
static void put_cells(const oct_table *t, oct_buf *b, const char *const *cell, int n, const int *w, bool utf8)
{
    while (n > 0 && !*cell[n - 1])
        n--;
    for (int c = 0, at = 0; c < n; at += w[c] + GAP, c++)
        put_cell(t, b, cell[c], c, at, w[c], utf8);
    trim(b);
    oct_buf_puts(b, "\n");
}

static void put_rule(const oct_table *t, oct_buf *b, const int *w, bool utf8)
{
    for (int c = 0; c < t->columns; c++) {
        for (int i = 0; i < w[c]; i++)
            oct_buf_puts(b, utf8 ? "─" : "-");
        pad(b, c + 1 < t->columns ? GAP : 0);
    }
    trim(b); /* a column without text has no rule */
    oct_buf_puts(b, "\n");
}

oct_status oct_table_write(const oct_table *t, oct_buf *b, int width, bool utf8, oct_err *err)
{
    if (!t || t->failed)
        return oct_nomem(err);
    int w[MAX_COLUMNS] = { 0 };
    natural_widths(t, w);
    if (width > 0)
        fit(t, w, width);
    put_cells(t, b, t->title, t->columns, w, utf8);
    put_rule(t, b, w, utf8);
    for (size_t i = 0; i < t->n; i++)
        put_cells(t, b, t->rows[i]->cell, t->rows[i]->n, w, utf8);
    return b->failed ? oct_nomem(err) : OCT_OK;
}

static void to_ascii(oct_table *t)
{
    for (int c = 0; c < t->columns && !t->failed; c++)
        t->title[c] = keep(t, t->title[c], true);
    for (size_t i = 0; i < t->n; i++)
        for (int c = 0; c < t->rows[i]->n && !t->failed; c++)
            t->rows[i]->cell[c] = keep(t, t->rows[i]->cell[c], true);
}

oct_status oct_table_print(oct_table *t, FILE *f, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (t && !t->failed && oct_term_ascii(f))
        to_ascii(t);
    oct_status s = oct_table_write(t, &b, oct_term_width(f), oct_term_utf8(f), err);
    if (s == OCT_OK) {
        const size_t titles = strcspn(oct_buf_str(&b), "\n");
        oct_term_style(f, OCT_STYLE_BOLD);
        fwrite(oct_buf_str(&b), 1, titles, f);
        oct_term_style(f, OCT_STYLE_NONE);
        fwrite(oct_buf_str(&b) + titles, 1, b.len - titles, f);
    }
    oct_buf_free(&b);
    return s;
}
