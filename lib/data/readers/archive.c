/* lib/data/readers/archive.c -- loading libarchive, and what of it is used. */
#define _GNU_SOURCE
#include "data/readers/archive.h"

#ifdef OCT_HAVE_ARCHIVE

#include "base/fork.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* The decompressors that are allowed, by the first bytes of their formats. */
enum { GZIP, BZIP2, XZ, ZSTD, LZ4, N_FILTERS };
static const struct {
    const char *data, *magic;
} filters[N_FILTERS] = {
    [GZIP] = { "gzip data", "\x1f\x8b" },
    [BZIP2] = { "bzip2 data", "BZh" },
    [XZ] = { "xz data", "\xfd"
                        "7zXZ" },
    [ZSTD] = { "zstd data", "\x28\xb5\x2f\xfd" },
    [LZ4] = { "lz4 data", "\x04\x22\x4d\x18" },
};
static const struct {
    const char *data, *magic;
} others[] = {
    { "lzop data", "\x89LZO" },
    { "grzip data", "GRZipII" },
    { "lrzip data", "LRZI" },
    { "lzip data", "LZIP" },
    { "compress data", "\x1f\x9d" },
    { "uuencoded text", "begin " },
    { "a zip archive", "PK\3\4" },
    { "a 7-Zip archive", "7z\xbc\xaf" },
    { "a rar archive", "Rar!" },
    { "a cpio archive", "07070" },
    { "an rpm package", "\xed\xab\xee\xdb" },
    { "an ar archive", "!<arch>" },
};

static oct_libarchive library;
static bool loaded, inside[N_FILTERS];

static int support(const oct_libarchive *la, struct archive *a, int filter)
{
    switch (filter) {
    case GZIP: return la->archive_read_support_filter_gzip(a);
    case BZIP2: return la->archive_read_support_filter_bzip2(a);
    case XZ: return la->archive_read_support_filter_xz(a);
    case ZSTD: return la->archive_read_support_filter_zstd(a);
    default: return la->archive_read_support_filter_lz4(a);
    }
}

/* A filter that would start a program returns ARCHIVE_WARN, but this query also enables it. So each is queried on an
 * archive of its own. */
static oct_status ask(const oct_libarchive *la, oct_err *err)
{
    for (int i = 0; i < N_FILTERS; i++) {
        struct archive *a = la->archive_read_new();
        if (!a)
            return oct_nomem(err);
        const int z = support(la, a, i), why = z == ARCHIVE_FATAL ? la->archive_errno(a) : 0;
        la->archive_read_free(a);
        if (why == ENOMEM)
            return oct_nomem(err);
        inside[i] = z == ARCHIVE_OK;
    }
    return OCT_OK;
}

#ifdef OCT_ARCHIVE_LINKED
static oct_status find(oct_libarchive *la, oct_err *err)
{
#define OCT_TAKE(name) la->name = name;
    OCT_ARCHIVE_FUNCTIONS(OCT_TAKE)
#undef OCT_TAKE
    return OCT_OK;
}
#else
static oct_status refuse(oct_err *err)
{
    /* The message of the dynamic linker when it is out of memory, which cannot be recognized in another way. */
    static const char *const short_of[] = { "memory",       "annot allocate", "annot create",
                                            "annot extend", "map segment",    "map zero-fill" };
    const char *why = dlerror();
    for (size_t i = 0; why && i < OCT_COUNT(short_of); i++)
        if (strstr(why, short_of[i]))
            return oct_fail(err, OCT_ENOMEM, "out of memory: %s", why);
    oct_fail(err, OCT_EUNSUPPORTED, "archives cannot be read: %s", why ? why : OCT_ARCHIVE_SONAME);
    oct_hint(err, "install libarchive (the package libarchive13 of Debian and Ubuntu, libarchive elsewhere)");
    return OCT_EUNSUPPORTED;
}

static oct_status find(oct_libarchive *la, oct_err *err)
{
    void *so = dlopen(OCT_ARCHIVE_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return refuse(err);
    void *f;
#define OCT_LOAD(name)           \
    if (!(f = dlsym(so, #name))) \
        return refuse(err);      \
    memcpy(&la->name, &f, sizeof f);
    OCT_ARCHIVE_FUNCTIONS(OCT_LOAD)
#undef OCT_LOAD
    return OCT_OK;
}
#endif

static oct_status load(oct_err *err)
{
    oct_libarchive la;
    OCT_TRY(find(&la, err));
    OCT_TRY(ask(&la, err));
    library = la;
    loaded = true;
    return OCT_OK;
}

oct_status oct_archive_load(const oct_libarchive **la, oct_err *err)
{
    oct_lock(OCT_LOCK_ARCHIVES);
    oct_status s = loaded ? OCT_OK : load(err);
    oct_unlock(OCT_LOCK_ARCHIVES);
    *la = &library;
    return s;
}

oct_status oct_archive_support(const oct_libarchive *la, struct archive *a, bool compressed, oct_err *err)
{
    int z = la->archive_read_support_format_tar(a);
    if (z == ARCHIVE_OK) /* otherwise everything after the first archive would be ignored silently */
        z = la->archive_read_set_format_option(a, "tar", "read_concatenated_archives", "1");
    for (int i = 0; z == ARCHIVE_OK && compressed && i < N_FILTERS; i++)
        if (inside[i])
            z = support(la, a, i);
    return z == ARCHIVE_OK ? OCT_OK : oct_nomem(err);
}

static bool begins(const uint8_t *p, size_t n, const char *magic)
{
    const size_t m = strlen(magic);
    return n >= m && memcmp(p, magic, m) == 0;
}

const char *oct_archive_refused(const uint8_t *p, size_t n)
{
    for (int i = 0; i < N_FILTERS; i++)
        if (!inside[i] && begins(p, n, filters[i].magic))
            return filters[i].data;
    for (size_t i = 0; i < OCT_COUNT(others); i++)
        if (begins(p, n, others[i].magic))
            return others[i].data;
    return NULL;
}

#endif
