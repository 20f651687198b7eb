/* lib/base/number_text.h -- numbers with units, as people read and write them. */
#ifndef OCT_BASE_NUMBER_TEXT_H
#define OCT_BASE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Each writes into dst and returns it. NaN and infinities give "nan", "inf". */
const char *oct_fmt_bytes(char dst[32], uint64_t bytes);    /* "512 B", "14.2 MB" (1 MB = 1000000 bytes) */
const char *oct_fmt_seconds(char dst[32], double seconds);  /* "83 us", "4.21 ms", "1.50 s", "2 min 05 s" */
const char *oct_fmt_ms(char dst[32], double seconds);       /* always milliseconds: "4.21 ms" */
const char *oct_fmt_percent(char dst[32], double fraction); /* 0.8625: "86.25 %" */
const char *oct_fmt_db(char dst[32], double db);            /* "31.4 dB"; infinity: "exact" */
const char *oct_fmt_count(char dst[32], int64_t n);         /* "1234567": "1 234 567" */
const char *oct_fmt_clock(char dst[32], double seconds);    /* "0:05", "12:40", "1:02:03" */

/* "80000", "12MB" (1 MB = 1000000), "1.5GiB": *bytes, at least 1; "25%" (at most 1000): *share, 0.25. The other one
 * becomes 0. False: neither. */
bool oct_size_text(const char *text, uint64_t *bytes, double *share);

#endif
