/* lib/data/arrays/npy.c -- reading and writing the header of .npy files, and whole arrays. */
#include "data/arrays/npy.h"

#include "base/io.h"
#include "base/little_endian.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static const struct {
    char text[4];
    oct_dtype type;
} descrs[] = {
    { "f4", OCT_F32 }, { "f8", OCT_F64 }, { "f2", OCT_F16 }, { "u1", OCT_U8 },  { "i1", OCT_S8 },  { "b1", OCT_BOOL },
    { "i2", OCT_S16 }, { "u2", OCT_U16 }, { "i4", OCT_S32 }, { "u4", OCT_U32 }, { "i8", OCT_S64 }, { "u8", OCT_U64 },
};

size_t oct_npy_header_size(const void *p, size_t n)
{
    const uint8_t *b = p;
    if (n < 10 || memcmp(b, "\x93NUMPY", 6) != 0 || b[6] < 1 || b[6] > 3)
        return 0;
    if (b[6] == 1)
        return 10u + b[8] + 256u * b[9];
    if (n < 12 || b[10] || b[11]) /* longer than 65535: no array of numbers needs that */
        return 0;
    return 12u + b[8] + 256u * b[9];
}

/* A cursor over the header's Python dictionary. */
typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool eat(cursor *c, char ch)
{
    skip_space(c);
    if (c->p < c->end && *c->p == ch) {
        c->p++;
        return true;
    }
    return false;
}

/* A quoted string without escapes, cut to size - 1. */
static bool eat_string(cursor *c, char *dst, size_t size)
{
    skip_space(c);
    if (c->p >= c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != quote) {
        if (n + 1 < size)
            dst[n++] = *c->p;
        c->p++;
    }
    dst[n] = 0;
    return c->p++ < c->end;
}

static bool eat_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool eat_dim(cursor *c, int64_t *v)
{
    skip_space(c);
    const char *start = c->p;
    *v = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
        if (__builtin_mul_overflow(*v, (int64_t)10, v) || __builtin_add_overflow(*v, (int64_t)(*c->p - '0'), v))
            return false;
        c->p++;
    }
    if (c->p == start)
        return false;
    if (c->p < c->end && *c->p == 'L') /* written by Python 2 */
        c->p++;
    return true;
}

/* Texts of a fixed length: U and a number of characters, or S and one of bytes. */
static bool parse_text_type(const char *name, oct_npy *h)
{
    enum { MOST = 1 << 20 };
    const char *at = name + 1;
    size_t n = 0;
    for (; *at >= '0' && *at <= '9' && n <= MOST; at++)
        n = 10 * n + (size_t)(*at - '0');
    if ((name[0] != 'U' && name[0] != 'S') || at == name + 1 || *at || n > MOST)
        return false;
    h->dtype = OCT_STRING;
    h->utf32 = name[0] == 'U';
    h->text = h->utf32 ? 4 * n : n;
    return true;
}

static oct_status parse_descr(cursor *c, oct_npy *h, oct_err *err)
{
    char d[64];
    if (!eat_string(c, d, sizeof d))
        return oct_fail(err, OCT_EUNSUPPORTED, "structured arrays are not supported");
    if (d[0] == '>' && strcmp(d + 1, "u1") != 0 && strcmp(d + 1, "i1") != 0 && strcmp(d + 1, "b1") != 0) {
        oct_fail(err, OCT_EUNSUPPORTED, "big-endian element type '%s'", d);
        oct_hint(err, "store it little-endian: x.astype(x.dtype.newbyteorder('<'))");
        return OCT_EUNSUPPORTED;
    }
    const char *name = d + (d[0] == '<' || d[0] == '|' || d[0] == '=' || d[0] == '>');
    for (size_t i = 0; i < OCT_COUNT(descrs); i++)
        if (strcmp(name, descrs[i].text) == 0) {
            h->dtype = descrs[i].type;
            return OCT_OK;
        }
    if (parse_text_type(name, h))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "element type '%s' is not supported", d);
    oct_hint(err, "numbers of bool, 8 to 64-bit integers, float16, float32 and float64 are, and texts for inputs of "
                  "strings; objects are not: x.astype(str) makes texts of them");
    return OCT_EUNSUPPORTED;
}

static oct_status parse_shape(cursor *c, oct_npy *h, oct_err *err)
{
    if (!eat(c, '('))
        return oct_fail(err, OCT_EMALFORMED, "broken .npy header: shape");
    while (!eat(c, ')')) {
        int64_t v;
        if (!eat_dim(c, &v))
            return oct_fail(err, OCT_EMALFORMED, "broken .npy header: shape");
        if (h->rank == OCT_ARRAY_RANK)
            return oct_fail(err, OCT_EUNSUPPORTED, "more than %d dimensions", OCT_ARRAY_RANK);
        h->dims[h->rank++] = v;
        if (!eat(c, ',')) {
            if (!eat(c, ')'))
                return oct_fail(err, OCT_EMALFORMED, "broken .npy header: shape");
            break;
        }
    }
    return OCT_OK;
}

