/* Prints tables whose rows are values of a list of a report. */
#include "common/print_rows.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdio.h>

const char *tool_db_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_item_at(row, path) ? oct_fmt_db(dst, oct_item_number(row, path)) : "";
}

const char *tool_whole_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    snprintf(dst, TOOL_CELL, "%.0f", oct_item_number(row, path));
    return dst;
}

const char *tool_percent_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const double share = oct_item_number(row, path);
    snprintf(dst, TOOL_CELL, "%.2f %%", 100 * share);
    return isnan(share) ? "" : dst;
}

const char *tool_share_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    snprintf(dst, TOOL_CELL, "%.1f %%", 100 * oct_item_number(row, path));
    return dst;
}

const char *tool_bytes_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_fmt_bytes(dst, (uint64_t)oct_item_whole(row, path));
}

static oct_table *table_of(const tool_column *column, size_t n)
{
    oct_table *t = oct_table_create();
    for (size_t i = 0; i < n; i++)
        oct_table_column(t, column[i].title, column[i].form && !column[i].left ? OCT_RIGHT : OCT_LEFT);
    return t;
}

static void add_row(oct_table *t, const oct_item *row, const tool_column *column, size_t n)
{
    char text[TOOL_CELL];
    oct_table_row(t);
    for (size_t i = 0; i < n; i++) {
        const char *cell =
            column[i].form ? column[i].form(text, row, column[i].path) : oct_item_text(row, column[i].path);
        oct_table_cell(t, "%s", cell ? cell : "");
    }
}

oct_status tool_print_largest(const oct_item *list, const char *by, const tool_column *column, size_t n, double *sum,
                              FILE *f, oct_err *err)
{
    const oct_item *top[TOOL_LARGEST] = { 0 };
    oct_table *t = table_of(column, n);
    *sum = 0;
    for (const oct_item *row = NULL; (row = oct_item_next(list, row));) {
        size_t at = TOOL_LARGEST;
        while (at > 0 && (!top[at - 1] || oct_item_number(row, by) > oct_item_number(top[at - 1], by)))
            at--;
        for (size_t i = TOOL_LARGEST - 1; i > at; i--)
            top[i] = top[i - 1];
        if (at < TOOL_LARGEST)
            top[at] = row;
    }
    for (size_t i = 0; i < TOOL_LARGEST && top[i]; i++) {
        add_row(t, top[i], column, n);
        *sum += oct_item_number(top[i], by);
    }
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

oct_status tool_print_rows(const oct_item *list, size_t most, const tool_column *column, size_t n, FILE *f,
                           oct_err *err)
{
    oct_table *t = table_of(column, n);
    size_t shown = 0;
    for (const oct_item *row = NULL; shown < most && (row = oct_item_next(list, row)); shown++)
        add_row(t, row, column, n);
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}
