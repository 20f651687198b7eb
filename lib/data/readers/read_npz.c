/* lib/data/readers/read_npz.c -- reader: a set of arrays, one per input. Deflated members are inflated as samples are
 * asked for, so that memory does not depend on their number; stored ones and .npy files are mapped. A deflated member
 * in Fortran order has the elements of a sample all over it: it is inflated as a whole. */
#include "data/arrays/npy.h"
#include "data/source/set.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

#include <zlib.h>

enum { MAX_HEADER = 1 << 16 };

typedef struct member {
    oct_map own; /* of a folder's file; unused in an archive */
    const uint8_t *data;
    uint64_t packed, size;
    bool deflated, open;
    z_stream z;
    uint64_t fed, made; /* bytes of data given to z, bytes that it made */
    uint32_t crc, sum;  /* of all bytes, as the archive says; of those made */
    oct_npy head;
    oct_array shape;
    uint8_t *whole; /* the array, if it is deflated and used for all samples, or in Fortran order */
} member;

typedef struct set {
    oct_map map;
    char *path;
    oct_interned *texts;
    size_t n, n_inputs;
    oct_input_desc *inputs; /* [n_inputs] of an archive: the required inputs, and the extra ones that it contains */
    size_t *part;           /* [n_inputs] of a sample */
    member *members;        /* [n], in the order of names */
    char (*names)[256];
    oct_feed *feeds;
    int64_t count, at;
    bool feed;        /* it may be what one run is fed with */
    int64_t *lengths; /* [count]: how long each sample is; NULL: all are as long as their arrays */
    bool *cut;        /* [n_inputs]: whether that counts entries of this input */
} set;

static void set_close(void *self)
{
    set *r = self;
    if (!r)
        return;
    for (size_t i = 0; r->members && i < r->n; i++) {
        if (r->members[i].open)
            inflateEnd(&r->members[i].z);
        oct_map_close(&r->members[i].own);
        oct_free(r->members[i].whole);
    }
    oct_free(r->members);
    oct_free(r->names);
    oct_free(r->feeds);
    oct_free(r->lengths);
    oct_free(r->cut);
    oct_free(r->inputs);
    oct_free(r->part);
    oct_free(r->path);
    oct_map_close(&r->map);
    oct_free(r);
}

static voidpf z_alloc(voidpf none, uInt items, uInt size)
{
    size_t n;
    return oct_mul_size(items, size, &n) ? oct_alloc(n) : Z_NULL;
}

static void z_free(voidpf none, voidpf p)
{
    oct_free(p);
}

/* Starts a deflated member anew. */
static oct_status restart(member *m, oct_err *err)
{
    if (m->open)
        inflateEnd(&m->z);
    m->z = (z_stream){ .zalloc = z_alloc, .zfree = z_free };
    m->fed = m->made = 0;
    m->sum = 0;
    m->open = inflateInit2(&m->z, -MAX_WBITS) == Z_OK;
    return m->open ? OCT_OK : oct_nomem(err);
}

/* Inflates the next n bytes of a deflated member; dst NULL: skips them. */
static oct_status inflate_next(member *m, void *dst, uint64_t n, oct_err *err)
{
    uint8_t scratch[8192];
    uint8_t *out = dst;
    while (n) {
        uint64_t want = out ? n : n < sizeof scratch ? n : sizeof scratch;
        if (want > 1u << 30)
            want = 1u << 30;
        uint64_t give = m->packed - m->fed;
        if (give > 1u << 30)
            give = 1u << 30;
        m->z.next_in = (Bytef *)(uintptr_t)(m->data + m->fed);
        m->z.avail_in = (uInt)give;
        m->z.next_out = out ? out : scratch;
        m->z.avail_out = (uInt)want;
        int z = inflate(&m->z, Z_NO_FLUSH);
        uint64_t got = want - m->z.avail_out;
        m->fed += give - m->z.avail_in;
        m->made += got;
        if (z == Z_MEM_ERROR)
            return oct_nomem(err);
        if (z != Z_OK && z != Z_STREAM_END)
            return oct_fail(err, OCT_EMALFORMED, "broken deflate data%s%s", m->z.msg ? ": " : "",
                            m->z.msg ? m->z.msg : "");
        m->sum = (uint32_t)crc32(m->sum, out ? out : scratch, (uInt)got);
        if (m->made == m->size && m->sum != m->crc)
            return oct_fail(err, OCT_EMALFORMED, "the checksum of its data is another");
        n -= got;
        if (out)
            out += got;
        if (n && (z == Z_STREAM_END || (got == 0 && give == 0)))
            return oct_fail(err, OCT_EMALFORMED, "deflate data cut short");
    }
    return OCT_OK;
}

