/* lib/data/readers/tar_links.c -- an index of an archive's members, by which its links are followed. */
#include "data/readers/tar_links.h"

#ifdef OCT_HAVE_ARCHIVE

#include "data/readers/readers.h"
#include "data/readers/stream.h"

#include "base/io.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MEMBERS = 1 << 20, MOST_PATH = 512, MOST_LOOKUPS = 64 }; /* bytes of a path; lookups for a link */
enum { FIRST_ROOM = 1 << 20, KEPT = 256 << 20, PATHS = 32 << 20 };   /* bytes */

typedef enum member_kind { PLAIN_FILE, LINK, FOLDER } member_kind;

typedef struct member {
    uint64_t name;  /* hash of its path in short */
    int64_t where;  /* position of its header in the uncompressed archive */
    int64_t size;   /* of a file */
    const char *to; /* for a link: normalized path; NULL: leads out of the archive */
    uint32_t kept;  /* 1 + its index among the kept contents; 0: it is not kept */
    uint8_t kind;   /* a member_kind */
    bool wanted;    /* a link whose target is kept, or such a target */
} member;

typedef struct kept {
    void *data;
    int64_t size;
} kept;

struct oct_tar_links {
    const oct_libarchive *la;
    oct_arena *arena;
    const char *path;
    bool compressed;
    member *v;       /* in the order of the archive */
    size_t n, cap;   /* n: at most MOST_MEMBERS */
    uint32_t *order; /* places in v, by name, then place */
    size_t paths;    /* bytes of what links point to */
    kept *kept;
    size_t n_kept;
};

/* ---- libarchive ---- */

const char *oct_tar_name(const oct_libarchive *la, struct archive_entry *e)
{
    const char *name = la->archive_entry_pathname(e);
    return name ? name : la->archive_entry_pathname_utf8(e);
}

const char *oct_tar_link(const oct_libarchive *la, struct archive_entry *e, bool *hard)
{
    const char *to = la->archive_entry_hardlink(e);
    if (!to)
        to = la->archive_entry_hardlink_utf8(e);
    *hard = to != NULL;
    if (to || la->archive_entry_filetype(e) != AE_IFLNK)
        return to;
    to = la->archive_entry_symlink(e);
    return to || (to = la->archive_entry_symlink_utf8(e)) ? to : "";
}

/* Room comes with the bytes. */
static oct_status grow(oct_array *a, int64_t size, oct_err *err)
{
    const int64_t room = a->dims[0] < size / 2 ? 2 * a->dims[0] : size;
    void *p = oct_realloc(a->data, a->bytes, (size_t)room);
    if (!p)
        return oct_nomem(err);
    a->data = p;
    a->dims[0] = room;
    a->bytes = (size_t)room;
    return OCT_OK;
}

oct_status oct_tar_bytes(const oct_libarchive *la, struct archive *a, int64_t size, oct_array *bytes, int64_t *n,
                         oct_err *err)
{
    const int64_t first = size < FIRST_ROOM ? size : FIRST_ROOM;
    *n = 0;
    OCT_TRY(oct_array_create(bytes, OCT_U8, 1, &first, err));
    while (*n < size) {
        if (*n == bytes->dims[0])
            OCT_TRY(grow(bytes, size, err));
        const la_ssize_t got = la->archive_read_data(a, (char *)bytes->data + *n, (size_t)(bytes->dims[0] - *n));
        if (got < 0)
            *n = -1;
        if (got <= 0)
            return OCT_OK;
        *n += got;
    }
    return OCT_OK;
}

/* An archive that is read from some member on. */
typedef struct reading {
    const oct_libarchive *la;
    struct archive *a;
    struct archive_entry *e;
    oct_stream in;
} reading;

static la_ssize_t on_read(struct archive *a, void *self, const void **block)
{
    reading *r = self;
    const ssize_t n = oct_stream_read(&r->in);
    if (n < 0)
        r->la->archive_set_error(a, r->in.error, "%s", strerror(r->in.error));
    *block = r->in.block;
    return n;
}

