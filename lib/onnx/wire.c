/* The iterative walk over the wire format, and the shortened copy without large raw_data. */
#include "onnx/wire.h"

#include "base/little_endian.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "onnx/onnx.pb-c.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5, RAW_DATA = 9 };

/* A message being walked. */
typedef struct frame {
    const ProtobufCMessageDescriptor *type;
    size_t end;
    size_t len_at;   /* where its length stands in the shortened copy */
    size_t len_size; /* bytes of that length */
    size_t len;
    size_t removed; /* bytes left out so far */
    uint64_t seen;  /* singular message fields, by index */
} frame;

typedef struct walk {
    const uint8_t *p;
    size_t size, at;
    size_t copied; /* input bytes before this one are in the copy */
    uint64_t cost, budget;
    frame stack[OCT_WIRE_DEPTH];
    int depth;
    oct_wire *w;
    oct_err *err;
} walk;

static oct_status bad(walk *k, const char *what)
{
    return oct_fail(k->err, OCT_EMALFORMED, "byte %zu: %s", k->at, what);
}

static oct_status bad_field(walk *k, const ProtobufCFieldDescriptor *f, const char *what)
{
    return oct_fail(k->err, OCT_EMALFORMED, "byte %zu: field '%s' of %s %s", k->at, f->name,
                    k->stack[k->depth - 1].type->short_name, what);
}

/* Reads a varint of at most max bytes that ends before `end`; 0 bytes: there is none. */
static size_t varint(const uint8_t *p, size_t at, size_t end, size_t max, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < max && at + i < end; i++) {
        *v |= (uint64_t)(p[at + i] & 0x7f) << (7 * i);
        if (p[at + i] < 0x80)
            return i + 1;
    }
    return 0;
}

/* ---- the shortened copy ---- */

static bool put(oct_wire *w, const void *p, size_t n)
{
    if (n > w->cap_own - w->size) {
        size_t need, cap = w->cap_own ? w->cap_own : 4096;
        if (!oct_add_size(w->size, n, &need))
            return false;
        while (cap < need)
            if (!oct_mul_size(cap, 2, &cap))
                return false;
        uint8_t *q = oct_realloc(w->own, w->size, cap);
        if (!q)
            return false;
        w->own = q;
        w->cap_own = cap;
    }
    if (n)
        memcpy(w->own + w->size, p, n);
    w->size += n;
    return true;
}

static bool put_extent(oct_wire *w, size_t at, size_t len)
{
    if (w->n_extent == w->cap_extent) {
        size_t cap = w->cap_extent ? 2 * w->cap_extent : 64, bytes;
        oct_wire_extent *q =
            oct_mul_size(cap, sizeof *q, &bytes) ? oct_realloc(w->extent, w->n_extent * sizeof *q, bytes) : NULL;
        if (!q)
            return false;
        w->extent = q;
        w->cap_extent = cap;
    }
    w->extent[w->n_extent++] = (oct_wire_extent){ at, len };
    return true;
}

/* Omits raw_data whose length field (n bytes) is at k->at, followed by its bytes. */
static oct_status cut(walk *k, size_t n, size_t len)
{
    uint8_t token[1 + OCT_WIRE_TOKEN] = { OCT_WIRE_TOKEN };
    oct_le_put(token + 1, k->w->n_extent, OCT_WIRE_TOKEN);
    if (!put(k->w, k->p + k->copied, k->at - k->copied) || !put(k->w, token, sizeof token) ||
        !put_extent(k->w, k->at + n, len))
        return oct_nomem(k->err);
    k->copied = k->at + n + len;
    k->stack[k->depth - 1].removed += n - 1 + len - OCT_WIRE_TOKEN;
    return OCT_OK;
}

/* A message ended: writes its new length over the old one, as wide as before (padded varints are legal). */
static void pop(walk *k)
{
    frame *f = &k->stack[--k->depth];
    if (f->removed && k->depth) {
        size_t len = f->len - f->removed;
        for (size_t i = 0; i < f->len_size; i++, len >>= 7)
            k->w->own[f->len_at + i] = (uint8_t)((len & 0x7f) | (i + 1 < f->len_size ? 0x80 : 0));
        k->stack[k->depth - 1].removed += f->removed;
    }
}

/* ---- fields ---- */

static oct_status charge(walk *k, uint64_t bytes)
{
    k->cost += bytes;
    if (k->cost > k->budget)
        return oct_fail(
            k->err, OCT_EMALFORMED,
            "byte %zu: unpacked, the message would need more than %llu MB, far more than its size justifies", k->at,
            (unsigned long long)(k->budget >> 20));
    return OCT_OK;
}

static size_t element_size(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    default: return 4;
    }
}

static int wire_of(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_FLOAT: return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE: return WIRE_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return WIRE_LENGTH;
    default: return WIRE_VARINT;
    }
}

static bool is_utf8(const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len)
        if (oct_utf8_char(s + i, n - i, &len) == OCT_BAD_CHAR && len == 1)
            return false;
    return true;
}

static oct_status check_string(walk *k, const ProtobufCFieldDescriptor *f, const uint8_t *s, size_t len)
{
    if (len && memchr(s, 0, len))
        return bad_field(k, f, "holds a NUL byte");
    const ProtobufCMessageDescriptor *type = k->stack[k->depth - 1].type;
    if (strcmp(f->name, "doc_string") == 0 || type == &onnx__string_string_entry_proto__descriptor)
        return OCT_OK;
    return is_utf8((const char *)s, len) ? OCT_OK : bad_field(k, f, "is not UTF-8");
}

