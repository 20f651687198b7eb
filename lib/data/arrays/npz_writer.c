/* lib/data/arrays/npz_writer.c -- writing .npz: every output is spooled into an unnamed temporary file, and the archive
 * is put together at the end, when the shapes are known. */
#include "data/data.h"

#include "data/arrays/npy.h"
#include "data/readers/readers.h"

#include "base/io.h"
#include "base/little_endian.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

enum { COPY = 1 << 16 };

/* Chunks of one shape and type that follow each other. */
typedef struct run {
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_ARRAY_RANK];
    int64_t chunks;
} run;

typedef struct output {
    char *name;
    FILE *spool;
    run *runs;
    size_t n, cap;
    bool ragged;
    int64_t rows;
    size_t width; /* of texts: characters of the longest */
} output;

typedef struct member {
    char *name;
    uint64_t at, size;
    uint32_t crc;
} member;

struct oct_npz_writer {
    oct_arena *arena;
    char *path;
    oct_out out;
    bool open;
    output *v;
    size_t n;
    member *members;
    size_t n_members, cap_members;
};

void oct_npz_writer_abort(oct_npz_writer *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].spool)
            fclose(w->v[i].spool);
    if (w->open)
        oct_out_abort(&w->out);
    oct_arena_destroy(w->arena);
}

static FILE *spool_open(const char *path)
{
    const int fd = oct_file_nameless(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w+b") : NULL;
    if (!f && fd >= 0)
        close(fd);
    return f;
}

static oct_status set_up(oct_npz_writer *w, const char *path, const char *const *names, size_t n, oct_err *err)
{
    w->path = oct_arena_strdup(w->arena, path);
    w->v = oct_arena_calloc(w->arena, n + 1, sizeof *w->v);
    if (!w->path || !w->v)
        return oct_nomem(err);
    OCT_TRY(oct_out_open(&w->out, path, err));
    w->open = true;
    w->n = n;
    for (size_t i = 0; i < n; i++) {
        if (!(w->v[i].name = oct_arena_strdup(w->arena, names[i])))
            return oct_nomem(err);
        if (strlen(names[i]) > 60000)
            return oct_fail(err, OCT_EUNSUPPORTED, "%s: the name of output %zu is too long", path, i);
        if (!(w->v[i].spool = spool_open(path)))
            return oct_fail_errno(err, "%s: cannot create a temporary file", path);
    }
    return OCT_OK;
}

oct_status oct_npz_writer_open(const char *path, const char *const *names, size_t n, oct_npz_writer **out, oct_err *err)
{
    *out = NULL;
    oct_arena *a = oct_arena_create();
    oct_npz_writer *w = a ? oct_arena_calloc(a, 1, sizeof *w) : NULL;
    if (!w) {
        if (a)
            oct_arena_destroy(a);
        return oct_nomem(err);
    }
    w->arena = a;
    oct_status s = set_up(w, path, names, n, err);
    if (s != OCT_OK) {
        oct_npz_writer_abort(w);
        return s;
    }
    *out = w;
    return OCT_OK;
}

static size_t characters(const char *s)
{
    size_t n = 0, len;
    for (size_t left = strlen(s); left; left -= len, s += len, n++)
        oct_utf8_char(s, left, &len);
    return n;
}

/* Texts wait as they are, as the longest is not known. */
static oct_status spool_texts(oct_npz_writer *w, output *o, const char *const *text, int64_t n, oct_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        const size_t bytes = strlen(text[i]) + 1, width = characters(text[i]);
        o->width = width > o->width ? width : o->width;
        if (fwrite(text[i], 1, bytes, o->spool) != bytes)
            return oct_fail_errno(err, "%s: cannot write", w->path);
    }
    return OCT_OK;
}

