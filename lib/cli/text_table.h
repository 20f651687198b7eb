/* lib/cli/text_table.h -- tables for people: columns aligned by display width, cut to the terminal.
 *
 *   oct_table *t = oct_table_create();
 *   oct_table_column(t, "layer", OCT_LEFT);
 *   oct_table_column(t, "SQNR", OCT_RIGHT);
 *   oct_table_row(t);
 *   oct_table_cell(t, "%s", name);
 *   oct_table_cell(t, "%.1f dB", db);
 *   s = oct_table_print(t, stdout, err);
 *   oct_table_destroy(t);
 *
 * Memory that runs out is remembered and reported by print or write, so calls need no checks. */
#ifndef OCT_CLI_TEXT_TABLE_H
#define OCT_CLI_TEXT_TABLE_H

#include "base/buf.h"

#include <stdio.h>

typedef enum oct_align {
    OCT_LEFT,
    OCT_RIGHT,
} oct_align;

typedef struct oct_table oct_table;

oct_table *oct_table_create(void); /* NULL when out of memory; every call below accepts NULL */
void oct_table_destroy(oct_table *t);

/* Adds a column; all columns come before the first row. The title is copied. */
void oct_table_column(oct_table *t, const char *title, oct_align align);
/* A table with a column for each letter of align: 'l' left, 'r' right. */
oct_table *oct_table_of(const char *align, const char *const *titles);
/* A row of texts, one for each column; NULL: empty. */
void oct_table_texts(oct_table *t, const char *const *texts);
/* Starts a row; cells that are not given stay empty, those beyond the last column are dropped. */
void oct_table_row(oct_table *t);
/* The text, of at most 1000 bytes, is made safe to print (base/utf8.h). */
void oct_table_cell(oct_table *t, const char *fmt, ...) OCT_PRINTF(2, 3);

/* Appends the table. width: columns to fit into, 0 for no limit; the widest left-aligned column is cut
 * first. utf8: the rule under the titles and the ellipsis as UTF-8, else ASCII. OCT_ENOMEM. */
oct_status oct_table_write(const oct_table *t, oct_buf *b, int width, bool utf8, oct_err *err);
/* The same to a stream, fitted to its terminal and what that can show. OCT_ENOMEM; that the stream failed is seen by
 * ferror. */
oct_status oct_table_print(oct_table *t, FILE *f, oct_err *err);

#endif
