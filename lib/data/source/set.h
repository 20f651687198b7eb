/* lib/data/source/set.h -- sets of arrays, one per input: an .npz, or a folder of INPUT.npy. Private to lib/data. */
#ifndef OCT_DATA_SET_H
#define OCT_DATA_SET_H

#include "data/readers/readers.h"

/* Opens paths[i] (.npy) for input i, the extra ones last, whose path may be NULL; *self is for the functions of
 * oct_read_npz. */
oct_status oct_set_open_files(const oct_feed_ctx *ctx, const char *dir, char *const *paths, void **self, oct_err *err);

/* Opens an .npz that may be what one run is fed with: when its arrays do not agree in a number of samples, but each has
 * the rank and the fixed dimensions of its input, they are one sample. *broken: it failed because the file is damaged,
 * not because it does not suit the model. */
oct_status oct_set_open_feed(const oct_feed_ctx *ctx, const char *path, bool *broken, void **self, oct_err *err);

/* The arrays inside a zip archive in memory (views): their names without .npy, and where their bytes are. */
typedef struct oct_zip_entry {
    char name[256];
    uint64_t offset, packed, size; /* where the data begin, and their sizes, stored and inflated */
    bool deflated;
    uint32_t crc;
} oct_zip_entry;

/* Lists the members that end in .npy; *entries is released with oct_free. OCT_EMALFORMED, OCT_EUNSUPPORTED
 * (encryption, other methods). Messages do not name the file. */
oct_status oct_zip_list(const uint8_t *p, size_t n, oct_zip_entry **entries, size_t *count, oct_err *err);

#endif
