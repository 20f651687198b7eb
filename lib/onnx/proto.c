/* Unpacking into an arena, and the walk over tensors. */
#include "onnx/proto.h"

#include "base/little_endian.h"
#include "onnx/wire.h"

#include <string.h>

typedef struct source {
    oct_arena *arena;
    bool failed;
} source;

static void *arena_alloc(void *arg, size_t size)
{
    source *s = arg;
    void *p = oct_arena_alloc(s->arena, size);
    s->failed |= !p;
    return p;
}

static void arena_keep(void *arg, void *p)
{
}

static oct_status each_field(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, oct_tensor_fn fn, void *arg,
                             oct_err *err)
{
    char *at = (char *)m + f->offset, *quantifier = (char *)m + f->quantifier_offset;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t n = *(size_t *)(void *)quantifier;
        ProtobufCMessage **list = *(ProtobufCMessage ***)(void *)at;
        for (size_t i = 0; i < n; i++)
            OCT_TRY(oct_proto_tensors(list[i], fn, arg, err));
        return OCT_OK;
    }
    if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *(uint32_t *)(void *)quantifier != f->id)
        return OCT_OK;
    ProtobufCMessage *sub = *(ProtobufCMessage **)(void *)at;
    return sub ? oct_proto_tensors(sub, fn, arg, err) : OCT_OK;
}

/* Recursion is bounded: the walk before unpacking allows OCT_WIRE_DEPTH levels. */
oct_status oct_proto_tensors(ProtobufCMessage *m, oct_tensor_fn fn, void *arg, oct_err *err)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (d == &onnx__tensor_proto__descriptor)
        return fn(arg, (Onnx__TensorProto *)m, err);
    for (unsigned i = 0; i < d->n_fields; i++)
        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            OCT_TRY(each_field(m, &d->fields[i], fn, arg, err));
    return OCT_OK;
}

typedef struct views {
    const oct_wire *wire;
    const uint8_t *data;
} views;

/* Replaces a token by the bytes it stands for. Shorter raw_data was copied as it is. */
static oct_status point_back(void *arg, Onnx__TensorProto *t, oct_err *err)
{
    const views *v = arg;
    if (!t->has_raw_data || t->raw_data.len < OCT_WIRE_TOKEN)
        return OCT_OK;
    const uint64_t index = oct_le_u64(t->raw_data.data); /* the first OCT_WIRE_TOKEN bytes */
    if (t->raw_data.len != OCT_WIRE_TOKEN || index >= v->wire->n_extent)
        return oct_fail(err, OCT_EINTERNAL, "raw_data without an extent");
    t->raw_data.data = (uint8_t *)(uintptr_t)(v->data + v->wire->extent[index].at);
    t->raw_data.len = v->wire->extent[index].len;
    return OCT_OK;
}

oct_status oct_proto_unpack(const uint8_t *data, size_t size, const ProtobufCMessageDescriptor *type, oct_arena *a,
                            void **msg, oct_err *err)
{
    oct_wire w;
    OCT_TRY(oct_wire_check(data, size, type, &w, err));
    source from = { a, false };
    ProtobufCAllocator alloc = { arena_alloc, arena_keep, &from };
    static const uint8_t none[1];
    ProtobufCMessage *m = protobuf_c_message_unpack(type, &alloc, w.size, w.bytes ? w.bytes : none);
    oct_status s = OCT_OK;
    if (!m)
        s = from.failed ? oct_nomem(err) : oct_fail(err, OCT_EMALFORMED, "the message cannot be unpacked");
    views v = { &w, data };
    if (s == OCT_OK)
        s = oct_proto_tensors(m, point_back, &v, err);
    oct_wire_free(&w);
    *msg = m;
    return s;
}
