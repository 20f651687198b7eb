/* lib/data/arrays/map_file.h -- maps of class numbers, a class for each pixel, from pictures and arrays. */
#ifndef OCT_DATA_MAP_FILE_H
#define OCT_DATA_MAP_FILE_H

#include "base/status.h"

/* Reads a PNG of gray values or of a palette (its numbers, not its colours) of at most 8 bits, or an .npy of integers
 * [H,W]. s32[h][w] in *v, to be released with oct_free. OCT_EMALFORMED with the path; OCT_EUNSUPPORTED for pictures of
 * colours, and for PNG in a build without libpng. */
oct_status oct_map_file_read(const char *path, int32_t **v, int64_t *h, int64_t *w, oct_err *err);
/* Whether a file has the name of such a file. */
bool oct_map_file_claims(const char *path);

#endif
