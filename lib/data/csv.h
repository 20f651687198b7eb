/* lib/data/csv.h -- comma-separated text: fields may be quoted, lines end in LF or CRLF. Private to lib/data. */
#ifndef OCT_DATA_CSV_H
#define OCT_DATA_CSV_H

#include "base/mem.h"

enum { OCT_CSV_FIELDS = 64 };

/* One line of the text at *at (size bytes in all), cut into fields that live in the arena. Advances *at and *line;
 * *n is 0 for an empty line. OCT_EMALFORMED (quotes that do not close, NUL, too many fields), OCT_ENOMEM. */
oct_status oct_csv_line(const char *text, size_t size, size_t *at, size_t *line, oct_arena *arena,
                        char *fields[OCT_CSV_FIELDS], int *n, oct_err *err);

#endif