/* Reads the header of the array and leaves a deflated member at its first element. */
static oct_status read_head(member *m, oct_err *err)
{
    uint8_t buf[12 + MAX_HEADER];
    if (!m->deflated) {
        OCT_TRY(oct_npy_parse_any(m->data, (size_t)m->size, &m->head, err));
    } else {
        OCT_TRY(restart(m, err));
        size_t first = m->size < 12 ? (size_t)m->size : 12;
        OCT_TRY(inflate_next(m, buf, first, err));
        size_t size = oct_npy_header_size(buf, first);
        if (size > first && size <= m->size && size <= sizeof buf)
            OCT_TRY(inflate_next(m, buf + first, size - first, err));
        OCT_TRY(oct_npy_parse_any(buf, size > m->size ? first : size, &m->head, err));
    }
    if (m->size - m->head.offset < m->head.bytes)
        return oct_fail(err, OCT_EMALFORMED, "cut short: %llu bytes of data, the header says %zu",
                        (unsigned long long)(m->size - m->head.offset), m->head.bytes);
    m->shape = (oct_array){ .dtype = m->head.dtype, .rank = m->head.rank };
    memcpy(m->shape.dims, m->head.dims, sizeof m->shape.dims);
    return OCT_OK;
}

/* Whether each array has the rank and the fixed dimensions of its input. */
static bool are_whole(const set *r, const oct_feed_ctx *ctx)
{
    for (size_t i = 0; i < ctx->n; i++) {
        const oct_array *a = &r->members[r->feeds[i].array].shape;
        const oct_input_desc *in = &ctx->inputs[i];
        bool whole = in->rank < 0 || in->rank == a->rank;
        for (int k = 0; whole && k < in->rank; k++)
            whole = in->dims[k] < 0 || in->dims[k] == a->dims[k];
        if (!whole)
            return false;
    }
    return true;
}

/* Whether the first dimensions of all arrays are one number of samples. */
static bool are_rows(const set *r, const oct_feed_ctx *ctx)
{
    for (size_t i = 0; i < ctx->n; i++)
        if (r->feeds[i].mode != OCT_FEED_ROWS || r->members[r->feeds[i].array].shape.dims[0] != r->count)
            return false;
    return true;
}

static oct_status plan_feeds(set *r, const oct_feed_ctx *ctx, const char **names, const oct_array *heads, oct_err *err)
{
    const oct_status s = oct_feed_plan(ctx, names, heads, r->n, r->feeds, &r->count, err);
    const bool planned = s == OCT_OK || s == OCT_EMALFORMED;
    for (size_t i = 0; planned && s != OCT_OK && i < ctx->n; i++)
        if (oct_feed_find(ctx, i, names, r->n, &r->feeds[i].array, NULL) != OCT_OK)
            return s;
    if (!r->feed || !planned || (s == OCT_OK && are_rows(r, ctx)) || !are_whole(r, ctx))
        return s;
    for (size_t i = 0; i < ctx->n; i++)
        r->feeds[i].mode = OCT_FEED_SHARED;
    r->count = 1;
    if (err)
        *err = (oct_err)OCT_ERR_INIT;
    return OCT_OK;
}

static oct_status plan(set *r, const oct_feed_ctx *ctx, oct_err *err)
{
    const char **names = oct_calloc(r->n + 1, sizeof *names);
    oct_array *heads = oct_calloc(r->n + 1, sizeof *heads);
    r->feeds = oct_calloc(ctx->n + 1, sizeof *r->feeds);
    oct_status s = names && heads && r->feeds ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < r->n; i++) {
        names[i] = r->names[i];
        heads[i] = r->members[i].shape;
    }
    if (s == OCT_OK)
        s = plan_feeds(r, ctx, names, heads, err);
    for (size_t i = 0; s == OCT_OK && i < ctx->n; i++) {
        member *m = &r->members[r->feeds[i].array];
        if (m->head.fortran && m->head.dtype == OCT_STRING) {
            s = oct_fail(err, OCT_EUNSUPPORTED, "array '%s' is texts in Fortran order", r->names[r->feeds[i].array]);
            oct_hint(err, "store it with numpy.ascontiguousarray");
        }
    }
    bool any = r->count == 0 || ctx->n == 0; /* a cache may be empty, not everything */
    for (size_t i = 0; s == OCT_OK && i < ctx->n && !any; i++)
        any = r->members[r->feeds[i].array].head.count > 0;
    if (s == OCT_OK && !any)
        s = oct_fail(err, OCT_EMALFORMED, "array '%s' holds no elements", r->names[r->feeds[0].array]);
    oct_free(names);
    oct_free(heads);
    return s;
}

