/* lib/api/calibration_tables.h -- finished calibration tables, and ranges of other tools. */
#ifndef OCT_API_CALIBRATION_TABLES_H
#define OCT_API_CALIBRATION_TABLES_H

#include "api/calibration.h"

/* Joins tables of parts into that of the whole, and writes it. partial: it may lack shards. */
oct_status oct_tables_merge(octet_texts tables, const char *output, bool partial, const oct_calibration_host *h,
                            oct_err *err);
/* Makes the report of a table, of schema octet-calibration-1, or of the differences of two, of schema
 * octet-calibration-diff-1. */
oct_status oct_table_show(const char *table, const oct_calibration_host *h, oct_document *to, oct_err *err);
oct_status oct_tables_diff(const char *a, const char *b, const oct_calibration_host *h, oct_document *to, oct_err *err);

/* calibration_foreign.c: makes a table of ranges that another tool has found, and writes it. */
oct_status oct_table_import(const char *file, const char *model, const char *output, const oct_calibration_host *h,
                            oct_err *err);

/* Ranges of a table as another tool has them. */
typedef struct oct_table_export_options {
    const char *table, *format, *observer; /* observer: NULL: the usual one */
    const char *model;                     /* NULL: not given */
    const char *output;                    /* where the caller will write the text */
} oct_table_export_options;
/* Appends the text; *n: how many ranges it has; *form: what it is, in words. */
oct_status oct_table_export(const oct_table_export_options *x, const oct_calibration_host *h, oct_buf *text, size_t *n,
                            const char **form, oct_err *err);
#endif