static oct_status check_packed(walk *k, const ProtobufCFieldDescriptor *f, const uint8_t *s, size_t len)
{
    int wire = wire_of(f->type);
    size_t count = 0, run = 0;
    if (wire != WIRE_VARINT) {
        size_t unit = wire == WIRE_32 ? 4 : 8;
        if (len % unit)
            return bad_field(k, f, "does not hold whole elements");
        count = len / unit;
    }
    for (size_t i = 0; wire == WIRE_VARINT && i < len; i++) {
        if (++run > 10)
            return bad_field(k, f, "holds a number that is too long");
        if (s[i] < 0x80) {
            run = 0;
            count++;
        }
    }
    if (run)
        return bad_field(k, f, "ends inside a number");
    return charge(k, (uint64_t)count * element_size(f->type) + 16);
}

static oct_status push(walk *k, const ProtobufCFieldDescriptor *f, size_t n, size_t len)
{
    frame *top = &k->stack[k->depth - 1];
    size_t index = (size_t)(f - top->type->fields);
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        if (index < 64 && (top->seen >> index & 1))
            return oct_fail(k->err, OCT_EUNSUPPORTED, "byte %zu: field '%s' of %s is given twice", k->at, f->name,
                            top->type->short_name);
        top->seen |= index < 64 ? (uint64_t)1 << index : 0;
    }
    if (k->depth == OCT_WIRE_DEPTH)
        return oct_fail(k->err, OCT_EMALFORMED, "byte %zu: messages are nested deeper than %d levels", k->at,
                        OCT_WIRE_DEPTH);
    const ProtobufCMessageDescriptor *type = f->descriptor;
    OCT_TRY(charge(k, type->sizeof_message + 24));
    k->stack[k->depth++] = (frame){
        .type = type, .end = k->at + n + len, .len_at = k->w->size + (k->at - k->copied), .len_size = n, .len = len
    };
    k->at += n;
    return OCT_OK;
}

/* A length-prefixed field; k->at stands on the length. */
static oct_status length_field(walk *k, const ProtobufCFieldDescriptor *f)
{
    frame *top = &k->stack[k->depth - 1];
    uint64_t len;
    size_t n = varint(k->p, k->at, top->end, 5, &len);
    if (!n)
        return bad(k, "a length has no end");
    if (len > top->end - k->at - n)
        return bad(k, "a length runs past the end");
    const uint8_t *s = k->p + k->at + n;
    oct_status r = OCT_OK;
    if (!f) {
        r = charge(k, len + 80);
    } else if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        return push(k, f, n, (size_t)len);
    } else if (f->type == PROTOBUF_C_TYPE_STRING) {
        r = check_string(k, f, s, (size_t)len);
        if (r == OCT_OK)
            r = charge(k, len + 32);
    } else if (f->type == PROTOBUF_C_TYPE_BYTES) {
        if (top->type == &onnx__tensor_proto__descriptor && f->id == RAW_DATA && len >= OCT_WIRE_TOKEN)
            r = cut(k, n, (size_t)len);
        else
            r = charge(k, len + 40);
    } else if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        r = check_packed(k, f, s, (size_t)len);
    } else {
        r = bad_field(k, f, "has the wrong wire type");
    }
    k->at += n + (size_t)len;
    return r;
}

static oct_status field(walk *k)
{
    frame *top = &k->stack[k->depth - 1];
    uint64_t tag, value;
    size_t n = varint(k->p, k->at, top->end, 5, &tag);
    if (!n)
        return bad(k, "a field's number has no end");
    int wire = (int)(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return bad(k, "a field's number is out of range");
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(top->type, (unsigned)(tag >> 3));
    if (f && wire != WIRE_LENGTH && wire != wire_of(f->type))
        return bad_field(k, f, "has the wrong wire type");
    k->at += n;
    switch (wire) {
    case WIRE_LENGTH: return length_field(k, f);
    case WIRE_VARINT: n = varint(k->p, k->at, top->end, 10, &value); break;
    case WIRE_64: n = top->end - k->at < 8 ? 0 : 8; break;
    case WIRE_32: n = top->end - k->at < 4 ? 0 : 4; break;
    default: return bad(k, "a field's wire type is none of those in use");
    }
    if (!n)
        return bad(k, "a number has no end");
    k->at += n;
    return charge(k, f ? 8 : 80);
}

oct_status oct_wire_check(const uint8_t *data, size_t size, const ProtobufCMessageDescriptor *type, oct_wire *w,
                          oct_err *err)
{
    *w = (oct_wire){ 0 };
    walk *k = oct_calloc(1, sizeof *k);
    if (!k)
        return oct_nomem(err);
    *k = (walk){ .p = data, .size = size, .w = w, .err = err, .depth = 1 };
    k->budget = OCT_WIRE_BASE + (uint64_t)OCT_WIRE_RATIO * size;
    k->stack[0] = (frame){ .type = type, .end = size, .len = size };
    oct_status s = OCT_OK;
    while (s == OCT_OK && k->depth) {
        if (k->at == k->stack[k->depth - 1].end)
            pop(k);
        else
            s = field(k);
    }
    if (s == OCT_OK && w->n_extent && !put(w, data + k->copied, size - k->copied))
        s = oct_nomem(err);
    oct_free(k);
    if (s != OCT_OK) {
        oct_wire_free(w);
        return s;
    }
    if (!w->n_extent)
        w->size = size;
    w->bytes = w->n_extent ? w->own : data;
    return OCT_OK;
}

void oct_wire_free(oct_wire *w)
{
    oct_free(w->own);
    oct_free(w->extent);
    *w = (oct_wire){ 0 };
}