static oct_status add_chunk(oct_npz_writer *w, output *o, const oct_array *a, int64_t rows, oct_err *err)
{
    int64_t dims[OCT_ARRAY_RANK];
    memcpy(dims, a->dims, sizeof dims);
    size_t bytes = a->bytes;
    if (rows >= 0 && a->rank && rows < a->dims[0]) {
        bytes = bytes / (size_t)a->dims[0] * (size_t)rows;
        dims[0] = rows;
    }
    run *last = o->n ? &o->runs[o->n - 1] : NULL;
    size_t tail = a->rank > 1 ? (size_t)(a->rank - 1) * sizeof dims[0] : 0;
    bool joins =
        last && last->dtype == a->dtype && last->rank == a->rank && memcmp(last->dims + 1, dims + 1, tail) == 0;
    o->ragged |= last && (!joins || a->rank == 0);
    o->rows += a->rank ? dims[0] : 0;
    if (joins && (a->rank == 0 || last->dims[0] == dims[0])) {
        last->chunks++;
    } else {
        if (!OCT_GROW(w->arena, o->runs, o->n, o->cap))
            return oct_nomem(err);
        o->runs[o->n] = (run){ .dtype = a->dtype, .rank = a->rank, .chunks = 1 };
        memcpy(o->runs[o->n++].dims, dims, sizeof dims);
    }
    if (a->dtype == OCT_STRING)
        return spool_texts(w, o, a->data, dims[0], err);
    if (bytes && fwrite(a->data, 1, bytes, o->spool) != bytes)
        return oct_fail_errno(err, "%s: cannot write", w->path);
    return OCT_OK;
}

oct_status oct_npz_writer_add(oct_npz_writer *w, const oct_array *chunks, int64_t rows, oct_err *err)
{
    for (size_t i = 0; i < w->n; i++)
        OCT_TRY(add_chunk(w, &w->v[i], &chunks[i], rows, err));
    return OCT_OK;
}

/* What the local header and the directory share, from the version needed on. Sizes go to the zip64 field. */
static void put_common(oct_buf *b, uint32_t crc, size_t name, size_t extra)
{
    oct_buf_add_le(b, 45, 2);
    oct_buf_add_le(b, 0x800, 2); /* names are UTF-8 */
    oct_buf_add_le(b, 0, 2);     /* stored */
    oct_buf_add_le(b, 0, 2);
    oct_buf_add_le(b, 33, 2); /* 1980-01-01: no time stamp */
    oct_buf_add_le(b, crc, 4);
    oct_buf_add_le(b, UINT32_MAX, 4);
    oct_buf_add_le(b, UINT32_MAX, 4);
    oct_buf_add_le(b, name, 2);
    oct_buf_add_le(b, extra, 2);
}

/* Copies the next n bytes of the spool to the archive; with out NULL only their checksum is taken. */
static oct_status copy(oct_npz_writer *w, FILE *from, uint64_t n, uint32_t *crc, bool write, oct_err *err)
{
    uint8_t *buf = oct_alloc(COPY);
    if (!buf)
        return oct_nomem(err);
    oct_status s = OCT_OK;
    while (n && s == OCT_OK) {
        size_t want = n < COPY ? (size_t)n : COPY;
        if (fread(buf, 1, want, from) != want)
            s = oct_fail(err, OCT_EIO, "%s: cannot read its temporary file", w->path);
        *crc = (uint32_t)crc32(*crc, buf, (uInt)want);
        if (write)
            oct_out_write(&w->out, buf, want);
        n -= want;
    }
    oct_free(buf);
    return s;
}

/* The header of `rows` of a run, and how many bytes they take. width: of texts. */
static bool describe(oct_buf *head, const run *r, int64_t rows, size_t width, size_t *bytes)
{
    int64_t dims[OCT_ARRAY_RANK], count;
    memcpy(dims, r->dims, sizeof dims);
    if (r->rank)
        dims[0] = rows;
    if (r->dtype == OCT_STRING)
        return oct_mul_size((size_t)rows, 4 * width, bytes) && oct_npy_header_text(head, width, 1, &rows, 128);
    return oct_count(dims, r->rank, &count) && oct_dtype_bytes(r->dtype, count, bytes) &&
           oct_npy_header(head, r->dtype, r->rank, dims, 128);
}