static bool bytes_of(const oct_npy *h, size_t *bytes)
{
    return h->dtype == OCT_STRING ? oct_mul_size((size_t)h->count, h->text, bytes)
                                  : oct_dtype_bytes(h->dtype, h->count, bytes);
}

oct_status oct_npy_parse_any(const void *p, size_t n, oct_npy *h, oct_err *err)
{
    *h = (oct_npy){ 0 };
    size_t size = oct_npy_header_size(p, n);
    if (size == 0) {
        oct_fail(err, OCT_EMALFORMED, n == 0 ? "empty, expected an .npy file" : "not an .npy file");
        oct_hint(err, "numpy.save writes such files");
        return OCT_EMALFORMED;
    }
    if (n < size)
        return oct_fail(err, OCT_EMALFORMED, "cut short in the .npy header");
    const char *b = p;
    cursor c = { b + (b[6] == 1 ? 10 : 12), b + size };
    bool descr = false, order = false, shape = false;
    if (!eat(&c, '{'))
        return oct_fail(err, OCT_EMALFORMED, "broken .npy header");
    while (!eat(&c, '}')) {
        char key[24];
        if (!eat_string(&c, key, sizeof key) || !eat(&c, ':'))
            return oct_fail(err, OCT_EMALFORMED, "broken .npy header");
        if (strcmp(key, "descr") == 0 && !descr) {
            OCT_TRY(parse_descr(&c, h, err));
            descr = true;
        } else if (strcmp(key, "fortran_order") == 0 && !order) {
            h->fortran = eat_word(&c, "True");
            if (!h->fortran && !eat_word(&c, "False"))
                return oct_fail(err, OCT_EMALFORMED, "broken .npy header: fortran_order");
            order = true;
        } else if (strcmp(key, "shape") == 0 && !shape) {
            OCT_TRY(parse_shape(&c, h, err));
            shape = true;
        } else {
            return oct_fail(err, OCT_EMALFORMED, "broken .npy header: unexpected key '%s'", key);
        }
        if (!eat(&c, ',')) {
            if (!eat(&c, '}'))
                return oct_fail(err, OCT_EMALFORMED, "broken .npy header");
            break;
        }
    }
    if (!descr || !order || !shape)
        return oct_fail(err, OCT_EMALFORMED, "broken .npy header: descr, fortran_order or shape is missing");
    if (h->rank <= 1)
        h->fortran = false; /* the same bytes */
    char text[96];
    if (!oct_count(h->dims, h->rank, &h->count) || !bytes_of(h, &h->bytes))
        return oct_fail(err, OCT_EMALFORMED, "shape %s has no valid size", oct_dims_text(text, h->rank, h->dims));
    h->offset = size;
    return OCT_OK;
}

oct_status oct_npy_parse(const void *p, size_t n, oct_npy *h, oct_err *err)
{
    OCT_TRY(oct_npy_parse_any(p, n, h, err));
    return h->dtype == OCT_STRING ? oct_fail(err, OCT_EUNSUPPORTED, "an array of texts, expected numbers") : OCT_OK;
}

size_t oct_npy_element(const oct_npy *h)
{
    return h->dtype == OCT_STRING ? h->text : (size_t)oct_dtype_bits(h->dtype) / 8;
}

