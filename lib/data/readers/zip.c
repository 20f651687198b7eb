/* lib/data/readers/zip.c -- the directory of a zip archive (.npz), zip64 included. Every offset is checked against the
 * file. */
#include "data/source/set.h"

#include "base/little_endian.h"
#include "base/mem.h"

#include <string.h>

typedef struct directory {
    uint64_t offset, size, count;
} directory;

/* The end record: searched backwards, as a comment of up to 65535 bytes may follow it. */
static oct_status find_directory(const uint8_t *p, size_t n, directory *d, oct_err *err)
{
    size_t stop = n > 65535 + 22 ? n - 65535 - 22 : 0, at = n;
    for (size_t i = n >= 22 ? n - 22 : 0; n >= 22; i--) {
        if (memcmp(p + i, "PK\5\6", 4) == 0 && oct_le_u16(p + i + 20) <= n - i - 22) {
            at = i;
            break;
        }
        if (i == stop)
            break;
    }
    if (at == n)
        return oct_fail(err, OCT_EMALFORMED, "not a zip archive (.npz), or cut short");
    *d = (directory){ oct_le_u32(p + at + 16), oct_le_u32(p + at + 12), oct_le_u16(p + at + 10) };
    bool wide = d->offset == UINT32_MAX || d->size == UINT32_MAX || d->count == UINT16_MAX;
    if (wide && at >= 20 && memcmp(p + at - 20, "PK\6\7", 4) == 0) {
        uint64_t end = oct_le_u64(p + at - 12);
        if (n < 56 || end > n - 56 || memcmp(p + end, "PK\6\6", 4) != 0)
            return oct_fail(err, OCT_EMALFORMED, "broken zip archive: zip64 end record");
        *d = (directory){ oct_le_u64(p + end + 48), oct_le_u64(p + end + 40), oct_le_u64(p + end + 32) };
    }
    if (d->offset > n || d->size > n - d->offset || d->count > d->size / 46)
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: its directory lies outside the file");
    return OCT_OK;
}

/* Sizes that did not fit 32 bits are in extra field 1, in this order. */
static bool read_zip64(const uint8_t *x, size_t n, oct_zip_entry *e, uint64_t *header)
{
    while (n >= 4) {
        size_t id = oct_le_u16(x), size = oct_le_u16(x + 2);
        if (size > n - 4)
            return false;
        const uint8_t *v = x + 4, *end = v + size;
        uint64_t *wide[] = { &e->size, &e->packed, header };
        for (int i = 0; id == 1 && i < 3; i++)
            if (*wide[i] == UINT32_MAX) {
                if (end - v < 8)
                    return false;
                *wide[i] = oct_le_u64(v);
                v += 8;
            }
        x += 4 + size;
        n -= 4 + size;
    }
    return true;
}

static oct_status read_entry(const uint8_t *p, size_t n, const uint8_t *r, size_t left, size_t *used, oct_zip_entry *e,
                             bool *keep, oct_err *err)
{
    if (left < 46 || memcmp(r, "PK\1\2", 4) != 0)
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: directory entry");
    size_t name = oct_le_u16(r + 28), extra = oct_le_u16(r + 30), comment = oct_le_u16(r + 32);
    *used = 46 + name + extra + comment;
    if (*used > left)
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: directory entry");
    const uint32_t method = oct_le_u16(r + 10), flags = oct_le_u16(r + 8);
    const char *text = (const char *)r + 46;
    *keep = name > 4 && name - 4 < sizeof e->name && memcmp(text + name - 4, ".npy", 4) == 0 && !memchr(text, 0, name);
    if (!*keep)
        return OCT_OK;
    *e = (oct_zip_entry){
        .packed = oct_le_u32(r + 20), .size = oct_le_u32(r + 24), .crc = oct_le_u32(r + 16), .deflated = method == 8
    };
    memcpy(e->name, text, name - 4);
    uint64_t header = oct_le_u32(r + 42);
    if (flags & 1)
        return oct_fail(err, OCT_EUNSUPPORTED, "array '%s' is encrypted", e->name);
    if (method != 0 && method != 8)
        return oct_fail(err, OCT_EUNSUPPORTED, "array '%s' is compressed with method %u; stored and deflated are read",
                        e->name, method);
    if (!read_zip64(r + 46 + name, extra, e, &header) || header > n || n - header < 30 ||
        memcmp(p + header, "PK\3\4", 4) != 0)
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: header of array '%s'", e->name);
    e->offset = header + 30 + oct_le_u16(p + header + 26) + oct_le_u16(p + header + 28);
    if (e->offset > n || e->packed > n - e->offset || (!e->deflated && e->packed != e->size))
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: array '%s' lies outside the file", e->name);
    if (e->deflated && e->size / OCT_DEFLATE_RATIO > e->packed) /* no memory is asked for what cannot come */
        return oct_fail(err, OCT_EMALFORMED, "broken zip archive: %llu bytes cannot hold array '%s' of %llu",
                        (unsigned long long)e->packed, e->name, (unsigned long long)e->size);
    return OCT_OK;
}

oct_status oct_zip_list(const uint8_t *p, size_t n, oct_zip_entry **entries, size_t *count, oct_err *err)
{
    directory d = { 0 };
    *entries = NULL;
    *count = 0;
    OCT_TRY(find_directory(p, n, &d, err));
    oct_zip_entry *v = oct_calloc((size_t)d.count + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    const uint8_t *r = p + d.offset;
    size_t left = (size_t)d.size;
    for (uint64_t i = 0; i < d.count; i++) {
        size_t used = 0;
        bool keep = false;
        oct_status s = read_entry(p, n, r, left, &used, &v[*count], &keep, err);
        if (s != OCT_OK) {
            oct_free(v);
            *count = 0;
            return s;
        }
        *count += keep;
        r += used;
        left -= used;
    }
    *entries = v;
    return OCT_OK;
}
