/* lib/data/readers/left_out.h -- counts files of a folder or an archive that look like samples and are not read.
 * Private to lib/data. */
#ifndef OCT_DATA_LEFT_OUT_H
#define OCT_DATA_LEFT_OUT_H

#include "base/status.h"

enum { OCT_LEFT_KINDS = 40 };

typedef struct oct_left_out {
    size_t kind[OCT_LEFT_KINDS]; /* how many files there are of each kind of the table */
    size_t links;                /* of an archive: links in place of samples that are not followed */
} oct_left_out;

/* Counts a file of this name if it is a picture, recording, film, array or archive of a kind that is not read there. */
void oct_left_out_add(oct_left_out *l, const char *name);
/* "80 files are left out: 60 .webp, 20 .heic": NULL if nothing was counted, or without memory. To be released with
 * oct_free. */
char *oct_left_out_text(const oct_left_out *l);

#endif