/* Appends a character; false if there is none of this number. */
static bool put_char(char *to, size_t *n, uint32_t c)
{
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return false;
    if (c < 0x80) {
        to[(*n)++] = (char)c;
        return true;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    to[(*n)++] = (char)((0xFF00 >> (more + 1) & 0xFF) | c >> 6 * more);
    for (int k = more; k-- > 0;)
        to[(*n)++] = (char)(0x80 | (c >> 6 * k & 0x3F));
    return true;
}

oct_status oct_npy_texts(const oct_npy *h, const uint8_t *data, int64_t n, oct_interned *texts, oct_str *to,
                         oct_err *err)
{
    char *text = oct_alloc(h->text + 1); /* UTF-8 takes no more bytes than UTF-32 */
    if (!text)
        return oct_nomem(err);
    oct_status s = OCT_OK;
    for (int64_t i = 0; i < n && s == OCT_OK; i++) {
        const uint8_t *from = data + (size_t)i * h->text;
        size_t length = h->text, bytes = 0;
        while (length && !from[length - 1])
            length--;
        for (size_t k = 0; h->utf32 && k < length && s == OCT_OK; k += 4) {
            const uint32_t c =
                from[k] | (uint32_t)from[k + 1] << 8 | (uint32_t)from[k + 2] << 16 | (uint32_t)from[k + 3] << 24;
            if (!put_char(text, &bytes, c))
                s = oct_fail(err, OCT_EMALFORMED, "text %lld of a sample has 0x%x, which is no character", (long long)i,
                             (unsigned)c);
        }
        if (s == OCT_OK)
            s = oct_intern(texts, h->utf32 ? text : (const char *)from, h->utf32 ? bytes : length, &to[i], err);
    }
    oct_free(text);
    return s;
}

static bool put_header(oct_buf *out, const char *descr, int rank, const int64_t *dims, size_t min_size)
{
    size_t start = out->len;
    oct_buf_add(out, "\x93NUMPY\x01\x00\x00\x00", 10);
    oct_buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        oct_buf_printf(out, "%lld%s", (long long)dims[i], i + 1 < rank ? ", " : rank == 1 ? "," : "");
    oct_buf_puts(out, "), }");
    while (!out->failed && ((out->len - start + 1) % 64 != 0 || out->len - start + 1 < min_size))
        oct_buf_puts(out, " ");
    oct_buf_puts(out, "\n");
    if (out->failed)
        return false;
    size_t text = out->len - start - 10;
    out->data[start + 8] = (char)(text & 255);
    out->data[start + 9] = (char)(text >> 8);
    return true;
}

bool oct_npy_header(oct_buf *out, oct_dtype dtype, int rank, const int64_t *dims, size_t min_size)
{
    char descr[8];
    for (size_t i = 0; i < OCT_COUNT(descrs); i++)
        if (descrs[i].type == dtype) {
            snprintf(descr, sizeof descr, "%c%s", oct_dtype_bits(dtype) == 8 ? '|' : '<', descrs[i].text);
            return put_header(out, descr, rank, dims, min_size);
        }
    return false;
}

bool oct_npy_header_text(oct_buf *out, size_t width, int rank, const int64_t *dims, size_t min_size)
{
    char descr[32];
    snprintf(descr, sizeof descr, "<U%zu", width);
    return put_header(out, descr, rank, dims, min_size);
}

bool oct_npy_put_texts(oct_buf *out, const oct_str *text, int64_t n, int rank, const int64_t *dims)
{
    size_t width = 1, len; /* numpy has no texts without room */
    for (int64_t i = 0; i < n; i++) {
        size_t count = 0;
        for (size_t at = 0; at < text[i].n; at += len, count++)
            oct_utf8_char(text[i].s + at, text[i].n - at, &len);
        width = count > width ? count : width;
    }
    if (!oct_npy_header_text(out, width, rank, dims, 0))
        return false;
    for (int64_t i = 0; i < n; i++) {
        size_t at = 0;
        for (size_t k = 0; k < width; k++, at += at < text[i].n ? len : 0) {
            const bool more = at < text[i].n;
            oct_buf_add_le(out, more ? oct_utf8_char(text[i].s + at, text[i].n - at, &len) : 0, 4);
        }
    }
    return !out->failed;
}

void oct_npy_gather(const oct_npy *h, const uint8_t *data, int64_t first, int64_t n, void *dst)
{
    const size_t size = oct_npy_element(h);
    int64_t at[OCT_ARRAY_RANK] = { first };
    for (int i = 1; i < h->rank; i++)
        n *= h->dims[i];
    uint8_t *out = dst;
    for (int64_t k = 0; k < n; k++) {
        int64_t off = 0;
        for (int i = h->rank - 1; i >= 0; i--)
            off = off * h->dims[i] + at[i];
        memcpy(out, data + (size_t)off * size, size);
        out += size;
        for (int i = h->rank - 1; i >= 0; i--) {
            if (++at[i] < h->dims[i])
                break;
            at[i] = 0;
        }
    }
}

/* The array of a mapped file. */
static oct_status load(const oct_map *m, oct_array *a, oct_err *err)
{
    oct_npy h;
    OCT_TRY(oct_npy_parse(m->data, m->size, &h, err));
    if (m->size - h.offset < h.bytes)
        return oct_fail(err, OCT_EMALFORMED, "cut short: %zu bytes of data, %zu expected", m->size - h.offset, h.bytes);
    OCT_TRY(oct_array_create(a, h.dtype, h.rank, h.dims, err));
    if (!h.fortran) {
        if (h.bytes)
            memcpy(a->data, m->data + h.offset, h.bytes);
    } else {
        oct_npy_gather(&h, m->data + h.offset, 0, h.dims[0], a->data);
    }
    return OCT_OK;
}

oct_status oct_npy_load(const char *path, oct_array *a, oct_err *err)
{
    *a = (oct_array){ 0 };
    oct_map m;
    OCT_TRY(oct_map_open(&m, path, err));
    oct_status s = load(&m, a, err);
    if (s != OCT_OK) {
        oct_array_free(a);
        oct_within(err, "%s", path);
    }
    oct_map_close(&m);
    return s;
}
