/* lib/data/arrays/csv.h -- comma-separated files: the first line names the columns, fields may be quoted, lines end in
 * LF or CRLF. Faults are OCT_EMALFORMED, "<file>:<line>: <reason>".
 *
 *   oct_csv c;
 *   OCT_TRY(oct_csv_open(&c, path, arena, err));
 *   const int label = oct_csv_column(&c, "label");
 *   while ((s = oct_csv_row(&c, &end, err)) == OCT_OK && !end)
 *       ...                                    // c.field[label]
 *   oct_csv_close(&c); */
#ifndef OCT_DATA_CSV_H
#define OCT_DATA_CSV_H

#include "base/mem.h"

enum { OCT_CSV_FIELDS = 64 };

typedef struct oct_csv {
    const char *path;            /* borrowed */
    oct_arena *arena;            /* fields live here */
    char *field[OCT_CSV_FIELDS]; /* of the row; after opening, the names of the columns */
    int n, columns;              /* fields of the row, which are no fewer than the columns */
    size_t line;                 /* of the row, from 1 */
    char *text;
    size_t size, at, next_line;
} oct_csv;

/* Reads a file of at most 1 GB, and the names of its columns. Errors of reading; OCT_EMALFORMED if it is empty. */
oct_status oct_csv_open(oct_csv *c, const char *path, oct_arena *arena, oct_err *err);
void oct_csv_close(oct_csv *c);
/* The index of a column, -1 if there is none. To be called before the first row. */
int oct_csv_column(const oct_csv *c, const char *name);
/* Steps to the next row that is not empty, or *end. OCT_EMALFORMED: quotes that do not close, NUL, too many or too few
 * fields. */
oct_status oct_csv_row(oct_csv *c, bool *end, oct_err *err);

oct_status oct_csv_fault(const oct_csv *c, oct_err *err, const char *fmt, ...) OCT_PRINTF(3, 4);
/* The finite number in a field; an integer from 0 to most. what: the column, for messages. */
oct_status oct_csv_number(const oct_csv *c, int field, const char *what, double *v, oct_err *err);
oct_status oct_csv_whole(const oct_csv *c, int field, const char *what, double most, int64_t *v, oct_err *err);
/* The class number in a field (OCT_LABEL_HINT); *label stays if the field is empty. */
oct_status oct_csv_label(const oct_csv *c, int field, int64_t *label, oct_err *err);

#endif