static oct_status alloc_members(set *r, size_t n, oct_err *err)
{
    r->members = oct_calloc(n + 1, sizeof *r->members);
    r->names = oct_calloc(n + 1, sizeof *r->names);
    if (!r->members || !r->names)
        return oct_nomem(err);
    r->n = n;
    return OCT_OK;
}

static bool is_input(const oct_feed_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->n; i++)
        if (strcmp(ctx->inputs[i].name, name) == 0)
            return true;
    return false;
}

static oct_status list_archive(set *r, const oct_feed_ctx *ctx, oct_err *err)
{
    oct_zip_entry *e;
    size_t n;
    OCT_TRY(oct_zip_list(r->map.data, r->map.size, &e, &n, err));
    oct_status s = n ? alloc_members(r, n, err) : oct_fail(err, OCT_EMALFORMED, "no .npy arrays inside");
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        member *m = &r->members[i];
        memcpy(r->names[i], e[i].name, sizeof e[i].name);
        m->data = r->map.data + e[i].offset;
        m->packed = e[i].packed;
        m->size = e[i].size;
        m->crc = e[i].crc;
        m->deflated = e[i].deflated;
        if ((s = read_head(m, err)) != OCT_OK && s != OCT_ENOMEM) {
            /* An array that no input needs may be of any type. */
            if (s == OCT_EUNSUPPORTED && n > 1 && !is_input(ctx, e[i].name)) {
                if (err)
                    *err = (oct_err)OCT_ERR_INIT;
                r->names[i][0] = 0;
                s = OCT_OK;
            } else {
                oct_within(err, "array '%s'", e[i].name);
            }
        }
    }
    oct_free(e);
    return s;
}

static oct_status create(const oct_feed_ctx *ctx, const char *path, set **out, oct_err *err)
{
    set *r = oct_calloc(1, sizeof *r);
    if (!r || !(r->path = oct_strdup(path))) {
        set_close(r);
        return oct_nomem(err);
    }
    r->n_inputs = ctx->n;
    r->texts = ctx->texts;
    *out = r;
    return OCT_OK;
}

static oct_status finish(oct_status s, set *r, void **self, oct_err *err)
{
    if (s != OCT_OK) {
        oct_within(err, "%s", r->path);
        set_close(r);
        return s;
    }
    *self = r;
    return OCT_OK;
}

static bool has_member(const set *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (oct_feed_matches(r->names[i], name))
            return true;
    return false;
}

/* Sets the inputs that the archive feeds, and their parts in a sample. */
static oct_status take_inputs(set *r, const oct_feed_ctx *ctx, oct_err *err)
{
    r->inputs = oct_calloc(ctx->n + ctx->n_extra + 1, sizeof *r->inputs);
    r->part = oct_calloc(ctx->n + ctx->n_extra + 1, sizeof *r->part);
    if (!r->inputs || !r->part)
        return oct_nomem(err);
    r->n_inputs = 0;
    for (size_t i = 0; i < ctx->n + ctx->n_extra; i++) {
        const oct_input_desc *in = i < ctx->n ? &ctx->inputs[i] : &ctx->extra[i - ctx->n];
        size_t ids;
        if ((i >= ctx->n || oct_token_follows(ctx, i, &ids)) && !has_member(r, in->name))
            continue;
        r->part[r->n_inputs] = i;
        r->inputs[r->n_inputs++] = *in;
    }
    return OCT_OK;
}

/* ---- samples of different lengths ---- */

static bool is_whole(oct_dtype t)
{
    return t == OCT_S64 || t == OCT_S32 || t == OCT_BOOL;
}

/* Whether the rows of an input have a length of their own in the array: its second dimension, which the model leaves
 * free. */
static bool has_length(const set *r, size_t i)
{
    const member *m = &r->members[r->feeds[i].array];
    const oct_input_desc *in = &r->inputs[i];
    return r->feeds[i].mode == OCT_FEED_ROWS && m->shape.rank > 1 && in->rank == m->shape.rank && in->dims[1] < 0;
}

