/* lib/data/arrays/tensorproto.c -- a separate reader for ONNX TensorProto files (test cases): one pass over the wire
 * format, without recursion; nothing is allocated before sizes are known to fit the file. */
#include "data/readers/readers.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>

typedef struct wire {
    const uint8_t *p, *end;
} wire;

/* A field: its number, and its value or its bytes. */
typedef struct field {
    uint64_t number;
    int type; /* 0 varint, 1 64-bit, 2 bytes, 5 32-bit */
    uint64_t value;
    wire bytes; /* of types 1, 2 and 5 */
} field;

static bool varint(wire *w, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t b = *w->p++;
        *v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return true;
    }
    return false;
}

static bool next_field(wire *w, field *f)
{
    uint64_t key, n;
    if (!varint(w, &key))
        return false;
    f->number = key >> 3;
    f->type = (int)(key & 7);
    switch (f->type) {
    case 0: return varint(w, &f->value);
    case 1: n = 8; break;
    case 5: n = 4; break;
    case 2:
        if (!varint(w, &n))
            return false;
        break;
    default: return false; /* groups are not used by ONNX */
    }
    if (n > (uint64_t)(w->end - w->p))
        return false;
    f->bytes = (wire){ w->p, w->p + n };
    w->p += n;
    return f->number != 0;
}

typedef struct proto {
    int64_t dims[OCT_ARRAY_RANK];
    int rank;
    uint64_t dtype;
    wire name, raw;
    bool has_raw, external, too_deep, strings;
} proto;

/* The element size of a type in a typed field; 0: the field cannot hold this type. */
static size_t typed_size(uint64_t number, oct_dtype t)
{
    size_t size = (size_t)oct_dtype_bits(t) / 8;
    switch (number) {
    case 4: return t == OCT_F32 ? 4 : t == OCT_C64 ? 4 : 0;
    case 5:
        if (oct_dtype_bits(t) < 8)
            return 1; /* packed: a byte of elements in each int32 */
        return size <= 4 && t != OCT_F32 && t != OCT_U32 ? size : 0;
    case 7: return t == OCT_S64 ? 8 : 0;
    case 10: return t == OCT_F64 ? 8 : t == OCT_C128 ? 8 : 0;
    case 11: return t == OCT_U64 ? 8 : t == OCT_U32 ? 4 : 0;
    default: return 0;
    }
}

/* Walks the values of one occurrence of a typed field; stores them when dst is given. */
static bool typed_values(const field *f, size_t size, uint8_t *dst, size_t room, size_t *n)
{
    const size_t fixed = f->number == 4 ? 4 : f->number == 10 ? 8 : 0;
    if (f->type == 0) {
        if (fixed || (dst && *n >= room))
            return false;
        if (dst)
            memcpy(dst + *n * size, &f->value, size);
        ++*n;
        return true;
    }
    wire w = f->bytes;
    if ((fixed == 0 && f->type != 2) || (f->type != 2 && (size_t)(w.end - w.p) != fixed))
        return false;
    while (w.p < w.end) {
        uint64_t v = 0;
        if (fixed) {
            if ((size_t)(w.end - w.p) < fixed)
                return false;
            memcpy(&v, w.p, fixed);
            w.p += fixed;
        } else if (!varint(&w, &v)) {
            return false;
        }
        if (dst && *n >= room)
            return false;
        if (dst)
            memcpy(dst + *n * size, &v, size);
        ++*n;
    }
    return true;
}

static bool read_dims(const field *f, proto *t)
{
    wire w = f->bytes;
    bool packed = f->type == 2;
    if (!packed && f->type != 0)
        return false;
    while (!packed || w.p < w.end) {
        uint64_t v = f->value;
        if (packed && !varint(&w, &v))
            return false;
        if (t->rank == OCT_ARRAY_RANK)
            t->too_deep = true;
        else
            t->dims[t->rank++] = (int64_t)v;
        if (!packed)
            break;
    }
    return true;
}

static bool scan(wire w, proto *t)
{
    field f = { 0 };
    while (w.p < w.end) {
        if (!next_field(&w, &f))
            return false;
        bool ok = true;
        switch (f.number) {
        case 1: ok = read_dims(&f, t); break;
        case 2:
            ok = f.type == 0;
            t->dtype = f.value;
            break;
        case 6: t->strings = true; break;
        case 8:
            ok = f.type == 2;
            t->name = f.bytes;
            break;
        case 9:
            ok = f.type == 2;
            t->raw = f.bytes;
            t->has_raw = true;
            break;
        case 13: t->external = true; break;
        case 14: t->external |= f.type == 0 && f.value == 1; break;
        default: break;
        }
        if (!ok)
            return false;
    }
    return true;
}

