/* Serializes messages incrementally. protobuf-c packs each sub-message in memory before it writes it, for a model the
 * whole graph with its weights. So large messages are written here field by field. */
#include "base/spill.h"
#include "onnx/save.h"

#include <string.h>

/* Messages up to this size are left to protobuf-c. */
enum { GATHERED = 1 << 20, WIRE_LENGTH = 2, MOST_VARINT = 10 };

typedef struct sink {
    ProtobufCBuffer base;
    oct_out *out;
} sink;

/* Weights are written once: what is written leaves the memory. */
static void append(ProtobufCBuffer *b, size_t n, const uint8_t *p)
{
    oct_out_write(((sink *)b)->out, p, n);
    if (n >= OCT_SPILL_LEAST)
        oct_spill_forget(p, n);
}

static void put_varint(oct_out *out, uint64_t v)
{
    uint8_t b[MOST_VARINT];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (uint8_t)(v | 0x80);
    b[n++] = (uint8_t)v;
    oct_out_write(out, b, n);
}

/* The sub-messages of a field: a list of n, or one (NULL: none). */
static ProtobufCMessage **below(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t *n)
{
    char *at = (char *)(uintptr_t)m + f->offset, *quantifier = (char *)(uintptr_t)m + f->quantifier_offset;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        *n = *(size_t *)(void *)quantifier;
        return *(ProtobufCMessage ***)(void *)at;
    }
    *n = !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || *(uint32_t *)(void *)quantifier == f->id;
    return (ProtobufCMessage **)(void *)at;
}

static void clear(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    void *at = (char *)m + f->offset, *quantifier = (char *)m + f->quantifier_offset;
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        *(size_t *)quantifier = 0;
    else if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        *(uint32_t *)quantifier = 0;
    else if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        *(void **)at = NULL;
    else
        *(protobuf_c_boolean *)quantifier = 0;
}

/* Writes one field, or (only < 0) all fields that are unknown to the schema. room: memory for a message of this type.
 */
static void write_alone(const ProtobufCMessage *m, int only, ProtobufCMessage *room, sink *to)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    const ProtobufCFieldDescriptor *f = only >= 0 ? &d->fields[only] : NULL;
    memcpy(room, m, d->sizeof_message);
    for (int i = 0; i < (int)d->n_fields; i++)
        if (i != only)
            clear(room, &d->fields[i]);
    if (f && f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
        *(uint32_t *)(void *)((char *)(uintptr_t)m + f->quantifier_offset) == f->id)
        *(uint32_t *)(void *)((char *)room + f->quantifier_offset) = f->id; /* the others of its kind cleared it */
    if (f)
        room->n_unknown_fields = 0;
    protobuf_c_message_pack_to_buffer(room, &to->base);
}

/* Recursion is as deep as the message nests, which is bounded (wire.h). */
static oct_status write_message(const ProtobufCMessage *m, size_t size, sink *to, oct_err *err);

static oct_status write_below(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, sink *to, oct_err *err)
{
    size_t n;
    ProtobufCMessage **list = below(m, f, &n);
    for (size_t k = 0; k < n; k++) {
        if (!list[k])
            continue;
        const size_t size = protobuf_c_message_get_packed_size(list[k]);
        put_varint(to->out, (uint64_t)f->id << 3 | WIRE_LENGTH);
        put_varint(to->out, size);
        OCT_TRY(write_message(list[k], size, to, err));
    }
    return OCT_OK;
}

/* Recursion is as deep as the message nests, which is bounded (wire.h). */
static oct_status write_message(const ProtobufCMessage *m, size_t size, sink *to, oct_err *err)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (size <= GATHERED) {
        protobuf_c_message_pack_to_buffer(m, &to->base);
        return OCT_OK;
    }
    ProtobufCMessage *room = oct_alloc(d->sizeof_message);
    oct_status s = room ? OCT_OK : oct_nomem(err);
    for (int i = 0; i < (int)d->n_fields && s == OCT_OK; i++) {
        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            s = write_below(m, &d->fields[i], to, err);
        else
            write_alone(m, i, room, to);
    }
    if (s == OCT_OK)
        write_alone(m, -1, room, to);
    oct_free(room);
    return s;
}

oct_status oct_message_write(const ProtobufCMessage *m, oct_out *out, oct_err *err)
{
    sink to = { { append }, out };
    return write_message(m, protobuf_c_message_get_packed_size(m), &to, err);
}