/* Which inputs are cut: the first with a length, and those of as many entries that are whole numbers, too, or floats.
 * So the rows of an encoder stay, which only happen to be as many as the tokens. *width: that length; 0: none. */
static oct_status choose_cut(set *r, int64_t *width, oct_err *err)
{
    *width = 0;
    if (!(r->cut = oct_calloc(r->n_inputs + 1, sizeof *r->cut)))
        return oct_nomem(err);
    bool whole = false;
    for (size_t i = 0; i < r->n_inputs; i++) {
        const member *m = &r->members[r->feeds[i].array];
        if (!has_length(r, i) || m->shape.dims[1] < 1)
            continue;
        if (!*width) {
            *width = m->shape.dims[1];
            whole = is_whole(r->inputs[i].dtype);
        }
        r->cut[i] = m->shape.dims[1] == *width && is_whole(r->inputs[i].dtype) == whole;
    }
    return OCT_OK;
}

static oct_status load_lengths(set *r, member *m, int64_t width, oct_err *err)
{
    const size_t n = (size_t)r->count, bytes = m->head.bytes;
    if (m->shape.rank != 1 || m->shape.dims[0] != r->count || !is_whole(m->shape.dtype) || m->shape.dtype == OCT_BOOL) {
        char text[96];
        oct_fail(err, OCT_EMALFORMED, "array 'lengths' is %s of %s, and there are %lld samples",
                 oct_dims_text(text, m->shape.rank, m->shape.dims), oct_dtype_name(m->shape.dtype),
                 (long long)r->count);
        oct_hint(
            err,
            "it is how long each sample is, as int64 or int32; an array that means something else has another name");
        return OCT_EMALFORMED;
    }
    r->lengths = oct_calloc(n + 1, sizeof *r->lengths);
    void *raw = oct_alloc(bytes + 1);
    oct_status s = r->lengths && raw ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK && m->deflated)
        s = inflate_next(m, raw, bytes, err);
    else if (s == OCT_OK && bytes)
        memcpy(raw, m->data + m->head.offset, bytes);
    if (s == OCT_OK)
        s = oct_array_convert(m->shape.dtype, raw, OCT_S64, r->lengths, n, err);
    oct_free(raw);
    for (size_t i = 0; i < n && s == OCT_OK; i++)
        if (r->lengths[i] < 1 || r->lengths[i] > width)
            s = oct_fail(err, OCT_EMALFORMED, "array 'lengths': sample %zu has %lld entries, and there are %lld", i,
                         (long long)r->lengths[i], (long long)width);
    return s;
}

/* An archive with an array `lengths` that no input takes has samples of different lengths, padded to one. */
static oct_status take_lengths(set *r, const oct_feed_ctx *ctx, oct_err *err)
{
    int64_t width;
    size_t at = 0;
    while (at < r->n && strcmp(r->names[at], "lengths") != 0)
        at++;
    if (at == r->n || is_input(ctx, "lengths"))
        return OCT_OK;
    for (size_t i = 0; i < r->n_inputs; i++)
        if (r->feeds[i].array == at)
            return OCT_OK;
    OCT_TRY(choose_cut(r, &width, err));
    return width ? load_lengths(r, &r->members[at], width, err) : OCT_OK;
}

/* The part of a row that belongs to the sample. */
static void cut_row(oct_array *row, int64_t length)
{
    if (row->dims[0] > 0)
        row->bytes = row->bytes / (size_t)row->dims[0] * (size_t)length;
    row->dims[0] = length;
}

static oct_status open_from(const oct_feed_ctx *ctx, int fd, const char *path, bool feed, bool *broken, void **self,
                            oct_err *err)
{
    set *r = NULL;
    *broken = false;
    OCT_TRY(create(ctx, path, &r, err));
    r->feed = feed;
    oct_status s = fd < 0 ? oct_map_open(&r->map, path, err) : oct_map_fd(&r->map, fd, path, err);
    if (s != OCT_OK) {
        set_close(r);
        return s;
    }
    s = list_archive(r, ctx, err);
    *broken = s == OCT_EMALFORMED;
    if (s == OCT_OK && (s = take_inputs(r, ctx, err)) == OCT_OK)
        s = plan(r, &(oct_feed_ctx){ .inputs = r->inputs, .n = r->n_inputs }, err);
    if (s == OCT_OK)
        s = take_lengths(r, ctx, err);
    return finish(s, r, self, err);
}

static oct_status npz_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    bool broken;
    return open_from(ctx, -1, path, false, &broken, self, err);
}