static la_int64_t on_skip(struct archive *a, void *self, la_int64_t n)
{
    return oct_stream_skip(&((reading *)self)->in, n);
}

static void stop(reading *r)
{
    if (r->a)
        r->la->archive_read_free(r->a);
    if (r->e)
        r->la->archive_entry_free(r->e);
    oct_stream_close(&r->in);
}

/* compressed: it may be. *fine: it is an archive there. r is to be stopped in any case. */
static oct_status start(reading *r, const oct_libarchive *la, const char *path, int64_t at, bool compressed, bool *fine,
                        oct_err *err)
{
    *r = (reading){ .la = la, .in = OCT_STREAM_INIT };
    *fine = false;
    if (!(r->a = la->archive_read_new()) || !(r->e = la->archive_entry_new()))
        return oct_nomem(err);
    OCT_TRY(oct_archive_support(la, r->a, compressed, err));
    OCT_TRY(oct_stream_open(&r->in, OCT_FROM_FILE, path, err));
    if (at && oct_stream_skip(&r->in, at) != at)
        return OCT_OK;
    *fine = la->archive_read_open2(r->a, r, NULL, on_read, on_skip, NULL) == ARCHIVE_OK;
    return OCT_OK;
}

static bool next(reading *r)
{
    const int z = r->la->archive_read_next_header2(r->a, r->e);
    return z == ARCHIVE_OK || z == ARCHIVE_WARN;
}

/* ---- paths ---- */

/* Appends a path to a normalized one, without ".", ".." and empty components. False: it leads out of the archive, or
 * becomes too long. */
static bool append(char to[MOST_PATH], const char *path)
{
    size_t n = strlen(to);
    while (*path) {
        const size_t part = strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.') {
            if (n == 0)
                return false;
            while (n > 0 && to[--n] != '/') {
            }
        } else if (part > 1 || (part == 1 && path[0] != '.')) {
            if (n + part + 2 > MOST_PATH)
                return false;
            if (n)
                to[n++] = '/';
            memcpy(to + n, path, part);
            n += part;
        }
        to[n] = 0;
        path += part + (path[part] == '/');
    }
    return true;
}

/* What a link of that name stands for; NULL: nothing in this archive, or no memory. */
static const char *target_of(oct_arena *arena, const char *name, const char *to, bool hard)
{
    char path[MOST_PATH] = "";
    if (!hard && to[0] == '/')
        return NULL;
    if (!hard) {
        if (!append(path, name))
            return NULL;
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = 0;
    }
    return append(path, to) ? oct_arena_strdup(arena, path) : NULL;
}

static uint64_t hash_of(const char *path, size_t n)
{
    return oct_hash(OCT_HASH_INIT, path, n);
}

/* ---- the index ---- */

static oct_status add(oct_tar_links *l, struct archive_entry *e, const char *name, int64_t where, bool wanted,
                      oct_err *err)
{
    char path[MOST_PATH] = "";
    bool hard;
    if (!OCT_GROW(l->arena, l->v, l->n, l->cap))
        return oct_nomem(err);
    member *m = &l->v[l->n++];
    *m = (member){ .where = where, .kind = FOLDER };
    if (!name || !append(path, name))
        return OCT_OK; /* a name that no link has */
    m->name = hash_of(path, strlen(path));
    const char *to = oct_tar_link(l->la, e, &hard);
    if (to) {
        m->kind = LINK;
        m->wanted = wanted;
        m->to = l->paths < PATHS ? target_of(l->arena, name, to, hard) : NULL;
        l->paths += m->to ? strlen(m->to) + 1 : 0;
    } else if (l->la->archive_entry_filetype(e) == AE_IFREG) {
        m->kind = PLAIN_FILE;
        m->size = l->la->archive_entry_size(e);
    }
    return OCT_OK;
}

static _Thread_local const member *sorted; /* qsort hands on no more than the elements */

static int by_name(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (sorted[x].name != sorted[y].name)
        return sorted[x].name < sorted[y].name ? -1 : 1;
    return x < y ? -1 : x > y;
}

