/* The first difference of two messages, found by the schema's descriptors. */
#include "onnx/differ.h"

#include "onnx/proto.h"

#include <string.h>

typedef struct path {
    const struct path *up;
    const char *field;
    size_t index;
    const ProtobufCMessage *at; /* it is named after what it holds */
} path;

typedef ProtobufCFieldDescriptor field;

static const void *member(const ProtobufCMessage *m, const field *f)
{
    return (const char *)m + f->offset;
}

static size_t quantifier(const ProtobufCMessage *m, const field *f)
{
    const void *q = (const char *)m + f->quantifier_offset;
    return f->label == PROTOBUF_C_LABEL_REPEATED ? *(const size_t *)q : (size_t) * (const int32_t *)q;
}

static const char *text_of(const ProtobufCMessage *m, const char *name)
{
    const field *f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);
    return f && f->type == PROTOBUF_C_TYPE_STRING && f->label != PROTOBUF_C_LABEL_REPEATED
               ? *(char *const *)member(m, f)
               : NULL;
}

/* "graph, node 'conv1' (Conv), attribute 'pads'" */
static void put_path(const path *p, oct_buf *b)
{
    if (p->up)
        put_path(p->up, b);
    const char *name = text_of(p->at, "name"), *op = text_of(p->at, "op_type");
    if (!name || !*name)
        name = text_of(p->at, "key");
    oct_buf_printf(b, "%s%s", b->len ? ", " : "", p->field);
    if (name && *name)
        oct_buf_printf(b, " '%.200s'", name);
    else if (p->up)
        oct_buf_printf(b, " %zu", p->index);
    if (op)
        oct_buf_printf(b, " (%.60s)", op);
}

static void begin(const path *p, const char *name, oct_buf *b)
{
    if (p)
        put_path(p, b);
    oct_buf_printf(b, "%s%s", b->len ? ": " : "", name);
}

/* ---- values ---- */

static bool is_wide(const field *f)
{
    return f->type == PROTOBUF_C_TYPE_INT64 || f->type == PROTOBUF_C_TYPE_SINT64 ||
           f->type == PROTOBUF_C_TYPE_SFIXED64 || f->type == PROTOBUF_C_TYPE_UINT64 ||
           f->type == PROTOBUF_C_TYPE_FIXED64 || f->type == PROTOBUF_C_TYPE_DOUBLE;
}

static size_t size_of(const field *f)
{
    return f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE ? sizeof(void *)
           : f->type == PROTOBUF_C_TYPE_BYTES                                      ? sizeof(ProtobufCBinaryData)
           : is_wide(f)                                                            ? 8
                                                                                   : 4;
}

static bool equal_bytes(const ProtobufCBinaryData *x, const ProtobufCBinaryData *y)
{
    return x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
}

static bool equal(const field *f, const void *x, const void *y)
{
    if (f->type == PROTOBUF_C_TYPE_BYTES)
        return equal_bytes(x, y);
    if (f->type != PROTOBUF_C_TYPE_STRING)
        return memcmp(x, y, size_of(f)) == 0;
    const char *s = *(char *const *)x, *t = *(char *const *)y;
    return s && t ? strcmp(s, t) == 0 : s == t;
}

static void put_value(const field *f, const void *x, oct_buf *b)
{
    char text[32];
    if (f->type == PROTOBUF_C_TYPE_STRING)
        oct_buf_printf(b, "'%.300s'", *(char *const *)x ? *(char *const *)x : "");
    else if (f->type == PROTOBUF_C_TYPE_BYTES)
        oct_buf_printf(b, "%zu bytes", ((const ProtobufCBinaryData *)x)->len);
    else if (f->type == PROTOBUF_C_TYPE_FLOAT)
        oct_buf_puts(b, oct_f32_text(text, *(const float *)x));
    else if (f->type == PROTOBUF_C_TYPE_DOUBLE)
        oct_buf_puts(b, oct_f64_text(text, *(const double *)x));
    else if (is_wide(f))
        oct_buf_printf(b, "%lld", (long long)*(const int64_t *)x);
    else
        oct_buf_printf(b, "%d", *(const int32_t *)x);
}

/* An element of raw data. */
static void put_element(oct_dtype type, const uint8_t *x, size_t size, oct_buf *b)
{
    char text[32];
    float f;
    int32_t i;
    if (type == OCT_F32) {
        memcpy(&f, x, sizeof f);
        oct_buf_puts(b, oct_f32_text(text, f));
    } else if (type == OCT_S32) {
        memcpy(&i, x, sizeof i);
        oct_buf_printf(b, "%d", i);
    } else if (type == OCT_S8) {
        oct_buf_printf(b, "%d", (int8_t)*x);
    } else if (type == OCT_U8) {
        oct_buf_printf(b, "%d", *x);
    } else {
        oct_buf_puts(b, "0x");
        for (size_t k = size; k > 0; k--)
            oct_buf_printf(b, "%02x", x[k - 1]);
    }
}

