/* tools/common/print_rows.h -- tables whose rows are values of a list of a report. */
#ifndef OCT_TOOLS_PRINT_ROWS_H
#define OCT_TOOLS_PRINT_ROWS_H

#include "base/document.h"
#include "base/status.h"

#include <stdio.h>

/* A form makes the text of a cell, in dst or elsewhere. */
enum { TOOL_CELL = 64 };
typedef const char *(*tool_form)(char dst[TOOL_CELL], const oct_item *row, const char *path);
typedef struct tool_column {
    const char *title, *path; /* path: of the value in the row */
    tool_form form;           /* NULL: it is a text, on the left; others stand on the right, as numbers do */
    bool left;                /* this one does not */
} tool_column;
/* Prints the rows whose number at the path `by` is largest, largest first; *sum: of these. */
enum { TOOL_LARGEST = 3 };
oct_status tool_print_largest(const oct_item *list, const char *by, const tool_column *column, size_t n, double *sum,
                              FILE *f, oct_err *err);
/* Prints the first rows of a list, at most `most`. */
oct_status tool_print_rows(const oct_item *list, size_t most, const tool_column *column, size_t n, FILE *f,
                           oct_err *err);
const char *tool_db_cell(char dst[TOOL_CELL], const oct_item *row, const char *path);
const char *tool_whole_cell(char dst[TOOL_CELL], const oct_item *row, const char *path);
const char *tool_percent_cell(char dst[TOOL_CELL], const oct_item *row, const char *path);
const char *tool_share_cell(char dst[TOOL_CELL], const oct_item *row, const char *path); /* with one digit less */
const char *tool_bytes_cell(char dst[TOOL_CELL], const oct_item *row, const char *path);

#endif