static oct_status sort(oct_tar_links *l, oct_err *err)
{
    if (!(l->order = oct_arena_alloc(l->arena, (l->n + 1) * sizeof *l->order)))
        return oct_nomem(err);
    for (size_t i = 0; i < l->n; i++)
        l->order[i] = (uint32_t)i;
    sorted = l->v;
    qsort(l->order, l->n, sizeof *l->order, by_name);
    return OCT_OK;
}

/* The member of a name that counts for the link at `at`; SIZE_MAX: none. */
static size_t lookup(const oct_tar_links *l, const char *path, size_t n, size_t at)
{
    const uint64_t name = hash_of(path, n);
    size_t lo = 0, hi = l->n, found = SIZE_MAX;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (l->v[l->order[mid]].name < name)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* There may be many members of one name: the last one before the link is found by bisection. */
    size_t first = lo, end = l->n;
    while (lo < end) {
        const size_t mid = (lo + end) / 2;
        const member *m = &l->v[l->order[mid]];
        if (m->name == name && l->order[mid] < at)
            lo = mid + 1;
        else
            end = mid;
    }
    if (lo > first)
        return l->order[lo - 1];
    for (; lo < l->n && l->v[l->order[lo]].name == name && found == SIZE_MAX; lo++)
        if (l->order[lo] != at)
            found = l->order[lo];
    return found;
}

/* Replaces the first part of a path that is a link to a folder. */
static bool follow_folder(const oct_tar_links *l, char path[MOST_PATH], size_t at, int *lookups)
{
    for (char *slash = strchr(path, '/'); slash && ++*lookups <= MOST_LOOKUPS; slash = strchr(slash + 1, '/')) {
        const size_t found = lookup(l, path, (size_t)(slash - path), at);
        if (found == SIZE_MAX || l->v[found].kind != LINK)
            continue;
        char whole[MOST_PATH] = "";
        if (!l->v[found].to || !append(whole, l->v[found].to) || !append(whole, slash + 1))
            return false;
        memcpy(path, whole, sizeof whole);
        return true;
    }
    return false;
}

static void copy_path(char to[MOST_PATH], const char *path)
{
    memcpy(to, path, strlen(path) + 1);
}

static oct_tar_end follow(const oct_tar_links *l, size_t at, size_t *target)
{
    char path[MOST_PATH];
    if (at >= l->n || l->v[at].kind != LINK || !l->v[at].to)
        return OCT_TAR_NOTHING;
    copy_path(path, l->v[at].to);
    for (int lookups = 0; ++lookups <= MOST_LOOKUPS;) {
        const size_t found = lookup(l, path, strlen(path), at);
        const member *m = found == SIZE_MAX ? NULL : &l->v[found];
        if (m && m->kind == FOLDER)
            return OCT_TAR_FOLDER;
        if (m && m->kind == PLAIN_FILE) {
            *target = found;
            return OCT_TAR_FILE;
        }
        if (m && !m->to)
            return OCT_TAR_NOTHING;
        if (m)
            copy_path(path, m->to);
        else if (!follow_folder(l, path, at, &lookups))
            return OCT_TAR_NOTHING;
    }
    return OCT_TAR_NOTHING;
}

oct_tar_end oct_tar_links_find(const oct_tar_links *l, size_t at, size_t *target)
{
    const oct_tar_end end = follow(l, at, target);
    return end == OCT_TAR_FILE && l->compressed && !l->v[*target].kept ? OCT_TAR_NOTHING : end;
}

static oct_status read_index(oct_tar_links *l, bool (*is_wanted)(void *arg, const char *name), void *arg, oct_err *err)
{
    reading r;
    bool fine;
    oct_status s = start(&r, l->la, l->path, 0, true, &fine, err);
    while (s == OCT_OK && fine && l->n < MOST_MEMBERS && next(&r)) {
        const char *name = oct_tar_name(l->la, r.e);
        s = add(l, r.e, name, l->la->archive_read_header_position(r.a), name && is_wanted(arg, name), err);
    }
    l->compressed = r.a && l->la->archive_filter_code(r.a, 0) != ARCHIVE_FILTER_NONE;
    stop(&r);
    return s == OCT_OK ? sort(l, err) : s;
}