static void tell_bytes(const ProtobufCMessage *m, const ProtobufCBinaryData *x, const ProtobufCBinaryData *y,
                       oct_buf *b)
{
    const bool tensor = m->descriptor == &onnx__tensor_proto__descriptor;
    const int type = tensor ? ((const Onnx__TensorProto *)m)->data_type : 0;
    const int bits = type > 0 && type < OCT_DTYPE_COUNT ? oct_dtype_bits((oct_dtype)type) : 8;
    const size_t size = bits < 8 ? 1 : (size_t)bits / 8;
    if (x->len != y->len) {
        oct_buf_printf(b, ": %zu bytes, should be %zu", x->len, y->len);
        return;
    }
    size_t at = 0;
    while (x->data[at] == y->data[at])
        at++;
    at -= at % size;
    const size_t held = x->len - at < size ? x->len - at : size;
    oct_buf_printf(b, ": %s %zu is ", bits < 8 ? "byte" : "element", at / size);
    put_element(held < size ? OCT_UNDEFINED : (oct_dtype)type, x->data + at, held, b);
    oct_buf_puts(b, ", should be ");
    put_element(held < size ? OCT_UNDEFINED : (oct_dtype)type, y->data + at, held, b);
}

/* ---- messages ---- */

static bool differ(const ProtobufCMessage *a, const ProtobufCMessage *b, const path *p, oct_buf *where);

static bool differ_below(const field *f, size_t index, const ProtobufCMessage *a, const ProtobufCMessage *b,
                         const path *p, oct_buf *where)
{
    const path below = { p, f->name, index, a };
    return differ(a, b, &below, where);
}

static bool differ_one(const ProtobufCMessage *a, const ProtobufCMessage *b, const field *f, const path *p,
                       oct_buf *where)
{
    const void *x = member(a, f), *y = member(b, f);
    const bool pointer = f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE;
    const bool oneof = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    bool has = oneof ? quantifier(a, f) == f->id : pointer || f->label != PROTOBUF_C_LABEL_OPTIONAL || quantifier(a, f);
    bool had = oneof ? quantifier(b, f) == f->id : pointer || f->label != PROTOBUF_C_LABEL_OPTIONAL || quantifier(b, f);
    if (pointer && has && had && !*(void *const *)x != !*(void *const *)y)
        has = *(void *const *)x, had = !has;
    if (has != had) {
        begin(p, f->name, where);
        oct_buf_puts(where, has ? ": should not be there" : ": is missing");
        return true;
    }
    if (!has)
        return false;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)x &&
               differ_below(f, 0, *(ProtobufCMessage *const *)x, *(ProtobufCMessage *const *)y, p, where);
    if (equal(f, x, y))
        return false;
    begin(p, f->name, where);
    if (f->type == PROTOBUF_C_TYPE_BYTES) {
        tell_bytes(a, x, y, where);
        return true;
    }
    oct_buf_puts(where, ": ");
    put_value(f, x, where);
    oct_buf_puts(where, ", should be ");
    put_value(f, y, where);
    return true;
}

static bool differ_list(const ProtobufCMessage *a, const ProtobufCMessage *b, const field *f, const path *p,
                        oct_buf *where)
{
    const size_t n = quantifier(a, f), m = quantifier(b, f), size = size_of(f);
    const char *x = *(char *const *)member(a, f), *y = *(char *const *)member(b, f);
    for (size_t i = 0; i < n && i < m; i++, x += size, y += size) {
        if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (differ_below(f, i, *(ProtobufCMessage *const *)(const void *)x,
                             *(ProtobufCMessage *const *)(const void *)y, p, where))
                return true;
        } else if (!equal(f, x, y)) {
            begin(p, f->name, where);
            oct_buf_printf(where, " %zu: ", i);
            put_value(f, x, where);
            oct_buf_puts(where, ", should be ");
            put_value(f, y, where);
            return true;
        }
    }
    if (n == m)
        return false;
    begin(p, f->name, where);
    oct_buf_printf(where, ": %zu, should be %zu", n, m);
    return true;
}

/* Recursion is bounded as that of loading is. */
static bool differ(const ProtobufCMessage *a, const ProtobufCMessage *b, const path *p, oct_buf *where)
{
    const ProtobufCMessageDescriptor *d = a->descriptor;
    for (unsigned i = 0; i < d->n_fields; i++)
        if (d->fields[i].label == PROTOBUF_C_LABEL_REPEATED ? differ_list(a, b, &d->fields[i], p, where)
                                                            : differ_one(a, b, &d->fields[i], p, where))
            return true;
    return false;
}

/* ---- files ---- */

static bool differ_file(const char *name, const void *a, size_t n, const void *b, size_t m, oct_buf *where)
{
    const unsigned char *x = a, *y = b;
    size_t at = 0;
    while (at < n && at < m && x[at] == y[at])
        at++;
    if (at == n && n == m)
        return false;
    oct_buf_printf(where, "%s: what is said is equal, and byte %zu is not", name, at);
    return true;
}

bool oct_model_differs(const oct_model *a, const oct_model *b, oct_buf *where)
{
    const size_t first = a->from_file ? 1 : 0, other = b->from_file ? 1 : 0;
    bool same = a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
    for (size_t i = first; same && i < a->n_maps && i - first + other < b->n_maps; i++) {
        const oct_map *x = &a->maps[i], *y = &b->maps[i - first + other];
        same = x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
    }
    if (same)
        return false;
    return differ(a->proto, b->proto, NULL, where) ||
           differ_file("the file", a->data, a->size, b->data, b->size, where) ||
           (oct_buf_puts(where, "external data"), true);
}