static oct_status fill_typed(wire w, oct_array *a, oct_err *err)
{
    const int bits = oct_dtype_bits(a->dtype);
    size_t n = 0;
    field f;
    while (w.p < w.end && next_field(&w, &f)) {
        size_t size = typed_size(f.number, a->dtype);
        if (size == 0)
            continue;
        if (!typed_values(&f, size, a->data, a->bytes / size, &n))
            return oct_fail(err, OCT_EMALFORMED, "tensor: values do not fit its shape");
    }
    size_t size = bits < 8 ? 1 : a->dtype == OCT_C64 ? 4 : a->dtype == OCT_C128 ? 8 : (size_t)bits / 8;
    if (n * size != a->bytes)
        return oct_fail(err, OCT_EMALFORMED, "tensor: %zu values, its shape needs %zu", n, a->bytes / size);
    return OCT_OK;
}

static oct_status check(const proto *t, size_t file, oct_err *err)
{
    size_t bytes;
    int64_t n;
    char text[96];
    if (t->too_deep)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor of more than %d dimensions", OCT_ARRAY_RANK);
    if (t->external)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor with external data");
    if (t->strings || t->dtype == OCT_STRING)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor of strings");
    if (t->dtype == 0 || t->dtype >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "not a TensorProto, or of an unknown element type (%llu)",
                        (unsigned long long)t->dtype);
    if (!oct_count(t->dims, t->rank, &n) || !oct_dtype_bytes((oct_dtype)t->dtype, n, &bytes))
        return oct_fail(err, OCT_EMALFORMED, "tensor: shape %s has no valid size",
                        oct_dims_text(text, t->rank, t->dims));
    if (t->has_raw && bytes != (size_t)(t->raw.end - t->raw.p))
        return oct_fail(err, OCT_EMALFORMED, "tensor: %zu bytes of data, its shape needs %zu",
                        (size_t)(t->raw.end - t->raw.p), bytes);
    if (!t->has_raw && bytes / 8 > file) /* a typed value takes at least one byte of the file and gives at most 8 */
        return oct_fail(err, OCT_EMALFORMED, "tensor: shape %s needs more data than the file has",
                        oct_dims_text(text, t->rank, t->dims));
    return OCT_OK;
}

oct_status oct_pb_parse(const void *p, size_t n, oct_array *a, char **name, oct_err *err)
{
    *a = (oct_array){ 0 };
    if (name)
        *name = NULL;
    const wire w = { p, p ? (const uint8_t *)p + n : p };
    proto t = { 0 };
    if (!scan(w, &t))
        return oct_fail(err, OCT_EMALFORMED, "not a TensorProto, or cut short");
    OCT_TRY(check(&t, n, err));
    OCT_TRY(oct_array_create(a, (oct_dtype)t.dtype, t.rank, t.dims, err));
    oct_status s = OCT_OK;
    if (t.has_raw && a->bytes)
        memcpy(a->data, t.raw.p, a->bytes);
    else if (!t.has_raw)
        s = fill_typed(w, a, err);
    size_t len = (size_t)(t.name.end - t.name.p);
    if (s == OCT_OK && name) {
        if (len && memchr(t.name.p, 0, len))
            s = oct_fail(err, OCT_EMALFORMED, "tensor: its name holds a NUL");
        else if (!(*name = oct_alloc(len + 1)))
            s = oct_nomem(err);
        else {
            if (len)
                memcpy(*name, t.name.p, len);
            (*name)[len] = 0;
        }
    }
    if (s != OCT_OK)
        oct_array_free(a);
    return s;
}

oct_status oct_pb_load(const char *path, oct_array *a, char **name, oct_err *err)
{
    *a = (oct_array){ 0 };
    oct_map m;
    OCT_TRY(oct_map_open(&m, path, err));
    oct_status s = oct_pb_parse(m.data, m.size, a, name, err);
    if (s != OCT_OK)
        oct_within(err, "%s", path);
    oct_map_close(&m);
    return s;
}