/* For a compressed archive: keeps the contents to which links lead, as far as there is room. */
static oct_status keep_targets(oct_tar_links *l, oct_err *err)
{
    reading r;
    bool fine;
    int64_t room = KEPT, n = 0;
    size_t left = 0, target;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind == LINK && l->v[i].wanted && follow(l, i, &target) == OCT_TAR_FILE && !l->v[target].wanted) {
            l->v[target].wanted = true;
            left++;
        }
    if (!left)
        return OCT_OK;
    if (!(l->kept = oct_arena_calloc(l->arena, left, sizeof *l->kept)))
        return oct_nomem(err);
    oct_status s = start(&r, l->la, l->path, 0, true, &fine, err);
    for (size_t i = 0; s == OCT_OK && fine && left && i < l->n && next(&r); i++) {
        member *m = &l->v[i];
        if (m->kind != PLAIN_FILE || !m->wanted)
            continue;
        left--;
        if (m->size < 0 || m->size > room)
            continue;
        oct_array a = { 0 };
        s = oct_tar_bytes(l->la, r.a, m->size, &a, &n, err);
        if (s != OCT_OK || n != m->size) {
            oct_array_free(&a);
            continue;
        }
        room -= n;
        l->kept[l->n_kept] = (kept){ a.data, n };
        m->kept = (uint32_t)++l->n_kept;
    }
    stop(&r);
    return s;
}

oct_status oct_tar_links_open(const oct_libarchive *la, const char *path,
                              bool (*is_wanted)(void *arg, const char *name), void *arg, oct_tar_links **l,
                              oct_err *err)
{
    oct_arena *arena = oct_arena_create();
    oct_tar_links *made = arena ? oct_arena_calloc(arena, 1, sizeof *made) : NULL;
    *l = NULL;
    if (!made) {
        if (arena)
            oct_arena_destroy(arena);
        return oct_nomem(err);
    }
    made->la = la;
    made->arena = arena;
    oct_status s = (made->path = oct_arena_strdup(arena, path)) ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK)
        s = read_index(made, is_wanted, arg, err);
    if (s == OCT_OK && made->compressed)
        s = keep_targets(made, err);
    if (s == OCT_OK)
        *l = made;
    else
        oct_tar_links_close(made);
    return s;
}

void oct_tar_links_close(oct_tar_links *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_kept; i++)
        oct_free(l->kept[i].data);
    oct_arena_destroy(l->arena);
}

oct_status oct_tar_links_read(const oct_tar_links *l, size_t target, oct_array *bytes, oct_err *err)
{
    const member *m = &l->v[target];
    reading r;
    bool fine;
    int64_t n = 0;
    *bytes = (oct_array){ 0 };
    if (m->size < 0 || m->size > OCT_TAR_MEMBER)
        return oct_fail(err, OCT_EMALFORMED, "a member of %lld bytes", (long long)m->size);
    if (l->compressed) {
        const kept *k = &l->kept[m->kept - 1];
        OCT_TRY(oct_array_create(bytes, OCT_U8, 1, &k->size, err));
        memcpy(bytes->data, k->data, (size_t)k->size);
        return OCT_OK;
    }
    oct_status s = start(&r, l->la, l->path, m->where, false, &fine, err);
    if (s == OCT_OK && fine && next(&r) && l->la->archive_entry_size(r.e) == m->size)
        s = oct_tar_bytes(l->la, r.a, m->size, bytes, &n, err);
    else if (s == OCT_OK)
        n = -1;
    stop(&r);
    if (s == OCT_OK && n != m->size)
        s = oct_fail(err, OCT_EMALFORMED, "cut short, or changed while it was read");
    if (s != OCT_OK)
        oct_array_free(bytes);
    return s;
}

#endif