oct_status oct_set_open_feed(const oct_feed_ctx *ctx, const char *path, bool *broken, void **self, oct_err *err)
{
    return open_from(ctx, -1, path, true, broken, self, err);
}

oct_status oct_read_npz_fd(const oct_feed_ctx *ctx, int fd, const char *name, void **self, oct_err *err)
{
    bool broken;
    return open_from(ctx, fd, name, false, &broken, self, err);
}

oct_status oct_set_open_files(const oct_feed_ctx *ctx, const char *dir, char *const *paths, void **self, oct_err *err)
{
    set *r = NULL;
    OCT_TRY(create(ctx, dir, &r, err));
    oct_status s = alloc_members(r, ctx->n + ctx->n_extra, err);
    r->n = 0;
    for (size_t k = 0; s == OCT_OK && k < ctx->n + ctx->n_extra; k++) {
        const char *name = k < ctx->n ? ctx->inputs[k].name : ctx->extra[k - ctx->n].name;
        const size_t i = r->n;
        member *m = &r->members[i];
        if (!paths[k])
            continue;
        r->n++;
        strncpy(r->names[i], name, sizeof r->names[i] - 1);
        if ((s = oct_map_open(&m->own, paths[k], err)) != OCT_OK)
            break;
        m->data = m->own.data;
        m->size = m->packed = m->own.size;
        if ((s = read_head(m, err)) != OCT_OK)
            oct_within(err, "array '%s'", r->names[i]);
    }
    if (s == OCT_OK)
        s = take_inputs(r, ctx, err);
    if (s == OCT_OK)
        s = plan(r, &(oct_feed_ctx){ .inputs = r->inputs, .n = r->n_inputs }, err);
    return finish(s, r, self, err);
}

static int64_t set_count(void *self)
{
    return ((set *)self)->count;
}

/* Whether a deflated array is inflated once, and not sample by sample. */
static bool is_at_once(const oct_feed *f, const member *m)
{
    return m->head.fortran || f->mode == OCT_FEED_SHARED || f->mode == OCT_FEED_ONE;
}

/* Inflates the whole array, once. */
static oct_status inflate_whole(member *m, oct_err *err)
{
    if (m->whole)
        return OCT_OK;
    if (!(m->whole = oct_alloc(m->head.bytes)))
        return oct_nomem(err);
    oct_status s = inflate_next(m, m->whole, m->head.bytes, err);
    if (s != OCT_OK) {
        oct_free(m->whole);
        m->whole = NULL;
    }
    return s;
}

/* Bytes that a sample takes in the file. */
static size_t stored_bytes(const member *m, const oct_part *p)
{
    return (size_t)oct_array_count(&p->array) * oct_npy_element(&m->head);
}

/* Texts in place of the bytes of the file, which are released if they are owned. */
static oct_status take_texts(const set *r, const member *m, oct_part *p, oct_err *err)
{
    oct_array raw = p->array;
    oct_status s = oct_array_create(&p->array, OCT_STRING, raw.rank, raw.dims, err);
    if (s == OCT_OK)
        s = oct_npy_texts(&m->head, raw.data, oct_array_count(&raw), r->texts, p->array.data, err);
    if (s != OCT_OK)
        oct_array_free(&p->array);
    oct_array_free(&raw);
    return s;
}

static oct_status fill(set *r, size_t input, int64_t index, bool want, oct_part *part, oct_err *err)
{
    const oct_feed *f = &r->feeds[input];
    member *m = &r->members[f->array];
    oct_part p = { 0 };
    oct_feed_shape(f, &m->shape, &p);
    p.shared &= !r->feed; /* the next file has another */
    const size_t bytes = stored_bytes(m, &p);
    const bool one = f->mode == OCT_FEED_SHARED || f->mode == OCT_FEED_ONE, at_once = is_at_once(f, m);
    if (m->deflated && at_once)
        OCT_TRY(inflate_whole(m, err));
    if (!m->deflated || at_once) {
        const uint8_t *all = m->deflated ? m->whole : m->data + m->head.offset;
        p.array.data = (void *)(uintptr_t)(all + (one ? 0 : (size_t)index * bytes));
        if (want && m->head.fortran && bytes)
            OCT_TRY(oct_feed_gather(f, &m->head, all, index, &p.array, err));
    } else if (!want) {
        return inflate_next(m, NULL, bytes, err);
    } else {
        p.array.bytes = bytes;
        p.array.owned = true;
        if (!(p.array.data = oct_alloc(bytes)))
            return oct_nomem(err);
        oct_status s = inflate_next(m, p.array.data, bytes, err);
        if (s != OCT_OK) {
            oct_array_free(&p.array);
            return s;
        }
    }
    if (want && m->head.dtype == OCT_STRING)
        OCT_TRY(take_texts(r, m, &p, err));
    if (want && r->lengths && r->cut[input])
        cut_row(&p.array, r->lengths[index]);
    if (want)
        *part = p;
    return OCT_OK;
}

