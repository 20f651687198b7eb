/* lib/data/readers/csv_rows.h -- the rows of a CSV as samples, kept in memory: what tables of values and of texts
 * share. Private to lib/data. */
#ifndef OCT_DATA_CSV_ROWS_H
#define OCT_DATA_CSV_ROWS_H

#include "data/arrays/csv.h"
#include "data/readers/readers.h"

typedef struct oct_csv_line {
    char **field; /* [columns] */
    int64_t label;
    size_t line;
} oct_csv_line;

/* The first member of the state of such a reader, which lives in the arena. */
typedef struct oct_csv_rows {
    oct_arena *arena;
    const oct_feed_ctx *ctx;
    char *path;
    oct_csv_line *v;
    size_t n, cap, at;
    /* Makes the parts of a sample of the fields of its row. */
    oct_status (*fill)(const void *self, char *const *field, oct_part *parts, oct_err *err);
} oct_csv_rows;

/* The state of a reader of the file c: `size` bytes, zero but for the members above; to be closed. */
oct_status oct_csv_rows_create(const oct_feed_ctx *ctx, const oct_csv *c, size_t size, oct_csv_rows **self,
                               oct_err *err);
/* Takes the rows after the header, which stay in the arena, with the labels of column `label` if it is there. */
oct_status oct_csv_rows_read(oct_csv_rows *r, oct_csv *c, oct_err *err);

/* The functions of oct_reader. */
int64_t oct_csv_rows_count(void *self);
oct_status oct_csv_rows_next(void *self, bool want, oct_item *item, bool *end, oct_err *err);
oct_status oct_csv_rows_rewind(void *self, oct_err *err);
void oct_csv_rows_close(void *self);

#endif
