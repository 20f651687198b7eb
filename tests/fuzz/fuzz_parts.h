/* What fuzz targets of work in parts share: an input becomes the files of parts, with a line of = between two of them,
 * each with the checksum that belongs to it. */
#ifndef OCT_FUZZ_PARTS_H
#define OCT_FUZZ_PARTS_H

#include "base/io.h"
#include "base/mem.h"
#include "fuzz_folder.h"

enum { FUZZ_PARTS = 8 };
static const char *const fuzz_part_path[2 * FUZZ_PARTS] = { "0", "1", "2", "3", "4", "5", "6", "7",
                                                            "7", "6", "5", "4", "3", "2", "1", "0" };

static inline void fuzz_write_part(const char *path, const uint8_t *data, size_t size)
{
    uint8_t *copy = oct_alloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    const uint64_t hash = size < 8 ? 0 : oct_hash(OCT_HASH_INIT, data, size - 8);
    for (size_t i = 0; i < 8 && size >= 8; i++)
        copy[size - 8 + i] = (uint8_t)(hash >> 8 * i);
    fuzz_write(path, copy, size);
    oct_free(copy);
}

/* How many files there are: fuzz_part_path[0 ..]. What comes behind the last that may be is left out. */
static inline size_t fuzz_write_parts(const uint8_t *data, size_t size)
{
    static const char between[] = "\n=\n";
    const size_t w = sizeof between - 1;
    size_t n = 0, from = 0;
    fuzz_folder_open();
    for (size_t i = 0; i <= size && n < FUZZ_PARTS; i++) {
        const bool cut = size - i >= w && memcmp(data + i, between, w) == 0;
        if (!cut && i < size)
            continue;
        fuzz_write_part(fuzz_part_path[n++], data + from, i - from);
        from = i + w;
        i += cut ? w - 1 : 0;
    }
    return n;
}

/* The same files, the last first. */
static inline const char *const *fuzz_parts_turned(size_t n)
{
    return fuzz_part_path + 2 * FUZZ_PARTS - n;
}

#endif