static oct_status put_member(oct_npz_writer *w, FILE *from, const char *name, const run *r, int64_t rows, size_t width,
                             oct_err *err)
{
    size_t bytes;
    oct_buf head = OCT_BUF_INIT, zip = OCT_BUF_INIT;
    if (!describe(&head, r, rows, width, &bytes)) {
        const bool full = head.failed;
        oct_buf_free(&head);
        if (full)
            return oct_nomem(err);
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: .npy cannot hold output '%s' of type %s", w->path, name,
                        oct_dtype_name(r->dtype));
    }
    if (!OCT_GROW(w->arena, w->members, w->n_members, w->cap_members)) {
        oct_buf_free(&head);
        return oct_nomem(err);
    }
    member *m = &w->members[w->n_members++];
    *m = (member){ .name = oct_arena_printf(w->arena, "%s.npy", name), .at = w->out.written, .size = head.len + bytes };
    m->crc = (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)head.data, (uInt)head.len);
    const off_t start = ftello(from); /* the checksum stands in front of the data: one pass for each */
    oct_status s = m->name ? copy(w, from, bytes, &m->crc, false, err) : oct_nomem(err);
    if (s == OCT_OK) {
        oct_buf_add(&zip, "PK\3\4", 4);
        put_common(&zip, m->crc, strlen(m->name), 20);
        oct_buf_puts(&zip, m->name);
        oct_buf_add_le(&zip, 1, 2);
        oct_buf_add_le(&zip, 16, 2);
        oct_buf_add_le(&zip, m->size, 8);
        oct_buf_add_le(&zip, m->size, 8);
        oct_out_write(&w->out, zip.data, zip.len);
        oct_out_write(&w->out, head.data, head.len);
        uint32_t again = 0;
        s = zip.failed || fseeko(from, start, SEEK_SET) != 0 ? oct_nomem(err) : copy(w, from, bytes, &again, true, err);
    }
    oct_buf_free(&head);
    oct_buf_free(&zip);
    return s;
}

/* The next text of the spool as `width` characters. False: it ends early. */
static bool copy_text(FILE *from, FILE *to, size_t width, oct_buf *text)
{
    int ch;
    text->len = 0;
    while ((ch = getc(from)) != EOF && ch)
        oct_buf_add(text, &(char){ (char)ch }, 1);
    const char *s = oct_buf_str(text);
    size_t left = text->len, len;
    for (size_t i = 0; i < width; i++, s += left ? len : 0, left -= left ? len : 0) {
        const uint32_t c = left ? oct_utf8_char(s, left, &len) : 0;
        for (int k = 0; k < 4; k++)
            putc((int)(c >> 8 * k & 255), to);
    }
    return ch != EOF && !text->failed;
}

static oct_status put_texts(oct_npz_writer *w, output *o, oct_err *err)
{
    FILE *wide = spool_open(w->path);
    oct_buf text = OCT_BUF_INIT;
    if (!wide)
        return oct_fail_errno(err, "%s: cannot create a temporary file", w->path);
    const size_t width = o->width ? o->width : 1; /* numpy has no texts without room */
    bool whole = true;
    for (int64_t i = 0; i < o->rows && whole; i++)
        whole = copy_text(o->spool, wide, width, &text);
    oct_buf_free(&text);
    oct_status s = whole && fflush(wide) == 0 && fseeko(wide, 0, SEEK_SET) == 0
                       ? OCT_OK
                       : oct_fail_errno(err, "%s: cannot write", w->path);
    if (s == OCT_OK)
        s = put_member(w, wide, o->name, &o->runs[0], o->rows, width, err);
    fclose(wide);
    return s;
}

