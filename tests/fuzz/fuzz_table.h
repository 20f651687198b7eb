/* tests/fuzz/fuzz_table.h -- for targets that make calibration tables. */
#ifndef FUZZ_TABLE_H
#define FUZZ_TABLE_H

#include "observers/calib.h"

#include <stdlib.h>
#include <string.h>

/* Written and read again, it is the same text. */
static inline void check_reads_back(const oct_calib *c)
{
    oct_buf a = OCT_BUF_INIT, b = OCT_BUF_INIT;
    oct_calib *again = NULL;
    oct_calib_text(c, &a);
    if (oct_calib_parse(oct_buf_str(&a), a.len, "again", &again, NULL) != OCT_OK)
        abort();
    oct_calib_text(again, &b);
    if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
        abort();
    oct_buf_free(&a);
    oct_buf_free(&b);
    oct_calib_destroy(again);
}

#endif