/* Whether an input uses a deflated array that another input has read already: such an array is inflated only once. */
static bool is_ahead(const set *r, size_t input)
{
    for (size_t k = 0; k < input; k++)
        if (r->feeds[k].array == r->feeds[input].array)
            return r->members[r->feeds[input].array].deflated;
    return false;
}

/* Passes over n samples of an array that is inflated sample by sample; *n: their number before a failure. */
static oct_status pass_input(set *r, size_t input, int64_t *n, oct_err *err)
{
    const oct_feed *f = &r->feeds[input];
    member *m = &r->members[f->array];
    oct_part p = { 0 };
    oct_feed_shape(f, &m->shape, &p);
    if (!m->deflated || is_at_once(f, m))
        return OCT_OK;
    const uint64_t before = m->made;
    const size_t bytes = stored_bytes(m, &p);
    oct_status s = inflate_next(m, NULL, (uint64_t)*n * bytes, err);
    if (s != OCT_OK) {
        const int64_t whole = bytes ? (int64_t)((m->made - before) / bytes) : 0;
        *n = whole < *n ? whole : *n - 1; /* a wrong checksum shows behind the last one */
        oct_within(err, "%s: array '%s'", r->path, r->names[f->array]);
    }
    return s;
}

static oct_status set_pass(void *self, int64_t n, int64_t *passed, oct_err *err)
{
    set *r = self;
    oct_status s = OCT_OK;
    *passed = n < r->count - r->at ? n : r->count - r->at;
    for (size_t i = 0; i < r->n_inputs; i++)
        if (is_ahead(r, i))
            *passed = 0; /* set_next says so */
    for (size_t i = 0; *passed && i < r->n_inputs; i++) {
        const oct_status one = pass_input(r, i, passed, err); /* of two failures, the one of the earlier sample */
        s = one != OCT_OK ? one : s;
    }
    r->at += *passed;
    return s;
}

static oct_status set_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    set *r = self;
    if (r->at >= r->count) {
        *end = true;
        return OCT_OK;
    }
    int64_t index = r->at++;
    if (!(item->name = oct_strprintf("%s[%lld]", r->path, (long long)index)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->n_inputs; i++) {
        if (is_ahead(r, i)) {
            *end = true;
            return oct_fail(err, OCT_EUNSUPPORTED, "%s: array '%s' would feed two inputs", r->path,
                            r->names[r->feeds[i].array]);
        }
        oct_status s = fill(r, i, index, want, &item->parts[r->part[i]], err);
        if (s != OCT_OK) {
            *end = true; /* a broken stream has no next sample */
            return oct_within(err, "%s: array '%s'", r->path, r->names[r->feeds[i].array]), s;
        }
    }
    return OCT_OK;
}

static oct_status set_rewind(void *self, oct_err *err)
{
    set *r = self;
    r->at = 0;
    for (size_t i = 0; i < r->n; i++) {
        oct_free(r->members[i].whole);
        r->members[i].whole = NULL;
        if (r->members[i].deflated && r->names[i][0])
            OCT_TRY(read_head(&r->members[i], err));
    }
    return OCT_OK;
}

/* numpy.savez calls what has no name arr_0. */
static const char *set_other_name(void *self)
{
    const set *r = self;
    const bool alone = r->n == 1 && r->n_inputs == 1;
    return alone && strcmp(r->names[0], "arr_0") != 0 && !oct_feed_matches(r->names[0], r->inputs[0].name) ? r->names[0]
                                                                                                           : NULL;
}

static bool npz_claims(const char *path, bool is_folder)
{
    return oct_has_suffix(path, ".npz") && !is_folder;
}

/* An .npz with one array per input, samples along the first axis. */
const oct_reader oct_read_npz = {
    .claims = npz_claims,
    .open = npz_open,
    .count = set_count,
    .next = set_next,
    .pass = set_pass,
    .rewind = set_rewind,
    .other_name = set_other_name,
    .close = set_close,
};