static oct_status put_output(oct_npz_writer *w, output *o, oct_err *err)
{
    if (o->n == 0)
        return OCT_OK;
    if (fflush(o->spool) != 0 || fseeko(o->spool, 0, SEEK_SET) != 0)
        return oct_fail_errno(err, "%s: cannot write", w->path);
    if (o->runs[0].dtype == OCT_STRING)
        return put_texts(w, o, err);
    if (!o->ragged)
        return put_member(w, o->spool, o->name, &o->runs[0], o->rows, 0, err);
    int64_t number = 0;
    for (size_t i = 0; i < o->n; i++)
        for (int64_t k = 0; k < o->runs[i].chunks; k++) {
            char *name = oct_strprintf("%s/%06lld", o->name, (long long)number++);
            oct_status s =
                name ? put_member(w, o->spool, name, &o->runs[i], o->runs[i].dims[0], 0, err) : oct_nomem(err);
            oct_free(name);
            OCT_TRY(s);
        }
    return OCT_OK;
}

static oct_status put_directory(oct_npz_writer *w, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    const uint64_t start = w->out.written, n = w->n_members;
    for (size_t i = 0; i < n; i++) {
        const member *m = &w->members[i];
        oct_buf_add(&b, "PK\1\2", 4);
        oct_buf_add_le(&b, 45, 2);
        put_common(&b, m->crc, strlen(m->name), 28);
        oct_buf_add_le(&b, 0, 2 + 2 + 2); /* comment, disk, attributes of text */
        oct_buf_add_le(&b, 0, 4);         /* attributes of the file */
        oct_buf_add_le(&b, UINT32_MAX, 4);
        oct_buf_puts(&b, m->name);
        oct_buf_add_le(&b, 1, 2);
        oct_buf_add_le(&b, 24, 2);
        oct_buf_add_le(&b, m->size, 8);
        oct_buf_add_le(&b, m->size, 8);
        oct_buf_add_le(&b, m->at, 8);
    }
    const uint64_t size = b.len, end = start + size;
    oct_buf_add(&b, "PK\6\6", 4);
    oct_buf_add_le(&b, 44, 8);
    oct_buf_add_le(&b, 45, 2);
    oct_buf_add_le(&b, 45, 2);
    oct_buf_add_le(&b, 0, 8);
    oct_buf_add_le(&b, n, 8);
    oct_buf_add_le(&b, n, 8);
    oct_buf_add_le(&b, size, 8);
    oct_buf_add_le(&b, start, 8);
    oct_buf_add(&b, "PK\6\7", 4);
    oct_buf_add_le(&b, 0, 4);
    oct_buf_add_le(&b, end, 8);
    oct_buf_add_le(&b, 1, 4);
    oct_buf_add(&b, "PK\5\6", 4);
    oct_buf_add_le(&b, 0, 4);
    oct_buf_add_le(&b, n < UINT16_MAX ? n : UINT16_MAX, 2);
    oct_buf_add_le(&b, n < UINT16_MAX ? n : UINT16_MAX, 2);
    oct_buf_add_le(&b, UINT32_MAX, 4);
    oct_buf_add_le(&b, UINT32_MAX, 4);
    oct_buf_add_le(&b, 0, 2);
    bool failed = b.failed;
    if (!failed)
        oct_out_write(&w->out, b.data, b.len);
    oct_buf_free(&b);
    return failed ? oct_nomem(err) : OCT_OK;
}

oct_status oct_npz_writer_commit(oct_npz_writer *w, oct_err *err)
{
    oct_status s = OCT_OK;
    for (size_t i = 0; i < w->n && s == OCT_OK; i++)
        s = put_output(w, &w->v[i], err);
    if (s == OCT_OK)
        s = put_directory(w, err);
    if (s == OCT_OK) {
        w->open = false;
        s = oct_out_commit(&w->out, err);
    }
    oct_npz_writer_abort(w);
    return s;
}
